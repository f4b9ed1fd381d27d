"""AVX-512: sixteen lanes of 32 bits, all of them or the first few."""

from functools import cache

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import (
    DOUBLE_ROUND,
    DOUBLE_ROUND_WIDE,
    FLOAT_ROUND,
    FLOAT_ROUND_SIGNED,
    FLOAT_SUM,
    HIGH_MULTIPLY,
    HIGH_MULTIPLY_WIDE,
)
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width

I8, U8, I16, I32, F32 = ir.DType.I8, ir.DType.U8, ir.DType.I16, ir.DType.I32, ir.DType.F32
FEATURE = ir.Feature(
    "avx512vnni",
    "defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512VNNI__)",
    "immintrin.h",
)
LANES = 16
TYPES = {I32: "__m512i", F32: "__m512"}
VECTORS = Width("avx512", LANES, TYPES, FEATURE)

# How lanes are widened, all elements, and some of them: the other lanes are 1, of which every rescale is defined.
_LOADS = {
    I8: (
        "_mm512_cvtepi8_epi32",
        "_mm_loadu_si128((const __m128i *)elements)",
        "_mm_mask_loadu_epi8(_mm_set1_epi8(1), {mask}, elements)",
    ),
    I16: (
        "_mm512_cvtepi16_epi32",
        "_mm256_loadu_si256((const __m256i *)elements)",
        "_mm256_mask_loadu_epi16(_mm256_set1_epi16(1), {mask}, elements)",
    ),
    I32: (
        "",
        "_mm512_loadu_si512(elements)",
        "_mm512_mask_loadu_epi32(_mm512_set1_epi32(1), {mask}, elements)",
    ),
    F32: ("", "_mm512_loadu_ps(elements)", "_mm512_mask_loadu_ps(_mm512_set1_ps(1.0f), {mask}, elements)"),
}
_STORES = {
    I8: (
        "_mm_storeu_si128((__m128i *)elements, _mm512_cvtepi32_epi8(values));",
        "_mm_mask_storeu_epi8(elements, {mask}, _mm512_cvtepi32_epi8(values));",
    ),
    I32: (
        "_mm512_storeu_si512(elements, values);",
        "_mm512_mask_storeu_epi32(elements, {mask}, values);",
    ),
    F32: (
        "_mm512_storeu_ps(elements, values);",
        "_mm512_mask_storeu_ps(elements, {mask}, values);",
    ),
}
_SATURATING_STORES = {
    I8: (
        "_mm_storeu_si128((__m128i *)elements, _mm512_cvtsepi32_epi8(values));",
        "_mm_mask_storeu_epi8(elements, {mask}, _mm512_cvtsepi32_epi8(values));",
    ),
}


def _load(dtype: ir.DType, num: int) -> str:
    widen, whole, masked = _LOADS[dtype]
    loaded = whole if num == LANES else masked.format(mask=_mask(num))
    return f"return {widen}({loaded});" if widen else f"return {loaded};"


def _stored(num: int, whole: str, masked: str) -> str:
    return whole if num == LANES else masked.format(mask=_mask(num))


def _mask(num: int) -> str:
    return f"(__mmask16)0x{(1 << num) - 1:04x}u"


_OPERATIONS = {
    (BinaryOperator.ADD, I32): "_mm512_add_epi32(left, right)",
    (BinaryOperator.SUB, I32): "_mm512_sub_epi32(left, right)",
    (BinaryOperator.MUL, I32): "_mm512_mullo_epi32(left, right)",
    (BinaryOperator.MIN, I32): "_mm512_min_epi32(left, right)",
    (BinaryOperator.MAX, I32): "_mm512_max_epi32(left, right)",
    (BinaryOperator.ADD, F32): "_mm512_add_ps(left, right)",
    (BinaryOperator.SUB, F32): "_mm512_sub_ps(left, right)",
    (BinaryOperator.MUL, F32): "_mm512_mul_ps(left, right)",
    # Of these the second operand remains where neither is less or greater, as with what is not a number.
    (BinaryOperator.MIN, F32): "_mm512_min_ps(right, left)",
    (BinaryOperator.MAX, F32): "_mm512_max_ps(right, left)",
}
_BROADCASTS = {I32: "_mm512_set1_epi32", F32: "_mm512_set1_ps"}
_WITH_SCALAR = {
    (operator, dtype): f"const {TYPES[dtype]} right = {_BROADCASTS[dtype]}(number);\nreturn {text};"
    for (operator, dtype), text in _OPERATIONS.items()
}

# Products of even and of odd lanes, in 64 bits. Of the even ones the high half moves down beside the odd ones'.
_PRODUCTS = """const __m512i half = _mm512_set1_epi64({half});
const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(wide, multiplier), half);
const __m512i odds = _mm512_mul_epi32(_mm512_srli_epi64(wide, 32), _mm512_srli_epi64(multiplier, 32));
const __m512i odd = _mm512_add_epi64(odds, half);
"""
_HIGH_MULTIPLY = (
    "const __m512i wide = _mm512_slli_epi32(value, 1);\n"
    + _PRODUCTS.format(half="INT64_C(1) << 31")
    + "const __m512i scaled = _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);\n"
)
_HIGH_MULTIPLY_WIDE = (
    "const __m512i wide = value;\n"
    + _PRODUCTS.format(half="INT64_C(1) << 30")
    + "const __m512i scaled = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), "
    "_mm512_slli_epi64(odd, 1));\n"
)
_DOUBLE_ROUND = (
    _HIGH_MULTIPLY
    + """const __m512i one = _mm512_set1_epi32(1);
const __m512i rounding = _mm512_sllv_epi32(one, _mm512_sub_epi32(shift, one));
const __m512i away = _mm512_add_epi32(scaled, _mm512_srai_epi32(scaled, 31));
return _mm512_srav_epi32(_mm512_add_epi32(away, rounding), shift);"""
)
_DOUBLE_ROUND_WIDE = (
    _HIGH_MULTIPLY_WIDE
    + """const __m512i unused = _mm512_sub_epi32(_mm512_set1_epi32(31), shift);
const __m512i mask = _mm512_srlv_epi32(_mm512_set1_epi32(INT32_MAX), unused);
const __m512i threshold = _mm512_sub_epi32(_mm512_srli_epi32(mask, 1), _mm512_srai_epi32(scaled, 31));
const __mmask16 above = _mm512_cmpgt_epi32_mask(_mm512_and_si512(scaled, mask), threshold);
const __m512i down = _mm512_srav_epi32(scaled, shift);
return _mm512_mask_sub_epi32(down, above, down, _mm512_set1_epi32(-1));"""
)
_FLOAT_ROUND = "return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(value), scale, offset));"

_FLOAT_ROUND_SIGNED = """const __mmask16 is_below = _mm512_cmplt_epi32_mask(value, _mm512_setzero_si512());
const __m512 chosen = _mm512_mask_blend_ps(is_below, offset, below);
return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(value), scale, chosen));"""
_FLOAT_SUM = """const __m512 shifted = _mm512_fmadd_ps(_mm512_cvtepi32_ps(right), right_scale, offset);
return _mm512_cvtps_epi32(_mm512_fmadd_ps(_mm512_cvtepi32_ps(left), left_scale, shifted));"""


_FUNCTIONS = (
    (HIGH_MULTIPLY, f"{_HIGH_MULTIPLY}return scaled;"),
    (HIGH_MULTIPLY_WIDE, f"{_HIGH_MULTIPLY_WIDE}return scaled;"),
    (DOUBLE_ROUND, _DOUBLE_ROUND),
    (DOUBLE_ROUND_WIDE, _DOUBLE_ROUND_WIDE),
    (FLOAT_ROUND, _FLOAT_ROUND),
    (FLOAT_ROUND_SIGNED, _FLOAT_ROUND_SIGNED),
    (FLOAT_SUM, _FLOAT_SUM),
)


@cache
def unit_of(num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    return VECTORS.unit(
        loads={dtype: _load(dtype, num) for dtype in _LOADS},
        stores={dtype: _stored(num, *how) for dtype, how in _STORES.items()},
        saturating_stores={dtype: _stored(num, *how) for dtype, how in _SATURATING_STORES.items()},
        broadcasts=_BROADCASTS,
        binaries=_OPERATIONS,
        with_scalar=_WITH_SCALAR,
        functions=_FUNCTIONS,
        num=num,
    )


UNIT = unit_of(LANES)
