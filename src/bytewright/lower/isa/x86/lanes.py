"""x86's lanes of 32 bits, all of a register or the first few: what element-wise operators are made of."""

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
from bytewright.lower.isa.x86.simd import F32, I8, I16, I32, Simd

_OPERATIONS = {
    (BinaryOperator.ADD, I32): "_mmW_add_epi32(left, right)",
    (BinaryOperator.SUB, I32): "_mmW_sub_epi32(left, right)",
    (BinaryOperator.MUL, I32): "_mmW_mullo_epi32(left, right)",
    (BinaryOperator.MIN, I32): "_mmW_min_epi32(left, right)",
    (BinaryOperator.MAX, I32): "_mmW_max_epi32(left, right)",
    (BinaryOperator.ADD, F32): "_mmW_add_ps(left, right)",
    (BinaryOperator.SUB, F32): "_mmW_sub_ps(left, right)",
    (BinaryOperator.MUL, F32): "_mmW_mul_ps(left, right)",
    # Of these the second operand remains where neither is less or greater, as with what is not a number.
    (BinaryOperator.MIN, F32): "_mmW_min_ps(right, left)",
    (BinaryOperator.MAX, F32): "_mmW_max_ps(right, left)",
}
_BROADCASTS = {I32: "_mmW_set1_epi32({0})", F32: "_mmW_set1_ps({0})"}


def _scaled(simd: Simd, wide: str, half: str, merged: str) -> str:
    """Products of even and of odd lanes, in 64 bits. Of the even ones the high half moves down beside the odd ones'."""
    return f"""const __mWi wide = {wide};
const __mWi half = {simd.set_64}({half});
const __mWi even = _mmW_add_epi64(_mmW_mul_epi32(wide, multiplier), half);
const __mWi odds = _mmW_mul_epi32(_mmW_srli_epi64(wide, 32), _mmW_srli_epi64(multiplier, 32));
const __mWi odd = _mmW_add_epi64(odds, half);
const __mWi scaled = {merged};
"""


def _functions(simd: Simd) -> dict[ir.ScalarFunction, str]:
    merged, merged_wide = simd.merge
    scaled = _scaled(simd, "_mmW_slli_epi32(value, 1)", "INT64_C(1) << 31", merged)
    scaled_wide = _scaled(simd, "value", "INT64_C(1) << 30", merged_wide)
    rounded = "return _mmW_cvtps_epi32(_mmW_fmadd_ps(_mmW_cvtepi32_ps(value), scale, {0}));"
    return {
        HIGH_MULTIPLY: f"{scaled}return scaled;",
        HIGH_MULTIPLY_WIDE: f"{scaled_wide}return scaled;",
        DOUBLE_ROUND: f"""{scaled}const __mWi one = _mmW_set1_epi32(1);
const __mWi rounding = _mmW_sllv_epi32(one, _mmW_sub_epi32(shift, one));
const __mWi away = _mmW_add_epi32(scaled, _mmW_srai_epi32(scaled, 31));
return _mmW_srav_epi32(_mmW_add_epi32(away, rounding), shift);""",
        DOUBLE_ROUND_WIDE: f"""{scaled_wide}const __mWi unused = _mmW_sub_epi32(_mmW_set1_epi32(31), shift);
const __mWi mask = _mmW_srlv_epi32(_mmW_set1_epi32(INT32_MAX), unused);
const __mWi threshold = _mmW_sub_epi32(_mmW_srli_epi32(mask, 1), _mmW_srai_epi32(scaled, 31));
{simd.count_above}""",
        FLOAT_ROUND: rounded.format("offset"),
        FLOAT_ROUND_SIGNED: f"{simd.choose_below}\n{rounded.format('chosen')}",
        FLOAT_SUM: """const __mW shifted = _mmW_fmadd_ps(_mmW_cvtepi32_ps(right), right_scale, offset);
return _mmW_cvtps_epi32(_mmW_fmadd_ps(_mmW_cvtepi32_ps(left), left_scale, shifted));""",
    }


def _with_scalar(simd: Simd) -> dict[tuple[BinaryOperator, ir.DType], str]:
    return {
        (operator, dtype): simd.text(
            f"const {simd.types[dtype]} right = {_BROADCASTS[dtype].format('number')};\nreturn {text};"
        )
        for (operator, dtype), text in _OPERATIONS.items()
    }


@cache
def unit_of(simd: Simd, num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    return simd.width.unit(
        loads={dtype: simd.load(dtype, num) for dtype in (I8, I16, I32, F32)},
        stores={dtype: simd.store(dtype, num) for dtype in (I8, I16, I32, F32)},
        saturating_stores={dtype: simd.store(dtype, num, saturates=True) for dtype in (I8, I16)},
        broadcasts={dtype: simd.text(text.format("value")) for dtype, text in _BROADCASTS.items()},
        binaries={key: simd.text(text) for key, text in _OPERATIONS.items()},
        with_scalar=_with_scalar(simd),
        functions=tuple((function, simd.text(text)) for function, text in _functions(simd).items()),
        num=num,
    )
