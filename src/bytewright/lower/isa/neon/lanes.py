"""Operations on four lanes of 32 bits: what element-wise operators are made of."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import DOUBLE_ROUND, DOUBLE_ROUND_WIDE, HIGH_MULTIPLY, HIGH_MULTIPLY_WIDE
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
_LOAD_I8 = """int32_t word;
__builtin_memcpy(&word, elements, sizeof word);
return vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(word)))));"""
_STORE_I8 = """const int16x4_t halves = vmovn_s32(values);
const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
const int32_t word = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
__builtin_memcpy(elements, &word, sizeof word);"""

UNIT = VECTORS.unit(
    loads={
        I8: _LOAD_I8,
        I16: "return vmovl_s16(vld1_s16(elements));",
        I32: "return vld1q_s32(elements);",
        F32: "return vld1q_f32(elements);",
    },
    stores={I8: _STORE_I8, I32: "vst1q_s32(elements, values);", F32: "vst1q_f32(elements, values);"},
    broadcasts={dtype: f"vdupq_n_{suffix}(value)" for dtype, suffix in _SUFFIXES.items()},
    binaries={
        # Floats have no minimum here: that of C++, which the IR has, passes on another operand where one is no number.
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
    ),
)
