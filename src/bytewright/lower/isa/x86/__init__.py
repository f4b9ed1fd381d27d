"""x86-64: AVX-512 with VNNI, vectors of 64 bytes; AVX2 with fused multiply-add, vectors of 32 bytes."""

from bytewright.lower.isa.conv2d import conv2d_templates
from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.products import instructions_of, operands_of
from bytewright.lower.isa.reduce import matmul_lanes, with_reductions
from bytewright.lower.isa.transpose_conv2d import transpose_conv2d_templates
from bytewright.lower.isa.x86.depthwise_512 import INSTRUCTIONS, depthwise_declines, write_depthwise
from bytewright.lower.isa.x86.dots import (
    BYTE_DOTS,
    FLOAT_DOTS_256,
    FLOAT_DOTS_512,
    HALF_DOTS_256,
    HALF_DOTS_512,
    WORD_DOTS,
)
from bytewright.lower.isa.x86.lanes import unit_of
from bytewright.lower.isa.x86.lookup import LOOKUP_256, LOOKUP_512
from bytewright.lower.isa.x86.narrow import NARROW_256, NARROW_512
from bytewright.lower.isa.x86.simd import AVX2 as SIMD_256
from bytewright.lower.isa.x86.simd import AVX512 as SIMD_512
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d, TransposeConv2d

_UNIT_512, _UNIT_256 = (unit_of(simd, simd.lanes) for simd in (SIMD_512, SIMD_256))

_TILES_512 = (BYTE_DOTS, HALF_DOTS_512, FLOAT_DOTS_512)
_TILES_256 = (WORD_DOTS, HALF_DOTS_256, FLOAT_DOTS_256)
AVX512_VNNI = InstructionSet(
    name="avx512vnni",
    features=frozenset({"avx512f", "avx512bw", "avx512vl", "avx512vnni"}),
    templates=with_reductions(
        "avx512vnni",
        _UNIT_512,
        {
            **matmul_lanes("avx512vnni", _UNIT_512),
            Conv2d: conv2d_templates("avx512vnni", *_TILES_512),
            TransposeConv2d: transpose_conv2d_templates("avx512vnni", *_TILES_512),
            DepthwiseConv2d: (IsaTemplate("avx512vnni.depthwise_i8", write_depthwise, depthwise_declines),),
        },
        NARROW_512,
    ),
    instructions=(
        *instructions_of(_TILES_512),
        *INSTRUCTIONS,
        *(i for each in (*NARROW_512, LOOKUP_512) for i in each.instructions),
    ),
    operands={**SIMD_512.width.operands, **operands_of(_TILES_512)},
    unit=_UNIT_512,
    lookup=LOOKUP_512,
)
AVX2 = InstructionSet(
    name="avx2",
    features=frozenset({"avx2", "fma"}),
    templates=with_reductions(
        "avx2",
        _UNIT_256,
        {
            **matmul_lanes("avx2", _UNIT_256),
            Conv2d: conv2d_templates("avx2", *_TILES_256),
            TransposeConv2d: transpose_conv2d_templates("avx2", *_TILES_256),
        },
        NARROW_256,
    ),
    instructions=(
        *instructions_of(_TILES_256),
        *(i for each in (*NARROW_256, LOOKUP_256) for i in each.instructions),
    ),
    operands={**SIMD_256.width.operands, **operands_of(_TILES_256)},
    unit=_UNIT_256,
    lookup=LOOKUP_256,
)
