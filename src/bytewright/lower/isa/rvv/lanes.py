"""Sixteen lanes of 32 bits, in groups of four registers: what element-wise operators are made of.

Every text names its number of lanes, so results are the same whatever the length of a register, of at least 128 bits.
"""

from functools import cache

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import DOUBLE_ROUND, DOUBLE_ROUND_WIDE, HIGH_MULTIPLY, HIGH_MULTIPLY_WIDE
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width

I8, I16, I32, F32 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.F32
FEATURE = ir.Feature(
    "v",
    "defined(__riscv_v_intrinsic) && __riscv_v_intrinsic >= 12000 && __riscv_v_min_vlen >= 128",
    "riscv_vector.h",
)
LANES = 16
VECTORS = Width("rvv", LANES, {I32: "vint32m4_t", F32: "vfloat32m4_t"}, FEATURE)
_ADD, _SUB, _MUL = BinaryOperator.ADD, BinaryOperator.SUB, BinaryOperator.MUL
# Floats have no minimum here: that of C++, which the IR has, passes on another operand where one is no number.
_INTEGER = {_ADD: "vadd", _SUB: "vsub", _MUL: "vmul", BinaryOperator.MIN: "vmin", BinaryOperator.MAX: "vmax"}
_FLOAT = {_ADD: "vfadd", _SUB: "vfsub", _MUL: "vfmul"}
_BROADCASTS = {I32: "__riscv_vmv_v_x_i32m4(value, 16)", F32: "__riscv_vfmv_v_f_f32m4(value, 16)"}


def _operations(form: str, right: str) -> dict[tuple[BinaryOperator, ir.DType], str]:
    """Operations on a vector and what stands on its right."""
    integer = {
        (each, I32): f"__riscv_{name}_v{form}_i32m4(left, {right}, 16)" for each, name in _INTEGER.items()
    }
    scalar = {"v": "v", "x": "f"}[form]
    floats = {
        (each, F32): f"__riscv_{name}_v{scalar}_f32m4(left, {right}, 16)" for each, name in _FLOAT.items()
    }
    return integer | floats


_LOADS = {
    I8: ("__riscv_vsext_vf4_i32m4", "__riscv_vle8_v_i8m1(elements, {num})"),
    I16: ("__riscv_vsext_vf2_i32m4", "__riscv_vle16_v_i16m2(elements, {num})"),
    I32: ("__riscv_vle32_v_i32m4", "elements"),
    F32: ("__riscv_vle32_v_f32m4", "elements"),
}


def _load(dtype: ir.DType, num: int) -> str:
    """Loads the first lanes; the others are 1, of which every rescale is defined."""
    widen, loaded = _LOADS[dtype]
    loaded = loaded.format(num=num)
    if num == LANES:
        return f"return {widen}({loaded}, 16);"
    one = _BROADCASTS[dtype if dtype is F32 else I32].replace("value", "1")
    return f"return {widen}_tu({one}, {loaded}, {num});"


_NARROWED = "__riscv_vncvt_x_x_w_i8m1(__riscv_vncvt_x_x_w_i16m2(values, 16), 16)"
_LIMITED = "__riscv_vnclip_wx_i8m1(__riscv_vnclip_wx_i16m2(values, 0, __RISCV_VXRM_RDN, 16), 0, __RISCV_VXRM_RDN, 16)"
# vsmul is (value * multiplier + 2^30) >> 31. The rounding shift rounds half up; with the sign added first, where
# anything is shifted, it rounds half away from zero.
_SCALED = "__riscv_vsmul_vv_i32m4(value, multiplier, __RISCV_VXRM_RNU, 16)"
_ROUND = f"""const vint32m4_t scaled = {_SCALED};
const vint32m4_t both = __riscv_vand_vv_i32m4(scaled, __riscv_vneg_v_i32m4(shift, 16), 16);
const vint32m4_t away = __riscv_vsadd_vv_i32m4(scaled, __riscv_vsra_vx_i32m4(both, 31, 16), 16);
const vuint32m4_t down = __riscv_vreinterpret_v_i32m4_u32m4(shift);
return __riscv_vssra_vv_i32m4(away, down, __RISCV_VXRM_RNU, 16);"""


_GATHER = """const vuint32m4_t bytes = __riscv_vreinterpret_v_i32m4_u32m4(__riscv_vsll_vx_i32m4(places, 2, 16));
return __riscv_vluxei32_v_i32m4(elements, bytes, 16);"""


@cache
def unit_of(num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    return VECTORS.unit(
        loads={dtype: _load(dtype, num) for dtype in _LOADS},
        stores={
            I8: f"__riscv_vse8_v_i8m1(elements, {_NARROWED}, {num});",
            I32: f"__riscv_vse32_v_i32m4(elements, values, {num});",
            F32: f"__riscv_vse32_v_f32m4(elements, values, {num});",
        },
        saturating_stores={I8: f"__riscv_vse8_v_i8m1(elements, {_LIMITED}, {num});"},
        broadcasts=_BROADCASTS,
        binaries=_operations("v", "right"),
        with_scalar={
            **{key: f"return {text};" for key, text in _operations("x", "number").items()},
            (BinaryOperator.SHR, I32): "return __riscv_vsra_vx_i32m4(left, (size_t)number, 16);",
        },
        gathers={I32: _GATHER},
        functions=(
            *((function, f"return {_SCALED};") for function in (HIGH_MULTIPLY, HIGH_MULTIPLY_WIDE)),
            *((function, _ROUND) for function in (DOUBLE_ROUND, DOUBLE_ROUND_WIDE)),
        ),
        num=num,
    )


UNIT = unit_of(LANES)
