"""Four lanes of float32, on cores whose vectors have them, and their products: a tile of convolutions.

A product is of a vector of weights and an activation that stays in a general register; it is added rounded once. Six
sums of four lanes and two vectors of weights are the eight registers. Subnormal numbers count as zero, and what is no
number is the default one, whatever FPSCR says.
"""

from functools import cache

from bytewright import ir
from bytewright.ir.expr import BinaryOperator
from bytewright.ir.scalar_functions import ROUND
from bytewright.lower.isa.mve import lanes
from bytewright.lower.isa.mve.lanes import LANES
from bytewright.lower.isa.products import Products
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.isa.width import Width

F32, I8, I32 = ir.DType.F32, ir.DType.I8, ir.DType.I32
FEATURE = ir.Feature(
    "mve-float",
    "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 2) && defined(__GNUC__) && !defined(__ARM_RWPI)",
    "arm_mve.h",
)
VECTORS = Width("mve_float", LANES, {F32: "float32x4_t", I32: lanes.VECTOR}, FEATURE)
_OPERATORS = {BinaryOperator.ADD: "add", BinaryOperator.SUB: "sub", BinaryOperator.MUL: "mul"}
# The IR's minimum and maximum keep the left one where neither is less, as where one is no number.
_CHOSEN = {
    BinaryOperator.MIN: "vpselq_f32(right, left, vcmpltq_f32(right, left))",
    BinaryOperator.MAX: "vpselq_f32(right, left, vcmpltq_f32(left, right))",
}
_BINARIES = {
    **{(operator, F32): f"v{name}q_f32(left, right)" for operator, name in _OPERATORS.items()},
    **{(operator, F32): text for operator, text in _CHOSEN.items()},
}


def _load(num: int) -> str:
    if num == LANES:
        return "return vldrwq_f32(elements);"
    return f"""float32x4_t some = vdupq_n_f32(1.0f);
__builtin_memcpy(&some, elements, {num * F32.size_bytes});
return some;"""


def _store(num: int) -> str:
    if num == LANES:
        return "vstrwq_f32(elements, values);"
    return f"__builtin_memcpy(elements, &values, {num * F32.size_bytes});"


@cache
def unit_of(num: int) -> VectorUnit:
    """Vectors of which the first `num` lanes are loaded and stored."""
    return VECTORS.unit(
        loads={F32: _load(num)},
        stores={F32: _store(num)},
        broadcasts={F32: "vdupq_n_f32(value)"},
        binaries=_BINARIES,
        functions=(),
        num=num,
    )


UNIT = unit_of(LANES)
# For layers whose sums are integers and whose activations are floats.
MIXED = VECTORS.unit(
    loads={F32: _load(LANES), I8: lanes.LOADS[I8], I32: lanes.LOADS[I32]},
    stores={F32: _store(LANES), I8: lanes.STORES[I8], I32: lanes.STORES[I32]},
    broadcasts={F32: "vdupq_n_f32(value)", I32: lanes.BROADCAST},
    binaries={**_BINARIES, **lanes.BINARIES},
    with_scalar={
        **{(operator, F32): f"return v{name}q_n_f32(left, number);" for operator, name in _OPERATORS.items()},
        **lanes.WITH_SCALAR,
    },
    functions=((ROUND, "return vrndaq_f32(x);"),),
    conversions={(I32, F32): "vcvtq_f32_s32(values)", (F32, I32): "vcvtq_s32_f32(values)"},
)
FLOAT_DOTS = Products(VECTORS, F32, 1, F32, F32, F32, F32, "float32x4_t", "floats", scalar="float").tile(
    units=unit_of,
    max_vectors=2,
    max_sums=6,
    broadcasts={F32: "return elements[0];"},
    load=UNIT.loads[F32],
    dot="return vfmaq_n_f32(sums, filters, activations);",
)
