"""Operations on four lanes of 32 bits: what element-wise operators are made of."""

from functools import cache

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import (
    DOUBLE_ROUND,
    DOUBLE_ROUND_WIDE,
    HIGH_MULTIPLY,
    HIGH_MULTIPLY_WIDE,
    SCALE_HIGH,
)
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
FEATURE = ir.Feature(
    "neon-dotprod", "defined(__ARM_FEATURE_DOTPROD) && !defined(__ARM_BIG_ENDIAN)", "arm_neon.h"
)
LANES = 4
TYPES = {I32: "int32x4_t", F32: "float32x4_t"}
_SUFFIXES = {I32: "s32", F32: "f32"}
_OPERATORS = {
    BinaryOperator.ADD: "add",
    BinaryOperator.SUB: "sub",
    BinaryOperator.MUL: "mul",
    BinaryOperator.MIN: "min",
    BinaryOperator.MAX: "max",
}


VECTORS = Width("neon", LANES, TYPES, FEATURE)

# `vqrdmulhq` is (2 * value * multiplier + 2^31) >> 32, as nothing saturates. The rounding shift rounds half up; with
# the sign added first, where anything is shifted, it rounds half away from zero.
_ROUND = """const int32x4_t scaled = vqrdmulhq_s32(value, multiplier), down = vnegq_s32(shift);
return vrshlq_s32(vqaddq_s32(scaled, vshrq_n_s32(vandq_s32(scaled, down), 31)), down);"""
_WIDENED = {
    I8: "vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32({0})))))",
    I16: "vmovl_s16({0})",
    I32: "{0}",
    F32: "{0}",
}
# Of elements that fill a vector, and with ones in the lanes that have none.
_LOADED = {I16: "vld1_s16(elements)", I32: "vld1q_s32(elements)", F32: "vld1q_f32(elements)"}
_ONES = {
    I8: "int32_t some = 0x01010101",
    I16: "int16x4_t some = vdup_n_s16(1)",
    I32: "int32x4_t some = vdupq_n_s32(1)",
    F32: "float32x4_t some = vdupq_n_f32(1.0f)",
}
_NARROWED = """const int16x4_t halves = vmovn_s32(values);
const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
"""
_LIMITED = _NARROWED.replace("vmovn", "vqmovn")


def _load(dtype: ir.DType, num: int) -> str:
    if num == LANES and dtype in _LOADED:
        return f"return {_WIDENED[dtype].format(_LOADED[dtype])};"
    copied = f"__builtin_memcpy(&some, elements, {num * dtype.size_bytes});"
    return f"{_ONES[dtype]};\n{copied}\nreturn {_WIDENED[dtype].format('some')};"


def _store(dtype: ir.DType, num: int) -> str:
    if num == LANES:
        return f"vst1q_{_SUFFIXES[dtype]}(elements, values);"
    return f"__builtin_memcpy(elements, &values, {num * dtype.size_bytes});"


@cache
def unit_of(num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    stored = f"__builtin_memcpy(elements, &bytes, {num});"
    return VECTORS.unit(
        loads={dtype: _load(dtype, num) for dtype in _WIDENED},
        stores={I8: _NARROWED + stored, I32: _store(I32, num), F32: _store(F32, num)},
        saturating_stores={I8: _LIMITED + stored},
        broadcasts={dtype: f"vdupq_n_{suffix}(value)" for dtype, suffix in _SUFFIXES.items()},
        binaries={
            # Floats have no minimum here: that of C++, which the IR has, passes on another operand where one is no
            # number.
            (operator, dtype): f"v{name}q_{suffix}(left, right)"
            for operator, name in _OPERATORS.items()
            for dtype, suffix in _SUFFIXES.items()
            if dtype is I32 or operator not in (BinaryOperator.MIN, BinaryOperator.MAX)
        },
        functions=(
            (DOUBLE_ROUND, _ROUND),
            (DOUBLE_ROUND_WIDE, _ROUND),
            (HIGH_MULTIPLY, "return vqrdmulhq_s32(value, multiplier);"),
            (HIGH_MULTIPLY_WIDE, "return vqrdmulhq_s32(value, multiplier);"),
            (SCALE_HIGH, "return vrshlq_s32(vqdmulhq_s32(value, multiplier), vnegq_s32(shift));"),
        ),
        num=num,
    )


UNIT = unit_of(LANES)
