"""Lanes of 16 bits for sums of bytes, and of 8 bits for the greatest and the least of them."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.lower.isa.narrow import narrow_lanes
from bytewright.lower.isa.rvv.lanes import FEATURE

SUMS = narrow_lanes(
    "rvv",
    32,
    ir.DType.I16,
    "vint16m4_t",
    FEATURE,
    fill="return __riscv_vmv_v_x_i16m4((int16_t)value, 32);",
    combines={
        BinaryOperator.ADD: "return __riscv_vwadd_wv_i16m4(results, __riscv_vle8_v_i8m2(elements, 32), 32);"
    },
    store="__riscv_vse16_v_i16m4(elements, results, 32);",
)
EXTREMA = narrow_lanes(
    "rvv",
    64,
    ir.DType.I8,
    "vint8m4_t",
    FEATURE,
    fill="return __riscv_vmv_v_x_i8m4((int8_t)value, 64);",
    combines={
        operator: f"return __riscv_{name}_vv_i8m4(results, __riscv_vle8_v_i8m4(elements, 64), 64);"
        for operator, name in ((BinaryOperator.MAX, "vmax"), (BinaryOperator.MIN, "vmin"))
    },
    store="__riscv_vse8_v_i8m4(elements, results, 64);",
)
