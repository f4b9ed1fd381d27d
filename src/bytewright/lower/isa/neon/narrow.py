"""Lanes of 16 bits for sums of bytes, and of 8 bits for the greatest and the least of them."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.narrow import narrow_lanes
from bytewright.lower.isa.neon.lanes import FEATURE

SUMS = narrow_lanes(
    "neon",
    8,
    ir.DType.I16,
    "int16x8_t",
    FEATURE,
    fill="return vdupq_n_s16((int16_t)value);",
    combines={BinaryOperator.ADD: "return vaddw_s8(results, vld1_s8(elements));"},
    store="vst1q_s16(elements, results);",
)
EXTREMA = narrow_lanes(
    "neon",
    16,
    ir.DType.I8,
    "int8x16_t",
    FEATURE,
    fill="return vdupq_n_s8((int8_t)value);",
    combines={
        operator: f"return {name}q_s8(results, vld1q_s8(elements));"
        for operator, name in ((BinaryOperator.MAX, "vmax"), (BinaryOperator.MIN, "vmin"))
    },
    store="vst1q_s8(elements, results);",
)
