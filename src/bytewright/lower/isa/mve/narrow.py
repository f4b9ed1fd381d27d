"""Sums and extrema of bytes: eight results of 16 bits in a register, or sixteen of 8."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.mve.lanes import FEATURE
from bytewright.lower.isa.narrow import narrow_lanes

SUMS = narrow_lanes(
    "mve",
    8,
    ir.DType.I16,
    "int16x8_t",
    FEATURE,
    fill="return vdupq_n_s16((int16_t)value);",
    combines={BinaryOperator.ADD: "return vaddq_s16(results, vldrbq_s16(elements));"},
    store="vstrhq_s16(elements, results);",
)
EXTREMA = narrow_lanes(
    "mve",
    16,
    ir.DType.I8,
    "int8x16_t",
    FEATURE,
    fill="return vdupq_n_s8((int8_t)value);",
    combines={
        BinaryOperator.MAX: "return vmaxq_s8(results, vldrbq_s8(elements));",
        BinaryOperator.MIN: "return vminq_s8(results, vldrbq_s8(elements));",
    },
    store="vstrbq_s8(elements, results);",
)
