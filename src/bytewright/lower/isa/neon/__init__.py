"""Arm's Advanced SIMD with dot products, of Armv8.2-A and later: vectors of 16 bytes."""

from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.neon.conv2d import conv2d_declines, write_conv2d
from bytewright.lower.isa.neon.dot import DOT, LOAD_BYTES, REPEAT
from bytewright.lower.isa.neon.lanes import UNIT
from bytewright.lower.isa.reduce import with_reductions
from bytewright.ops.convolution import Conv2d

_ALL = (-(2**31), 2**31 - 1)

NEON = InstructionSet(
    name="neon",
    features=frozenset({"neon-dotprod"}),
    templates=with_reductions(
        "neon",
        UNIT,
        {
            Conv2d: (IsaTemplate("neon.conv2d", write_conv2d, conv2d_declines),),
        },
    ),
    instructions=(DOT, LOAD_BYTES, REPEAT, *UNIT.instructions),
    operands={
        ("neon_double_round_wide", "value"): _ALL,
        ("neon_double_round_wide", "shift"): (0, 31),
        ("neon_high_multiply_wide", "value"): _ALL,
        ("neon_mul_i32", "left"): (-(2**15), 2**15),
        ("neon_mul_i32", "right"): (-(2**15), 2**15),
    },
)
