"""Operations on four lanes of 32 bits: what element-wise operators are made of."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import (
    DOUBLE_ROUND,
    DOUBLE_ROUND_WIDE,
    HIGH_MULTIPLY,
    HIGH_MULTIPLY_WIDE,
    LOGISTIC_15,
    REAL_ROUND,
    SCALE_HIGH,
    TANH_15,
)
from bytewright.lower.isa.mve.sigmoids import VECTOR, logistic_text, tanh_text
from bytewright.lower.isa.width import Width

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
ADD, SUB, MUL = BinaryOperator.ADD, BinaryOperator.SUB, BinaryOperator.MUL
MIN, MAX, SHR = BinaryOperator.MIN, BinaryOperator.MAX, BinaryOperator.SHR
AND, GE = BinaryOperator.AND, BinaryOperator.GE
FEATURE = ir.Feature(
    "mve",
    "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__) && !defined(__ARM_RWPI)",
    "arm_mve.h",
)
LANES = 4


VECTORS = Width("mve", LANES, {I32: VECTOR}, FEATURE)

# `vqrdmulh` is (2 * value * multiplier + 2^31) >> 32: the high multiply of every form, as nothing saturates. It is
# rounded half up; adding the sign before the rounding shift, which rounds half up too, rounds half away from zero.
_ROUND = """const int32x4_t scaled = vqrdmulhq_s32(value, multiplier);
return vrshlq_s32(vqaddq_s32(scaled, vshrq_n_s32(vandq_s32(scaled, vnegq_s32(shift)), 31)), vnegq_s32(shift));"""
# As long as no shift is 0, the sign is that of the value.
_ROUND_SHIFTED = """const int32x4_t scaled = vqrdmulhq_s32(value, multiplier);
return vrshlq_s32(vaddq_s32(scaled, vshrq_n_s32(scaled, 31)), vnegq_s32(shift));"""

# A lane is a register of single precision as well, and a conversion rounds half away from zero.
_REAL_ROUND_LANE = """vcvt.f64.s32 d3, s{lane}
vmul.f64 d3, d3, d2
vmaxnm.f64 d3, d3, d4
vminnm.f64 d3, d3, d5
vcvta.s32.f64 s{lane}, d3"""


def _real_round() -> str:
    lines = [line for lane in range(LANES) for line in _REAL_ROUND_LANE.format(lane=lane).splitlines()]
    text = "\n".join(f'    "{line}\\n"' for line in lines)
    return f"""#if defined(__ARM_FP) && (__ARM_FP & 8)
register int32x4_t value_ __asm__("q0") = value;
register double scale_ __asm__("d2") = scale;
register double low_ __asm__("d4") = low;
register double high_ __asm__("d5") = high;
__asm(
{text}
    : "+w"(value_) : "w"(scale_), "w"(low_), "w"(high_) : "d3");
return value_;
#else
for (int32_t lane = 0; lane < {LANES}; ++lane) {{
    value[lane] = real_round(value[lane], scale, low, high);
}}
return value;
#endif"""


_OPERATORS = {ADD: "add", SUB: "sub", MUL: "mul", MIN: "min", MAX: "max"}

LOADS = {
    I8: "return vldrbq_s32(elements);",
    I16: "return vldrhq_s32(elements);",
    I32: "return vldrwq_s32(elements);",
}
STORES = {
    I8: "vstrbq_s32(elements, values);",
    I16: "vstrhq_s32(elements, values);",
    I32: "vstrwq_s32(elements, values);",
}
BROADCAST = "vdupq_n_s32(value)"
BINARIES = {(operator, I32): f"v{name}q_s32(left, right)" for operator, name in _OPERATORS.items()}
WITH_SCALAR = {
    **{
        (operator, I32): f"return v{_OPERATORS[operator]}q_n_s32(left, number);"
        for operator in (ADD, SUB, MUL)
    },
    (SHR, I32): "return vshlq_r_s32(left, -number);",
    (AND, I32): "return vandq_s32(left, vdupq_n_s32(number));",
}
GATHERS = {
    I8: "return vldrbq_gather_offset_s32(elements, vreinterpretq_u32_s32(places));",
    I16: "return vldrhq_gather_shifted_offset_s32(elements, vreinterpretq_u32_s32(places));",
    I32: "return vldrwq_gather_shifted_offset_s32(elements, vreinterpretq_u32_s32(places));",
}
SELECTS = {(GE, I32): "vpselq_s32(first, second, vcmpgeq_s32(left, right))"}

UNIT = VECTORS.unit(
    loads=LOADS,
    stores=STORES,
    broadcasts={I32: BROADCAST},
    binaries=BINARIES,
    with_scalar=WITH_SCALAR,
    wrapping={operator: BINARIES[operator, I32] for operator in (ADD, SUB)},
    gathers=GATHERS,
    selects=SELECTS,
    functions=(
        (DOUBLE_ROUND, _ROUND_SHIFTED),
        (DOUBLE_ROUND_WIDE, _ROUND),
        (HIGH_MULTIPLY, "return vqrdmulhq_s32(value, multiplier);"),
        (HIGH_MULTIPLY_WIDE, "return vqrdmulhq_s32(value, multiplier);"),
        (LOGISTIC_15, logistic_text()),
        (REAL_ROUND, _real_round()),
        (SCALE_HIGH, "return vrshlq_s32(vqdmulhq_s32(value, multiplier), vnegq_s32(shift));"),
        (TANH_15, tanh_text()),
    ),
)
