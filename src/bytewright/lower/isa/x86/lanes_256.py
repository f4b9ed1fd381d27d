"""AVX2 with fused multiply-add: eight lanes of 32 bits, all of them or the first few.

There are no masked loads of bytes: some elements are copied into a vector of ones, or out of one, by `memcpy`, which
compilers turn into a few moves as the size is constant.
"""

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

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
FEATURE = ir.Feature("avx2", "defined(__AVX2__) && defined(__FMA__)", "immintrin.h")
LANES = 8
TYPES = {I32: "__m256i", F32: "__m256"}
VECTORS = Width("avx2", LANES, TYPES, FEATURE)

# How lanes are widened; the type of what is loaded, how it is, and ones: lanes without an element are 1.
_LOADS = {
    I8: (
        "_mm256_cvtepi8_epi32({0})",
        "__m128i",
        "_mm_loadl_epi64((const __m128i *)elements)",
        "_mm_set1_epi8(1)",
    ),
    I16: (
        "_mm256_cvtepi16_epi32({0})",
        "__m128i",
        "_mm_loadu_si128((const __m128i *)elements)",
        "_mm_set1_epi16(1)",
    ),
    I32: ("{0}", "__m256i", "_mm256_loadu_si256((const __m256i *)elements)", "_mm256_set1_epi32(1)"),
    F32: ("{0}", "__m256", "_mm256_loadu_ps(elements)", "_mm256_set1_ps(1.0f)"),
}
# What is computed of `values`, the type of what is stored, and how it is.
_LOW_BYTES = """const __m256i low = _mm256_and_si256(values, _mm256_set1_epi32(255));
const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
const __m128i packed = _mm_packus_epi16(halves, halves);
"""
_SATURATED = """const __m128i high = _mm256_extracti128_si256(values, 1);
const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(values), high);
const __m128i packed = _mm_packs_epi16(halves, halves);
"""
_STORE_BYTES = "_mm_storel_epi64((__m128i *)elements, packed);"
_STORES = {
    I8: (_LOW_BYTES, "packed", _STORE_BYTES),
    I32: ("", "values", "_mm256_storeu_si256((__m256i *)elements, values);"),
    F32: ("", "values", "_mm256_storeu_ps(elements, values);"),
}


def _load(dtype: ir.DType, num: int) -> str:
    widen, c_type, whole, ones = _LOADS[dtype]
    if num == LANES:
        return f"return {widen.format(whole)};"
    copied = f"__builtin_memcpy(&some, elements, {num * dtype.size_bytes});"
    return f"{c_type} some = {ones};\n{copied}\nreturn {widen.format('some')};"


def _stored(dtype: ir.DType, num: int, computed: str, result: str, whole: str) -> str:
    some = f"__builtin_memcpy(elements, &{result}, {num * dtype.size_bytes});"
    return computed + (whole if num == LANES else some)


_OPERATIONS = {
    (BinaryOperator.ADD, I32): "_mm256_add_epi32(left, right)",
    (BinaryOperator.SUB, I32): "_mm256_sub_epi32(left, right)",
    (BinaryOperator.MUL, I32): "_mm256_mullo_epi32(left, right)",
    (BinaryOperator.MIN, I32): "_mm256_min_epi32(left, right)",
    (BinaryOperator.MAX, I32): "_mm256_max_epi32(left, right)",
    (BinaryOperator.ADD, F32): "_mm256_add_ps(left, right)",
    (BinaryOperator.SUB, F32): "_mm256_sub_ps(left, right)",
    (BinaryOperator.MUL, F32): "_mm256_mul_ps(left, right)",
    # Of these the second operand remains where neither is less or greater, as with what is not a number.
    (BinaryOperator.MIN, F32): "_mm256_min_ps(right, left)",
    (BinaryOperator.MAX, F32): "_mm256_max_ps(right, left)",
}
_BROADCASTS = {I32: "_mm256_set1_epi32", F32: "_mm256_set1_ps"}
_WITH_SCALAR = {
    (operator, dtype): f"const {TYPES[dtype]} right = {_BROADCASTS[dtype]}(number);\nreturn {text};"
    for (operator, dtype), text in _OPERATIONS.items()
}

# Products of even and of odd lanes, in 64 bits. Of the even ones the high half moves down beside the odd ones'.
_PRODUCTS = """const __m256i half = _mm256_set1_epi64x({half});
const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(wide, multiplier), half);
const __m256i odds = _mm256_mul_epi32(_mm256_srli_epi64(wide, 32), _mm256_srli_epi64(multiplier, 32));
const __m256i odd = _mm256_add_epi64(odds, half);
"""
_HIGH_MULTIPLY = (
    "const __m256i wide = _mm256_slli_epi32(value, 1);\n"
    + _PRODUCTS.format(half="INT64_C(1) << 31")
    + "const __m256i scaled = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);\n"
)
_HIGH_MULTIPLY_WIDE = (
    "const __m256i wide = value;\n"
    + _PRODUCTS.format(half="INT64_C(1) << 30")
    + "const __m256i scaled = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);\n"
)
_FUNCTIONS = (
    (HIGH_MULTIPLY, f"{_HIGH_MULTIPLY}return scaled;"),
    (HIGH_MULTIPLY_WIDE, f"{_HIGH_MULTIPLY_WIDE}return scaled;"),
    (
        DOUBLE_ROUND,
        _HIGH_MULTIPLY
        + """const __m256i one = _mm256_set1_epi32(1);
const __m256i rounding = _mm256_sllv_epi32(one, _mm256_sub_epi32(shift, one));
const __m256i away = _mm256_add_epi32(scaled, _mm256_srai_epi32(scaled, 31));
return _mm256_srav_epi32(_mm256_add_epi32(away, rounding), shift);""",
    ),
    (
        DOUBLE_ROUND_WIDE,
        _HIGH_MULTIPLY_WIDE
        + """const __m256i unused = _mm256_sub_epi32(_mm256_set1_epi32(31), shift);
const __m256i mask = _mm256_srlv_epi32(_mm256_set1_epi32(INT32_MAX), unused);
const __m256i threshold = _mm256_sub_epi32(_mm256_srli_epi32(mask, 1), _mm256_srai_epi32(scaled, 31));
const __m256i above = _mm256_cmpgt_epi32(_mm256_and_si256(scaled, mask), threshold);
return _mm256_sub_epi32(_mm256_srav_epi32(scaled, shift), above);""",
    ),
    (
        FLOAT_ROUND,
        "return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(value), scale, offset));",
    ),
    (
        FLOAT_ROUND_SIGNED,
        """const __m256 chosen = _mm256_blendv_ps(offset, below, _mm256_castsi256_ps(value));
return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(value), scale, chosen));""",
    ),
    (
        FLOAT_SUM,
        """const __m256 shifted = _mm256_fmadd_ps(_mm256_cvtepi32_ps(right), right_scale, offset);
return _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_cvtepi32_ps(left), left_scale, shifted));""",
    ),
)


@cache
def unit_of(num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    return VECTORS.unit(
        loads={dtype: _load(dtype, num) for dtype in _LOADS},
        stores={dtype: _stored(dtype, num, *how) for dtype, how in _STORES.items()},
        saturating_stores={I8: _stored(I8, num, _SATURATED, "packed", _STORE_BYTES)},
        broadcasts=_BROADCASTS,
        binaries=_OPERATIONS,
        with_scalar=_WITH_SCALAR,
        functions=_FUNCTIONS,
        num=num,
    )


UNIT = unit_of(LANES)
