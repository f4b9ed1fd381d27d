"""Operations on four lanes of 32 bits: what element-wise operators are made of."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator, binary
from bytewright.ir.scalar_functions import DOUBLE_ROUND, DOUBLE_ROUND_WIDE, HIGH_MULTIPLY, HIGH_MULTIPLY_WIDE
from bytewright.lower.isa.vector_unit import (
    VectorUnit,
    lane_wise,
    memory_parameter,
    register_parameter,
)

I8, U8, I16, I32 = ir.DType.I8, ir.DType.U8, ir.DType.I16, ir.DType.I32
FEATURE = ir.Feature(
    "mve", "defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1) && defined(__GNUC__)", "arm_mve.h"
)
LANES = 4
VECTOR = "int32x4_t"


def vector(name: str, access: ir.Access = ir.Access.READ) -> ir.BufferParameter:
    """Four values of 32 bits."""
    return register_parameter(name, LANES, I32, VECTOR, access)


def _load(dtype: ir.DType, text: str) -> ir.Instruction:
    parameters = (vector("values", ir.Access.WRITE), memory_parameter("elements", LANES, dtype))
    name = f"mve_load_{dtype.value}"
    comment = f"Four elements of {dtype.value} that lie one after another, each in a lane of 32 bits."
    return lane_wise(name, LANES, parameters, lambda given: ir.cast(given[0], I32), text, FEATURE, comment)


def _store(dtype: ir.DType, text: str) -> ir.Instruction:
    parameters = (memory_parameter("elements", LANES, dtype, ir.Access.WRITE), vector("values"))
    name = f"mve_store_{dtype.value}"
    comment = f"Four lanes of 32 bits as elements of {dtype.value}, one after another."
    return lane_wise(name, LANES, parameters, lambda given: ir.cast(given[0], dtype), text, FEATURE, comment)


def _binary(operator: BinaryOperator, name: str, intrinsic: str) -> ir.Instruction:
    parameters = (vector("result", ir.Access.WRITE), vector("left"), vector("right"))
    return lane_wise(
        f"mve_{name}",
        LANES,
        parameters,
        lambda given: binary(operator, *given),
        f"return {intrinsic}(left, right);",
        FEATURE,
    )


def _with_scalar(operator: BinaryOperator, name: str, intrinsic: str) -> ir.Instruction:
    right = ir.ScalarParameter(ir.Var("right", I32))
    parameters = (vector("result", ir.Access.WRITE), vector("left"), right)
    return lane_wise(
        f"mve_{name}_n",
        LANES,
        parameters,
        lambda given: binary(operator, *given),
        f"return {intrinsic}(left, right);",
        FEATURE,
    )


def _function(function: ir.ScalarFunction, text: str) -> ir.Instruction:
    """The function on each lane; the C text has its parameters' names."""
    operands = tuple(vector(parameter.name) for parameter in function.parameters)
    parameters = (vector("result", ir.Access.WRITE), *operands)
    name = f"mve_{function.name}"
    return lane_wise(name, LANES, parameters, lambda given: function(*given), text, FEATURE, function.comment)


# `vqrdmulh` is (2 * value * multiplier + 2^31) >> 32: the high multiply of every form, as nothing saturates. It is
# rounded half up; adding the sign before the rounding shift, which rounds half up too, rounds half away from zero.
_ROUND = """const int32x4_t scaled = vqrdmulhq_s32(value, multiplier);
return vrshlq_s32(vqaddq_s32(scaled, vshrq_n_s32(vandq_s32(scaled, vnegq_s32(shift)), 31)), vnegq_s32(shift));"""
# As long as no shift is 0, the sign is that of the value.
_ROUND_SHIFTED = """const int32x4_t scaled = vqrdmulhq_s32(value, multiplier);
return vrshlq_s32(vaddq_s32(scaled, vshrq_n_s32(scaled, 31)), vnegq_s32(shift));"""

UNIT = VectorUnit(
    lanes=LANES,
    types={I32: VECTOR},
    loads={
        I8: _load(I8, "return vldrbq_s32(elements);"),
        I16: _load(I16, "return vldrhq_s32(elements);"),
        I32: _load(I32, "return vldrwq_s32(elements);"),
    },
    stores={
        I8: _store(I8, "vstrbq_s32(elements, values);"),
        I32: _store(I32, "vstrwq_s32(elements, values);"),
    },
    broadcasts={
        I32: lane_wise(
            "mve_broadcast",
            LANES,
            (vector("result", ir.Access.WRITE), ir.ScalarParameter(ir.Var("value", I32))),
            lambda given: given[0],
            "return vdupq_n_s32(value);",
            FEATURE,
        )
    },
    binaries={
        (BinaryOperator.ADD, I32): _binary(BinaryOperator.ADD, "add", "vaddq_s32"),
        (BinaryOperator.SUB, I32): _binary(BinaryOperator.SUB, "sub", "vsubq_s32"),
        (BinaryOperator.MUL, I32): _binary(BinaryOperator.MUL, "mul", "vmulq_s32"),
        (BinaryOperator.MIN, I32): _binary(BinaryOperator.MIN, "min", "vminq_s32"),
        (BinaryOperator.MAX, I32): _binary(BinaryOperator.MAX, "max", "vmaxq_s32"),
    },
    with_scalar={
        (BinaryOperator.ADD, I32): _with_scalar(BinaryOperator.ADD, "add", "vaddq_n_s32"),
        (BinaryOperator.SUB, I32): _with_scalar(BinaryOperator.SUB, "sub", "vsubq_n_s32"),
        (BinaryOperator.MUL, I32): _with_scalar(BinaryOperator.MUL, "mul", "vmulq_n_s32"),
    },
    functions={
        "double_round": _function(DOUBLE_ROUND, _ROUND_SHIFTED),
        "double_round_wide": _function(DOUBLE_ROUND_WIDE, _ROUND),
        "high_multiply": _function(HIGH_MULTIPLY, "return vqrdmulhq_s32(value, multiplier);"),
        "high_multiply_wide": _function(HIGH_MULTIPLY_WIDE, "return vqrdmulhq_s32(value, multiplier);"),
    },
)
