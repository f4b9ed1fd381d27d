"""Arm's Advanced SIMD with dot products, of Armv8.2-A and later: vectors of 16 bytes."""

from bytewright import ir
from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet
from bytewright.lower.isa.neon.dots import BYTE_DOTS, FLOAT_DOTS, HALF_DOTS, TAPS
from bytewright.lower.isa.neon.lanes import UNIT, VECTORS
from bytewright.lower.isa.neon.lookup import LOOKUP
from bytewright.lower.isa.neon.narrow import EXTREMA, SUMS
from bytewright.lower.isa.products import instructions_of, operands_of
from bytewright.lower.isa.reduce import depthwise_taps, matmul_lanes, with_reductions
from bytewright.lower.isa.transpose_conv2d import transpose_conv2d_templates
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d

_TILES = (BYTE_DOTS, HALF_DOTS, FLOAT_DOTS)
NEON = InstructionSet(
    name="neon",
    features=frozenset({"neon-dotprod"}),
    templates=with_reductions(
        "neon",
        UNIT,
        {
            **matmul_lanes("neon", UNIT, ir.DType.I8),
            Conv2d: conv2d_templates("neon", *_TILES),
            TransposeConv2d: transpose_conv2d_templates("neon", *_TILES),
            DepthwiseConv2d: (depthwise_taps("neon", UNIT, TAPS),),
        },
        (SUMS, EXTREMA),
    ),
    instructions=(
        *instructions_of(_TILES),
        *TAPS.instructions,
        *SUMS.instructions,
        *EXTREMA.instructions,
        *LOOKUP.instructions,
    ),
    operands={**VECTORS.operands, **operands_of(_TILES)},
    lookup=LOOKUP,
)
