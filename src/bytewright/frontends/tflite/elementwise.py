"""ADD, SUB and MUL, with broadcasting and fused activations."""

import operator
from collections.abc import Callable
from dataclasses import dataclass

from bytewright import ir
from bytewright.frontends.tflite.accumulator import (
    checked_multiplier,
    clamp_activation,
    clamp_float,
    rescale,
)
from bytewright.frontends.tflite.conversion import Conversion, Operand
from bytewright.frontends.tflite.options import fused_activation
from bytewright.ops.arithmetic.factors import LEFT_SHIFT, prepare_product, prepare_sum
from bytewright.ops.arithmetic.multiplier import INT8_MAX, INT8_MIN, Multiplier
from bytewright.ops.arithmetic.rescale import double_round

_IDENTITY = Multiplier(1 << 30, 1)
"""A rescale by this changes nothing but the zero point."""


@dataclass(frozen=True, slots=True)
class _Form:
    """An operation on int32: how operands come to it and how its result becomes int8.

    Attributes:
        factors: Of the operands, which lose their zero points and gain `left_shift` bits first.
        reach: The greatest magnitude of the result, from those of the operands.
    """

    factors: tuple[Multiplier, Multiplier]
    left_shift: int
    output: Multiplier
    reach: Callable[[int, int], int]
    role: str


def sum_form(at: Conversion, first: float, second: float, output: float) -> _Form:
    """ADD or SUB, at a common scale with 20 more bits."""
    *factors, factor = prepare_sum(at.operator.kind, first, second, output)
    return _Form((factors[0], factors[1]), LEFT_SHIFT, factor, operator.add, "sum")


def product_form(at: Conversion, first: float, second: float, output: float) -> _Form:
    """MUL, of both operands without their zero points."""
    factor = prepare_product(first, second, output, at.numerics)
    return _Form((_IDENTITY, _IDENTITY), 0, factor, operator.mul, "product")


def convert_binary(
    at: Conversion, operation: ir.Operation, int8: Callable[[Conversion, float, float, float], _Form]
) -> None:
    """An operator of two operands with a fused activation; its form on int8 depends on the scales."""
    at.require_counts((2,))
    activation = fused_activation(at, 0)
    first = at.activation_operand(0, "first operand")
    second = at.activation_operand(1, "second operand")
    at.require_same_dtype(first, second)
    if first.is_float:
        operands = (at.value_of(first, "first"), at.value_of(second, "second"))
        at.define(clamp_float(at, at.emit(operation, operands, "unclamped"), activation))
        return
    one, two, target = at.affine(first.tensor), at.affine(second.tensor), at.affine(at.output_tensor())
    form = int8(at, one.scale, two.scale, target.scale)
    left, left_reach = _widened(at, first, form.factors[0], form.left_shift, "first")
    right, right_reach = _widened(at, second, form.factors[1], form.left_shift, "second")
    result = at.emit(operation, (left, right), form.role)
    reach = form.reach(left_reach, right_reach)
    factor = checked_multiplier(at, form.output, reach, target.zero_point)
    rescaled = rescale(at, result, [factor], 0, target.zero_point, ir.DType.I8, "rescaled")
    at.define(clamp_activation(at, rescaled, activation, target))


def _widened(
    at: Conversion, operand: Operand, factor: Multiplier, left_shift: int, role: str
) -> tuple[str, int]:
    """An operand in int32 without its zero point, and its greatest magnitude."""
    zero_point = at.affine(operand.tensor).zero_point
    extremes = [(value - zero_point) << left_shift for value in (INT8_MIN, INT8_MAX)]
    scaled = double_round(extremes, factor.multiplier, factor.left_shift, factor.right_shift)
    value = at.value_of(operand, role)
    widened = rescale(at, value, [factor], zero_point, 0, ir.DType.I32, f"{role}_widened", left_shift)
    return widened, int(abs(scaled).max())
