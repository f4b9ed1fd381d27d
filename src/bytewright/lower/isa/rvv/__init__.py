"""RISC-V's vector extension V 1.0, by the C intrinsics of version 0.12 and later; vectors of 128 bits or more.

Compilers without these intrinsics (gcc before 14, clang before 19) make plain C of the same kernels.
"""

from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.products import instructions_of, operands_of
from bytewright.lower.isa.reduce import depthwise_taps, matmul_lanes, with_reductions
from bytewright.lower.isa.rvv.dots import BYTE_DOTS, FLOAT_DOTS, HALF_DOTS, TAPS
from bytewright.lower.isa.rvv.lanes import UNIT, VECTORS
from bytewright.lower.isa.rvv.narrow import EXTREMA, SUMS
from bytewright.lower.isa.softmax import softmax_template
from bytewright.lower.isa.transpose_conv2d import transpose_conv2d_templates
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d
from bytewright.ops.softmax import TflSoftmax

_TILES = (BYTE_DOTS, HALF_DOTS, FLOAT_DOTS)
RVV = InstructionSet(
    name="rvv",
    features=frozenset({"v"}),
    templates=with_reductions(
        "rvv",
        UNIT,
        {
            **matmul_lanes("rvv", UNIT),
            Conv2d: conv2d_templates("rvv", *_TILES),
            TransposeConv2d: transpose_conv2d_templates("rvv", *_TILES),
            TflSoftmax: (softmax_template("rvv", UNIT),),
            DepthwiseConv2d: (depthwise_taps("rvv", UNIT, TAPS),),
        },
        (SUMS, EXTREMA),
    ),
    instructions=(*instructions_of(_TILES), *TAPS.instructions, *SUMS.instructions, *EXTREMA.instructions),
    operands={**VECTORS.operands, **operands_of(_TILES)},
    unit=UNIT,
)
