"""Arm's Advanced SIMD with dot products, of Armv8.2-A and later: vectors of 16 bytes."""

from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.neon.conv2d import conv2d_declines, write_conv2d
from bytewright.lower.isa.neon.dot import DOT, LOAD_BYTES, REPEAT
from bytewright.lower.isa.neon.lanes import UNIT, VECTORS
from bytewright.lower.isa.reduce import with_reductions
from bytewright.ops.convolution import Conv2d

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
    operands=VECTORS.operands,
)
