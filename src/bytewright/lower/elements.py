"""Element-wise operators as expressions: how each is computed on one element, and the table of them all.

What has a rule here is fused into the kernel of its producer; nothing else says which operators are element-wise.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.expr import both, either, equal
from bytewright.ir.scalar_functions import (
    ABS,
    ATAN2,
    CEIL,
    COS,
    DOUBLE_ROUND_WIDE,
    DYNAMIC_SCALE,
    DYNAMIC_ZERO_POINT,
    ERFC,
    EXP,
    EXPM1,
    FLOOR,
    FLOOR_QUOTIENT,
    FLOOR_REMAINDER,
    INTEGER_POWER,
    LOG,
    MULTIPLY_Q31,
    POW,
    RINT,
    ROUND,
    SIN,
    SQRT,
    TANH,
    WRAPPING_ADD,
    WRAPPING_MULTIPLY,
    WRAPPING_SUBTRACT,
)
from bytewright.lower.features import fixed_log, gain_control
from bytewright.lower.interpolate import interpolated_at, sigmoid_by_table
from bytewright.lower.point import Point
from bytewright.lower.requantise import float_rescaled, real_rescaled, rescaled
from bytewright.lower.rescale import double_round, fixed_scale
from bytewright.lower.scalar import Scalar, clamped, computed_on, in_32_bits, require_fits, require_i32
from bytewright.lower.sigmoid import logistic
from bytewright.ops import comparisons, elementwise, float_functions, quantization
from bytewright.ops.arithmetic.division import LARGEST_SHIFT
from bytewright.ops.arithmetic.division import headrooms as headrooms_of_bytes
from bytewright.ops.arithmetic.division import reciprocals as reciprocals_of_bytes
from bytewright.ops.arithmetic.interpolation import lines_wrap
from bytewright.ops.cast import TflCast
from bytewright.ops.dynamic_quantization import TflDynamicQuantize, TflDynamicScale, TflDynamicZeroPoint
from bytewright.ops.interpolation import Interpolate, TflSigmoid16
from bytewright.ops.rescale import Rescale, TflFloatRescale, TflRealRescale
from bytewright.ops.spectrum import TflFixedLog, TflGainControl

I16, I32, I64, F32 = ir.DType.I16, ir.DType.I32, ir.DType.I64, ir.DType.F32
_SIXTH = float(np.float32(1 / 6))
_SQRT_HALF, _SQRT_2_OVER_PI = float(np.float32(np.sqrt(0.5))), float(np.float32(np.sqrt(2 / np.pi)))


@dataclass(frozen=True, slots=True)
class ElementRule:
    """How an operator is computed on one element.

    Attributes:
        write: Takes the element and the operator's own descriptor.
        num_operands: The first operands, of which an element is needed; the others are read as a whole.
        is_by_channel: Whether those others may have an entry for each channel.
    """

    write: Callable[[Point, Any], Scalar]
    num_operands: int = 1
    is_by_channel: bool = False


def _of_two(combine: Callable[[Any, Any], Any]) -> ElementRule:
    """The rule of `combine`, which is monotone in both operands, so that the bounds of integers are at the corners."""

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        first, second = at.operands
        result = combine(first.expr, second.expr)
        if at.is_float:
            return Scalar(result)
        corners = [combine(x, y) for x in (first.low, first.high) for y in (second.low, second.high)]
        require_fits((min(corners), max(corners)), first.expr.dtype, "the result", at.node.where)
        return Scalar(result, min(corners), max(corners))

    return ElementRule(write, num_operands=2)


def _wrapping(combine: Callable[[Any, Any], Any], wide_function: ir.ScalarFunction) -> ElementRule:
    """The rule of `combine` modulo 2^32: in 64 bits, of which the lower half is taken, where 32 may not do.

    Of I64 it is `wide_function`, modulo 2^64.
    """

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        first, second = at.operands
        if first.expr.dtype is I64:
            return Scalar(wide_function(first.expr, second.expr), *I64.bounds)
        corners = [combine(x, y) for x in (first.low, first.high) for y in (second.low, second.high)]
        if in_32_bits(min(corners), max(corners)):
            return Scalar(combine(first.expr, second.expr), min(corners), max(corners))
        wide = combine(ir.cast(first.expr, I64), ir.cast(second.expr, I64))
        return Scalar(ir.cast(wide, I32), *I32.bounds)

    return ElementRule(write, num_operands=2)


def _extremum(combine: Callable[[Any, Any], Any]) -> ElementRule:
    """The rule of one of two operands; the second is the first of `combine`, which keeps it where it must."""
    return _of_two(lambda first, second: combine(second, first))


def _maximum(left: Any, right: Any) -> Any:
    return ir.maximum(left, right) if isinstance(left, ir.Expr) else max(left, right)


def _minimum(left: Any, right: Any) -> Any:
    return ir.minimum(left, right) if isinstance(left, ir.Expr) else min(left, right)


def _computed(
    function: Callable[..., ir.Expr], num_operands: int = 1, bounds: tuple[int, int] = (0, 0)
) -> ElementRule:
    """The rule of a function that reads each operand once; of integers its results are within bounds."""

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        return Scalar(function(*(operand.expr for operand in at.operands)), *bounds)

    return ElementRule(write, num_operands)


def _of_one(function: Callable[[ir.Expr], ir.Expr]) -> ElementRule:
    """The same for one operand, which gives a lambda the type of its parameter."""
    return _computed(function)


def _of_bound(function: Callable[[ir.Expr], ir.Expr]) -> ElementRule:
    """The rule of a function of a float that reads it more than once."""

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        return Scalar(function(at.body.let("value", at.operands[0].expr)))

    return ElementRule(write)


def _select(at: Point, operation: elementwise.Select) -> Scalar:
    del operation
    condition, first, second = at.operands
    low, high = min(first.low, second.low), max(first.high, second.high)
    return Scalar(ir.select(condition.expr, first.expr, second.expr), low, high)


def _clamp(at: Point, operation: elementwise.Clamp) -> Scalar:
    low, high = operation.minimum, operation.maximum
    if not at.is_float:
        return clamped(at.operands[0], int(low), int(high))
    x = at.operands[0].expr
    lower = ir.maximum(x, low) if low > float("-inf") else x
    return Scalar(ir.minimum(lower, high) if high < float("inf") else lower)


def _table(at: Point, operation: quantization.Table) -> Scalar:
    del operation
    table = at.array(1)
    place = at.operands[0].expr + -ir.DType.I8.bounds[0]
    entry = load(at.kernel.constant("table", table, ir.DType.I8), place)
    return Scalar(ir.cast(entry, I32), int(table.min()), int(table.max()))


def _bitwise_and(at: Point, operation: elementwise.BitwiseAnd) -> Scalar:
    del operation
    x, y = at.operands
    return Scalar(x.expr & y.expr, *at.node.outputs[0].type.dtype.bounds)


def _bitwise_xor(at: Point, operation: elementwise.BitwiseXor) -> Scalar:
    """The sum of both, but for the bits that both have."""
    del operation
    x, y = (at.body.let("bits", operand.expr) for operand in at.operands)
    found = ir.cast(x, I64) + ir.cast(y, I64) - ir.cast(x & y, I64) * 2
    return Scalar(ir.cast(found, I32), *at.node.outputs[0].type.dtype.bounds)


def _left_shifted(at: Point, operation: elementwise.LeftShift) -> Scalar:
    """By a product in 64 bits, which C defines of numbers below zero too."""
    del operation
    x, count = at.operands
    dtype = at.node.outputs[0].type.dtype
    power = ir.const(1, I64) << ir.cast(ir.clamp(count.expr, 0, 31), I64)
    return Scalar(ir.cast(ir.cast(ir.cast(x.expr, I64) * power, dtype), I32), *dtype.bounds)


def _right_shifted(at: Point, operation: elementwise.RightShift) -> Scalar:
    del operation
    x, count = at.operands
    most = 8 * at.node.outputs[0].type.dtype.size_bytes - 1
    return Scalar(x.expr >> ir.clamp(count.expr, 0, most), x.low, x.high)


def _bucketized(at: Point, operation: elementwise.Bucketize) -> Scalar:
    """By halves of the boundaries, without a branch: `place` is the first of those that are left to look at."""
    del operation
    table = at.array(1)
    boundaries, x = at.kernel.constant("boundaries", table, F32), at.body.let("value", at.operands[0].expr)
    place: ir.Expr = ir.const(0)
    left = len(table)
    while left > 1:
        half = left // 2
        is_below = x < load(boundaries, place + (half - 1))
        place = at.body.let("place", ir.select(is_below, place, place + half))
        left -= half
    last = ir.select(x < load(boundaries, place), place, place + 1)
    return Scalar(last, 0, len(table))


def _recentred(at: Point, operation: quantization.Recentre) -> Scalar:
    x, offset = at.operands[0], operation.offset
    return Scalar(x.expr + offset, x.low + offset, x.high + offset)


def _sigmoid(at: Point, operation: float_functions.Sigmoid) -> Scalar:
    """1 / (1 + exp(-x)) with an exponential that never overflows; below -9 it is exp(x) itself, as in LiteRT."""
    del operation
    return Scalar(logistic(at.body, at.body.let("value", at.operands[0].expr)))


def _gelu(at: Point, operation: float_functions.TflGelu) -> Scalar:
    bound = at.body.let("value", at.operands[0].expr)
    half = bound * 0.5
    if not operation.is_approximate:
        return Scalar(half * ERFC(bound * -_SQRT_HALF))
    cube = bound * float(np.float32(0.044715)) * bound * bound
    return Scalar(half * (TANH((bound + cube) * _SQRT_2_OVER_PI) + 1.0))


def _sign(bound: ir.Expr) -> ir.Expr:
    """What is not a number stays so, and zero keeps its sign."""
    one, minus_one = ir.const(1.0, F32), ir.const(-1.0, F32)
    return ir.select(bound > 0.0, one, ir.select(bound < 0.0, minus_one, bound))


def _leaky_relu(at: Point, operation: float_functions.TflLeakyRelu) -> Scalar:
    bound = at.body.let("value", at.operands[0].expr)
    return Scalar(ir.select(bound > 0.0, bound, bound * float(np.float32(operation.alpha))))


def _prelu(at: Point, operation: elementwise.TflPrelu) -> Scalar:
    """Of i8, the sum of two terms of which one is zero."""
    value, slope = at.operands
    bound = at.body.let("value", value.expr)
    if at.is_float:
        return Scalar(ir.select(bound >= 0.0, bound, bound * slope.expr))
    low, high = value.low - operation.input_zero_point, value.high - operation.input_zero_point
    centred = bound - operation.input_zero_point
    positive = Scalar(ir.maximum(centred, 0), max(low, 0), max(high, 0))
    above = double_round(positive, fixed_scale(*operation.above), at.node.where)
    slopes = [bound - operation.slope_zero_point for bound in (slope.low, slope.high)]
    corners = [factor * extent for factor in slopes for extent in (min(low, 0), min(high, 0))]
    product = ir.minimum(centred, 0) * (slope.expr - operation.slope_zero_point)
    product = at.body.let("product", product)
    below = double_round(
        Scalar(product, min(corners), max(corners)), fixed_scale(*operation.below), at.node.where
    )
    ends = (above.low + below.low, above.high + below.high)
    result = at.node.outputs[0].type.dtype
    require_i32(ends[0] + result.bounds[0], ends[1] - result.bounds[0], "the result", at.node.where)
    zero_point = operation.output_zero_point
    total = above.expr + at.body.let("below", below.expr) + zero_point
    return clamped(Scalar(total, ends[0] + zero_point, ends[1] + zero_point), *result.bounds)


def _integer_div(at: Point, operation: elementwise.TflIntegerDiv) -> Scalar:
    """By tables of reciprocals and of leading sign bits, in 64 bits: a numerator gains up to 31."""
    x, y = (operand.expr for operand in at.operands)
    numerator = at.body.let("numerator", x - operation.first_zero_point)
    divisor = at.body.let("divisor", y - operation.second_zero_point)
    numerator = at.body.let("signed_numerator", ir.select(divisor < 0, 0 - numerator, numerator))
    magnitude = at.body.let("magnitude", ir.maximum(ir.maximum(divisor, 0 - divisor), 1))
    headrooms = at.kernel.constant("headrooms", headrooms_of_bytes(), ir.DType.I8)
    reciprocals = at.kernel.constant("reciprocals", reciprocals_of_bytes(), I32)
    place = ir.select(numerator < 0, -1 - numerator, numerator)
    headroom = at.body.let("headroom", ir.cast(load(headrooms, place), I32))
    power = ir.const(1, I64) << ir.cast(headroom, I64)
    reciprocal = ir.cast(load(reciprocals, magnitude), I64)
    unscaled = at.body.let(
        "quotient", ir.cast(MULTIPLY_Q31(ir.cast(numerator, I64) * power, reciprocal), I32)
    )
    shift = headroom - ir.cast(load(headrooms, magnitude), I32) + (30 - operation.exponent)
    shift = at.body.let("shift", shift)
    scaled = DOUBLE_ROUND_WIDE(unscaled, operation.multiplier, ir.minimum(shift, LARGEST_SHIFT))
    low, high = ir.DType.I8.bounds
    ends = low - high - 1, high - low
    limited = ir.clamp(ir.select(shift > LARGEST_SHIFT, ir.const(0), scaled), *ends)
    zero_point = operation.output_zero_point
    return clamped(Scalar(limited + zero_point, ends[0] + zero_point, ends[1] + zero_point), low, high)


def _divided(at: Point) -> tuple[ir.Expr, ir.Expr]:
    """A dividend and a divisor of integers whose quotient and rest C defines: see `IntDiv`."""
    first, second = (operand.expr for operand in at.operands)
    least = at.node.outputs[0].type.dtype.bounds[0]
    divisor = at.body.let(
        "divisor", ir.select(equal(second, ir.const(0, second.dtype)), ir.const(1, second.dtype), second)
    )
    limited = ir.select(equal(divisor, ir.const(-1, divisor.dtype)), ir.maximum(first, least + 1), first)
    return at.body.let("dividend", limited), divisor


def _int_div(at: Point, operation: elementwise.IntDiv) -> Scalar:
    del operation
    dividend, divisor = _divided(at)
    return Scalar(dividend // divisor, *dividend.dtype.bounds)


def _floor_div(at: Point, operation: elementwise.TflFloorDiv) -> Scalar:
    first, second = at.operands
    if at.is_float:
        return Scalar(FLOOR_QUOTIENT(first.expr, second.expr))
    del operation
    shift = second.low.bit_length() - 1
    if second.low == second.high == 1 << max(shift, 0):
        return Scalar(first.expr >> shift, first.low >> shift, first.high >> shift)
    dividend, divisor = _divided(at)
    quotient = at.body.let("quotient", dividend // divisor)
    zero, one = ir.const(0, divisor.dtype), ir.const(1, divisor.dtype)
    rest = at.body.let("rest", dividend - quotient * divisor)
    is_below = ir.select(rest < 0, divisor > 0, both(rest > 0, divisor < 0))
    low, high = first.low, first.high
    return Scalar(quotient - ir.select(is_below, one, zero), -max(-low, high), max(-low, high))


def _floor_mod(at: Point, operation: elementwise.TflFloorMod) -> Scalar:
    first, second = at.operands
    if at.is_float:
        return Scalar(FLOOR_REMAINDER(first.expr, second.expr))
    del operation
    dividend, divisor = _divided(at)
    rest = at.body.let("rest", dividend % divisor)
    is_turned = ir.select(rest < 0, divisor > 0, both(rest > 0, divisor < 0))
    return Scalar(rest + ir.select(is_turned, divisor, ir.const(0, divisor.dtype)), second.low, second.high)


def _quantized(at: Point, operation: quantization.TflQuantize) -> Scalar:
    """roundf(x / scale) + zero point, saturated in float first so that the conversion is defined.

    The bound is the first operand of the maximum, which is what is left where the other is not a number.
    """
    zero_point, (low, high) = operation.zero_point, operation.dtype.bounds
    span = high - low + 1
    rounded = ROUND(at.operands[0].expr / ir.const(operation.scale, F32))
    above = ir.maximum(ir.const(float(-span - zero_point), F32), rounded)
    limited = at.body.let("rounded", ir.minimum(above, float(span - zero_point)))
    return clamped(Scalar(ir.cast(limited, I32) + zero_point, -span, span), low, high)


def _interpolated(at: Point, operation: Interpolate) -> Scalar:
    del operation
    table = at.array(1)
    wraps, entries = lines_wrap(table), at.kernel.constant("table", table, I16)
    value = interpolated_at(at.body, entries, at.operands[0].expr, wraps=wraps)
    return Scalar(value, *I16.bounds) if wraps else Scalar(value, int(table.min()), int(table.max()))


def _sigmoid16(at: Point, operation: TflSigmoid16) -> Scalar:
    scale = operation.multiplier, operation.shift
    value = sigmoid_by_table(at.kernel, at.operands[0].expr, scale, is_tanh=operation.is_tanh)
    return Scalar(value, I16.bounds[0] if operation.is_tanh else 0, I16.bounds[1])


def _quantized_dynamically(at: Point, operation: TflDynamicQuantize) -> Scalar:
    """roundf(x) + zero point, kept in the type by limits on whole floats, as in `_quantized`.

    Limits less the zero point are the same for a whole row.
    """
    del operation
    x, zero_point = at.operands
    low, high = (ir.const(float(bound), F32) - ir.cast(zero_point.expr, F32) for bound in ir.DType.I8.bounds)
    limited = ir.minimum(ir.maximum(low, ROUND(x.expr)), high)
    return Scalar(ir.cast(limited, I32) + zero_point.expr, *ir.DType.I8.bounds)


def _dequantized(at: Point, operation: quantization.TflDequantize) -> Scalar:
    return Scalar(ir.cast(at.operands[0].expr - operation.zero_point, F32) * operation.scale)


def _cast(at: Point, operation: TflCast) -> Scalar:
    """Integers as what they are computed on, in the bounds of their type, wrapped where they leave them."""
    x, dtype = at.operands[0], operation.dtype
    is_truth = x.expr.dtype is ir.DType.BOOL
    if dtype is ir.DType.BOOL:
        return Scalar(equal(equal(x.expr, ir.const(0, x.expr.dtype)), ir.FALSE))
    if dtype is F32:
        one, zero = ir.const(1.0, F32), ir.const(0.0, F32)
        return Scalar(ir.select(x.expr, one, zero) if is_truth else ir.cast(x.expr, F32))
    wide = computed_on(dtype)
    if is_truth:
        return Scalar(ir.select(x.expr, ir.const(1, wide), ir.const(0, wide)), 0, 1)
    low, high = dtype.bounds
    if at.is_float:
        return Scalar(_truncated(at, x.expr, operation), low, high)
    if low <= x.low and x.high <= high:
        return Scalar(ir.cast(x.expr, wide), x.low, x.high)
    return Scalar(ir.cast(ir.cast(x.expr, dtype), wide), low, high)


def _truncated(at: Point, x: ir.Expr, operation: TflCast) -> ir.Expr:
    """A float without what is behind its point; beyond the bounds of the type nothing is converted.

    The lower of the two limits may be rounded to the least value, which then is taken as it is.
    """
    (low, high), wide = operation.dtype.bounds, computed_on(operation.dtype)
    bound = at.body.let("value", x)
    above = ir.select(bound > float(low - 1), ir.cast(bound, wide), ir.const(low, wide))
    whole = ir.select(bound < float(high + 1), above, ir.const(high, wide))
    if operation.not_a_number == high:
        return whole
    return ir.select(equal(bound, bound), whole, ir.const(operation.not_a_number, wide))


ELEMENTS: dict[type[ir.Operation], ElementRule] = {
    float_functions.Abs: _computed(ABS),
    elementwise.Add: _of_two(operator.add),
    elementwise.Atan2: _computed(ATAN2, 2),
    elementwise.BitwiseAnd: ElementRule(_bitwise_and, num_operands=2),
    elementwise.BitwiseXor: ElementRule(_bitwise_xor, num_operands=2),
    elementwise.Bucketize: ElementRule(_bucketized),
    float_functions.Ceil: _computed(CEIL),
    elementwise.Clamp: ElementRule(_clamp),
    float_functions.Cos: _computed(COS),
    comparisons.Equal: _computed(equal, 2),
    float_functions.Exp: _computed(EXP),
    float_functions.Floor: _computed(FLOOR),
    comparisons.Greater: _computed(operator.gt, 2),
    comparisons.GreaterEqual: _computed(operator.ge, 2),
    Interpolate: ElementRule(_interpolated),
    float_functions.Log: _computed(LOG),
    elementwise.IntDiv: ElementRule(_int_div, num_operands=2),
    elementwise.LeftShift: ElementRule(_left_shifted, num_operands=2),
    comparisons.LogicalAnd: _computed(both, 2),
    comparisons.LogicalNot: _of_one(lambda x: equal(x, ir.FALSE)),
    comparisons.LogicalOr: _computed(either, 2),
    elementwise.Maximum: _extremum(_maximum),
    elementwise.Minimum: _extremum(_minimum),
    elementwise.Mul: _of_two(operator.mul),
    float_functions.Negate: _of_one(lambda x: x * -1.0),
    elementwise.Pow: _computed(POW, 2),
    quantization.Recentre: ElementRule(_recentred),
    Rescale: ElementRule(rescaled, is_by_channel=True),
    elementwise.RightShift: ElementRule(_right_shifted, num_operands=2),
    float_functions.Rsqrt: _of_one(lambda x: ir.const(1.0, F32) / SQRT(x)),
    elementwise.Select: ElementRule(_select, num_operands=3),
    float_functions.Sigmoid: ElementRule(_sigmoid),
    float_functions.Sin: _computed(SIN),
    elementwise.Sub: _of_two(operator.sub),
    quantization.Table: ElementRule(_table),
    float_functions.Tanh: _computed(TANH),
    TflCast: ElementRule(_cast),
    quantization.TflDequantize: ElementRule(_dequantized),
    elementwise.TflDiv: _computed(operator.truediv, 2),
    TflDynamicQuantize: ElementRule(_quantized_dynamically, num_operands=2),
    TflDynamicScale: _computed(DYNAMIC_SCALE, 2),
    TflDynamicZeroPoint: _computed(DYNAMIC_ZERO_POINT, 2, ir.DType.I8.bounds),
    float_functions.TflElu: _of_bound(lambda x: ir.select(x < 0.0, EXPM1(x), x)),
    TflFixedLog: ElementRule(fixed_log),
    elementwise.TflFloorDiv: ElementRule(_floor_div, num_operands=2),
    elementwise.TflFloorMod: ElementRule(_floor_mod, num_operands=2),
    TflFloatRescale: ElementRule(float_rescaled),
    TflGainControl: ElementRule(gain_control, num_operands=2),
    float_functions.TflGelu: ElementRule(_gelu),
    float_functions.TflHardSwish: _of_bound(lambda x: x * ir.clamp(x + 3.0, 0.0, 6.0) * _SIXTH),
    elementwise.TflIntegerDiv: ElementRule(_integer_div, num_operands=2),
    elementwise.TflIntegerPower: _computed(INTEGER_POWER, 2, I32.bounds),
    float_functions.TflLeakyRelu: ElementRule(_leaky_relu),
    elementwise.TflPrelu: ElementRule(_prelu, num_operands=2),
    quantization.TflQuantize: ElementRule(_quantized),
    TflRealRescale: ElementRule(real_rescaled, is_by_channel=True),
    float_functions.TflRound: _computed(RINT),
    TflSigmoid16: ElementRule(_sigmoid16),
    float_functions.TflSign: _of_bound(_sign),
    float_functions.TflSqrt: _computed(SQRT),
    elementwise.WrappingAdd: _wrapping(operator.add, WRAPPING_ADD),
    elementwise.WrappingMul: _wrapping(operator.mul, WRAPPING_MULTIPLY),
    elementwise.WrappingSub: _wrapping(operator.sub, WRAPPING_SUBTRACT),
}
