"""Operations on four lanes of 32 bits: what element-wise operators are made of."""

from bytewright import ir
from bytewright.ir.expr import BinaryOperator, binary
from bytewright.ir.scalar_functions import DOUBLE_ROUND, DOUBLE_ROUND_WIDE, HIGH_MULTIPLY, HIGH_MULTIPLY_WIDE
from bytewright.lower.isa.vector_unit import VectorUnit, lane_wise, memory_parameter, register_parameter

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


def vector(name: str, access: ir.Access = ir.Access.READ, dtype: ir.DType = I32) -> ir.BufferParameter:
    """Four values of 32 bits."""
    return register_parameter(name, LANES, dtype, TYPES[dtype], access)


def _load(dtype: ir.DType, text: str) -> ir.Instruction:
    wide = F32 if dtype is F32 else I32
    parameters = (vector("values", ir.Access.WRITE, wide), memory_parameter("elements", LANES, dtype))
    comment = f"Four elements of {dtype.value} that lie one after another, each in a lane of 32 bits."
    name = f"neon_load_{dtype.value}"
    return lane_wise(name, LANES, parameters, lambda given: ir.cast(given[0], wide), text, FEATURE, comment)


def _store(dtype: ir.DType, text: str) -> ir.Instruction:
    wide = F32 if dtype is F32 else I32
    memory = memory_parameter("elements", LANES, dtype, ir.Access.WRITE)
    comment = f"Four lanes of 32 bits as elements of {dtype.value}, one after another."
    return lane_wise(
        f"neon_store_{dtype.value}",
        LANES,
        (memory, vector("values", dtype=wide)),
        lambda given: ir.cast(given[0], dtype),
        text,
        FEATURE,
        comment,
    )


def _broadcast(dtype: ir.DType) -> ir.Instruction:
    return lane_wise(
        f"neon_broadcast_{dtype.value}",
        LANES,
        (vector("result", ir.Access.WRITE, dtype), ir.ScalarParameter(ir.Var("value", dtype))),
        lambda given: given[0],
        f"return vdupq_n_{_SUFFIXES[dtype]}(value);",
        FEATURE,
    )


def _binary(operator: BinaryOperator, dtype: ir.DType) -> ir.Instruction:
    result, left, right = (
        vector("result", ir.Access.WRITE, dtype),
        *(vector(n, dtype=dtype) for n in ("left", "right")),
    )
    name = f"{_OPERATORS[operator]}q_{_SUFFIXES[dtype]}"
    return lane_wise(
        f"neon_{_OPERATORS[operator]}_{dtype.value}",
        LANES,
        (result, left, right),
        lambda given: binary(operator, *given),
        f"return v{name}(left, right);",
        FEATURE,
    )


def _function(function: ir.ScalarFunction, text: str) -> ir.Instruction:
    """The function on each lane; the C text has its parameters' names."""
    parameters = (vector("result", ir.Access.WRITE), *(vector(p.name) for p in function.parameters))
    name = f"neon_{function.name}"
    return lane_wise(name, LANES, parameters, lambda given: function(*given), text, FEATURE, function.comment)


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

UNIT = VectorUnit(
    lanes=LANES,
    types=TYPES,
    loads={
        I8: _load(I8, _LOAD_I8),
        I16: _load(I16, "return vmovl_s16(vld1_s16(elements));"),
        I32: _load(I32, "return vld1q_s32(elements);"),
        F32: _load(F32, "return vld1q_f32(elements);"),
    },
    stores={
        I8: _store(I8, _STORE_I8),
        I32: _store(I32, "vst1q_s32(elements, values);"),
        F32: _store(F32, "vst1q_f32(elements, values);"),
    },
    broadcasts={dtype: _broadcast(dtype) for dtype in TYPES},
    binaries={
        # Floats have no minimum here: that of C++, which the IR has, passes on another operand where one is no number.
        (operator, dtype): _binary(operator, dtype)
        for operator in _OPERATORS
        for dtype in TYPES
        if dtype is I32 or operator not in (BinaryOperator.MIN, BinaryOperator.MAX)
    },
    functions={
        "double_round": _function(DOUBLE_ROUND, _ROUND),
        "double_round_wide": _function(DOUBLE_ROUND_WIDE, _ROUND),
        "high_multiply": _function(HIGH_MULTIPLY, "return vqrdmulhq_s32(value, multiplier);"),
        "high_multiply_wide": _function(HIGH_MULTIPLY_WIDE, "return vqrdmulhq_s32(value, multiplier);"),
    },
)
