"""ADD, SUB and MUL, with broadcasting and fused activations."""

from __future__ import annotations

from collections.abc import Callable

from bytewright.frontends.tflite.accumulator import (
    checked_multiplier,
    clamp_activation,
    clamp_float,
    rescale,
)
from bytewright.frontends.tflite.conversion import Conversion, Operand
from bytewright.frontends.tflite.options import fused_activation
from bytewright.ir.graph import Operation
from bytewright.ir.types import DType
from bytewright.ops.arithmetic.factors import LEFT_SHIFT, prepare_product, prepare_sum
from bytewright.ops.arithmetic.multiplier import INT8_MAX, INT8_MIN, Multiplier
from bytewright.ops.arithmetic.rescale import double_round

_IDENTITY = Multiplier(1 << 30, 1)
"""A rescale by this changes nothing but the zero point."""
Int8Conversion = Callable[[Conversion, Operation, Operand, Operand], str]
"""Takes both operands to the int8 result before its activation."""


def convert_binary(at: Conversion, operation: Operation, convert_int8: Int8Conversion) -> None:
    """ADD, SUB or MUL: an operator on float32, and what converts it on int8."""
    at.require_counts((2,))
    activation = fused_activation(at, 0)
    first = at.activation_operand(0, "first operand")
    second = at.activation_operand(1, "second operand")
    at.require_same_dtype(first, second)
    if first.is_float:
        operands = (at.value_of(first, "first"), at.value_of(second, "second"))
        at.define(clamp_float(at, at.emit(operation, operands, "unclamped"), activation))
    else:
        rescaled = convert_int8(at, operation, first, second)
        at.define(clamp_activation(at, rescaled, activation, at.affine(at.output_tensor())))


def convert_sum(at: Conversion, operation: Operation, first: Operand, second: Operand) -> str:
    """Both operands to a common scale with 20 more bits, the sum, and back."""
    one, two = at.affine(first.tensor), at.affine(second.tensor)
    target = at.affine(at.output_tensor())
    factors = prepare_sum(at.operator.kind, one[0], two[0], target[0])
    left = _widened(at, first, factors[0], one[1], "first", LEFT_SHIFT)
    right = _widened(at, second, factors[1], two[1], "second", LEFT_SHIFT)
    total = at.emit(operation, (left, right), "sum")
    reach = _reach(factors[0], one[1]) + _reach(factors[1], two[1])
    factor = checked_multiplier(at, factors[2], -reach, reach)
    return rescale(at, total, [factor], 0, target[1], DType.I8, "rescaled")


def _reach(multiplier: Multiplier, zero_point: int) -> int:
    """Greatest magnitude of a widened operand of ADD or SUB."""
    extremes = [(value - zero_point) << LEFT_SHIFT for value in (INT8_MIN, INT8_MAX)]
    scaled = double_round(extremes, multiplier.multiplier, multiplier.left_shift, multiplier.right_shift)
    return int(abs(scaled).max())


def convert_product(at: Conversion, operation: Operation, first: Operand, second: Operand) -> str:
    """The product of both operands without their zero points, scaled once."""
    one, two = at.affine(first.tensor), at.affine(second.tensor)
    target = at.affine(at.output_tensor())
    prepared = prepare_product(one[0], two[0], target[0], at.numerics)
    left = _widened(at, first, _IDENTITY, one[1], "first", 0)
    right = _widened(at, second, _IDENTITY, two[1], "second", 0)
    product = at.emit(operation, (left, right), "product")
    magnitudes = [max(zero_point - INT8_MIN, INT8_MAX - zero_point) for zero_point in (one[1], two[1])]
    reach = magnitudes[0] * magnitudes[1]
    factor = checked_multiplier(at, prepared, -reach, reach)
    return rescale(at, product, [factor], 0, target[1], DType.I8, "rescaled")


def _widened(
    at: Conversion, operand: Operand, factor: Multiplier, zero_point: int, role: str, left_shift: int
) -> str:
    """An operand in int32 without its zero point."""
    value = at.value_of(operand, role)
    return rescale(at, value, [factor], zero_point, 0, DType.I32, f"{role}_widened", left_shift)
