"""RISC-V's vector extension V 1.0, by the C intrinsics of version 0.12 and later; vectors of 128 bits or more.

Compilers without these intrinsics (gcc before 14, clang before 19) make plain C of the same kernels.
"""

from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.reduce import with_reductions
from bytewright.lower.isa.rvv.dots import BYTE_DOTS, FLOAT_DOTS
from bytewright.lower.isa.rvv.lanes import UNIT, VECTORS
from bytewright.lower.isa.rvv.narrow import EXTREMA, SUMS
from bytewright.ops.convolution import Conv2d

RVV = InstructionSet(
    name="rvv",
    features=frozenset({"v"}),
    templates=with_reductions(
        "rvv", UNIT, {Conv2d: conv2d_templates("rvv", BYTE_DOTS, FLOAT_DOTS)}, (SUMS, EXTREMA)
    ),
    instructions=tuple(
        dict.fromkeys(
            (*BYTE_DOTS.instructions, *FLOAT_DOTS.instructions, *SUMS.instructions, *EXTREMA.instructions)
        )
    ),
    operands=VECTORS.operands,
    unit=UNIT,
)
