"""Products of an activation, a scalar, with sixteen weights: one multiply-add adds them to as many sums of 32 bits.

Six sums of sixteen lanes are 24 of the 32 registers, weights of 16 bits two more. Weights are widened as they are
loaded, once for all pixels of a tile.
"""

from bytewright import ir
from bytewright.lower.isa.products import Products, Tile
from bytewright.lower.isa.rvv.lanes import F32, I8, I16, I32, LANES, VECTORS, unit_of
from bytewright.lower.isa.taps import tap_products


def _integer_dots(element: ir.DType, noun: str) -> Tile:
    """Of activations of 8 or 16 bits; copies fill groups of four registers."""
    bits, chunk = 8 * element.size_bytes, 64 // element.size_bytes
    kind, store, load = f"i{bits}m4", f"__riscv_vse{bits}_v", f"__riscv_vle{bits}_v"
    products = Products(VECTORS, I32, 1, element, I8, element, I16, "vint16m2_t", noun, scalar=f"int{bits}_t")
    return products.tile(
        units=unit_of,
        max_vectors=1,
        max_sums=6,
        broadcasts={element: "return elements[0];"},
        load="return __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(elements, 16), 16);",
        dot="return __riscv_vwmacc_vx_i32m4(sums, activations, filters, 16);",
        chunk=chunk,
        copy=lambda num: f"{store}_{kind}(copy, {load}_{kind}(elements, {num}), {num});",
        fill=f"{store}_{kind}(copy, __riscv_vmv_v_x_{kind}((int{bits}_t)value, {chunk}), {chunk});",
    )


BYTE_DOTS, HALF_DOTS = _integer_dots(I8, "bytes"), _integer_dots(I16, "halves")
TAPS = tap_products(
    VECTORS,
    "vint16m2_t",
    loads={
        I8: "return __riscv_vsext_vf2_i16m2(__riscv_vle8_v_i8m1(elements, 16), 16);",
        I16: "return __riscv_vle16_v_i16m2(elements, 16);",
    },
    adds=("return __riscv_vwmacc_vv_i32m4(sums, elements, weights, 16);",),
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
