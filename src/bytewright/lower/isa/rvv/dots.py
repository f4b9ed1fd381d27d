"""Products of an activation, a scalar, with sixteen weights: one multiply-add adds them to as many sums of 32 bits.

Six sums of sixteen lanes are 24 of the 32 registers, weights of 16 bits two more. Weights are widened as they are
loaded, once for all pixels of a tile.
"""

from bytewright.lower.isa.products import Products
from bytewright.lower.isa.rvv.lanes import F32, I8, I16, I32, LANES, VECTORS, unit_of

_CHUNK = 64
BYTE_DOTS = Products(VECTORS, I32, 1, I8, I8, I8, I16, "vint16m2_t", "bytes", scalar="int8_t").tile(
    units=unit_of,
    max_vectors=1,
    max_sums=6,
    broadcasts={I8: "return elements[0];"},
    load="return __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(elements, 16), 16);",
    dot="return __riscv_vwmacc_vx_i32m4(sums, activations, filters, 16);",
    chunk=_CHUNK,
    copy=lambda num: f"__riscv_vse8_v_i8m4(copy, __riscv_vle8_v_i8m4(elements, {num}), {num});",
    fill="__riscv_vse8_v_i8m4(copy, __riscv_vmv_v_x_i8m4((int8_t)value, 64), 64);",
)
FLOAT_DOTS = Products(VECTORS, F32, 1, F32, F32, F32, F32, "vfloat32m4_t", "floats", scalar="float").tile(
    units=unit_of,
    max_vectors=1,
    max_sums=6,
    broadcasts={F32: "return elements[0];"},
    load=unit_of(LANES).loads[F32],
    dot="return __riscv_vfmacc_vf_f32m4(sums, activations, filters, 16);",
    chunk=LANES,
    copy=lambda num: f"__riscv_vse32_v_f32m4(copy, __riscv_vle32_v_f32m4(elements, {num}), {num});",
    fill="__riscv_vse32_v_f32m4(copy, __riscv_vfmv_v_f_f32m4(value, 16), 16);",
)
