"""x86-64: AVX-512 with VNNI, vectors of 64 bytes; AVX2 with fused multiply-add, vectors of 32 bytes."""

from functools import partial

from bytewright.lower.isa.conv2d import conv2d_declines, write_conv2d
from bytewright.lower.isa.instruction_set import InstructionSet, IsaTemplate
from bytewright.lower.isa.reduce import with_reductions
from bytewright.lower.isa.tile import Tile
from bytewright.lower.isa.x86.depthwise_512 import INSTRUCTIONS, depthwise_declines, write_depthwise
from bytewright.lower.isa.x86.dots import BYTE_DOTS, FLOAT_DOTS_256, FLOAT_DOTS_512, WORD_DOTS
from bytewright.lower.isa.x86.lanes import unit_of
from bytewright.lower.isa.x86.simd import AVX2 as SIMD_256
from bytewright.lower.isa.x86.simd import AVX512 as SIMD_512
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d

_UNIT_512, _UNIT_256 = (unit_of(simd, simd.lanes) for simd in (SIMD_512, SIMD_256))
_ALL_OF_32_BITS = (-(2**31), 2**31 - 1)


def _operands(prefix: str) -> dict[tuple[str, str], tuple[int, int]]:
    """For which operands the operations on lanes are defined."""
    return {
        (f"{prefix}_double_round_wide", "value"): _ALL_OF_32_BITS,
        (f"{prefix}_double_round_wide", "shift"): (0, 31),
        (f"{prefix}_high_multiply_wide", "value"): _ALL_OF_32_BITS,
        (f"{prefix}_float_round", "value"): (-(2**16), 2**16),
        (f"{prefix}_float_round_signed", "value"): (-(2**16), 2**16),
        (f"{prefix}_float_sum", "left"): (-128, 127),
        (f"{prefix}_float_sum", "right"): (-128, 127),
        **{
            (name, side): (-(2**15), 2**15)
            for name in (f"{prefix}_mul_i32", f"{prefix}_mul_i32_n")
            for side in ("left", "right", "number")
        },
    }


def _convolutions(name: str, *units: Tile) -> tuple[IsaTemplate, ...]:
    return tuple(
        IsaTemplate(
            f"{name}.conv2d_{unit.element.value}",
            partial(write_conv2d, unit),
            partial(conv2d_declines, unit),
        )
        for unit in units
    )


AVX512_VNNI = InstructionSet(
    name="avx512vnni",
    features=frozenset({"avx512f", "avx512bw", "avx512vl", "avx512vnni"}),
    templates=with_reductions(
        "avx512vnni",
        _UNIT_512,
        {
            Conv2d: _convolutions("avx512vnni", BYTE_DOTS, FLOAT_DOTS_512),
            DepthwiseConv2d: (IsaTemplate("avx512vnni.depthwise_i8", write_depthwise, depthwise_declines),),
        },
    ),
    instructions=tuple(dict.fromkeys((*BYTE_DOTS.instructions, *FLOAT_DOTS_512.instructions, *INSTRUCTIONS))),
    operands={**_operands("avx512"), ("avx512_fill_bytes", "value"): (0, 255)},
    unit=_UNIT_512,
)
AVX2 = InstructionSet(
    name="avx2",
    features=frozenset({"avx2", "fma"}),
    templates=with_reductions(
        "avx2",
        _UNIT_256,
        {
            Conv2d: _convolutions("avx2", WORD_DOTS, FLOAT_DOTS_256),
        },
    ),
    instructions=tuple(dict.fromkeys((*WORD_DOTS.instructions, *FLOAT_DOTS_256.instructions))),
    operands={
        **_operands("avx2"),
        ("avx2_fill_words", "value"): (-128, 127),
        ("avx2_dot_words", "activations"): (-(2**14), 2**14),
        ("avx2_dot_words", "filters"): (-(2**14), 2**14),
    },
    unit=_UNIT_256,
)
