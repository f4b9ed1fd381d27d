"""Lanes of 16 bits for sums of bytes, and of 8 bits for the greatest and the least of them."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.narrow import NarrowLanes, narrow_lanes
from bytewright.lower.isa.x86.simd import AVX2, AVX512, I32, Simd


def _narrow(simd: Simd, half: str) -> tuple[NarrowLanes, NarrowLanes]:
    """Sums and extrema; `half` is how half a register is loaded from `elements`."""
    c_type, store = simd.types[I32], simd.text("_mmW_storeu_siW((__mWi *)elements, results);")
    whole = simd.text("_mmW_loadu_siW((const __mWi *)elements)")
    sums = narrow_lanes(
        simd.prefix,
        simd.bits // 16,
        ir.DType.I16,
        c_type,
        simd.feature,
        fill=simd.text("return _mmW_set1_epi16((short)value);"),
        combines={
            BinaryOperator.ADD: simd.text(f"return _mmW_add_epi16(results, _mmW_cvtepi8_epi16({half}));")
        },
        store=store,
    )
    extrema = narrow_lanes(
        simd.prefix,
        simd.bits // 8,
        ir.DType.I8,
        c_type,
        simd.feature,
        fill=simd.text("return _mmW_set1_epi8((char)value);"),
        combines={
            operator: simd.text(f"return _mmW_{name}_epi8(results, {whole});")
            for operator, name in ((BinaryOperator.MAX, "max"), (BinaryOperator.MIN, "min"))
        },
        store=store,
    )
    return sums, extrema


NARROW_256 = _narrow(AVX2, "_mm_loadu_si128((const __m128i *)elements)")
NARROW_512 = _narrow(AVX512, "_mm256_loadu_si256((const __m256i *)elements)")
