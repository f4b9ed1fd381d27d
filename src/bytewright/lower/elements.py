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
from bytewright.ir.expr import equal
from bytewright.ir.scalar_functions import EXP, ROUND, TANH
from bytewright.lower.point import Point
from bytewright.lower.requantise import real_rescaled, rescaled
from bytewright.lower.scalar import Scalar, clamped, require_i32
from bytewright.ops.elementwise import (
    Add,
    Clamp,
    Equal,
    Greater,
    GreaterEqual,
    Mul,
    Recentre,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
)
from bytewright.ops.rescale import Rescale, TflRealRescale

I32, F32 = ir.DType.I32, ir.DType.F32
# As in LiteRT: below, a float LOGISTIC is exp(x), which is 1e-4 more at most.
LOGISTIC_IS_EXP_BELOW = -9.0


@dataclass(frozen=True, slots=True)
class ElementRule:
    """How an operator is computed on one element.

    Attributes:
        write: Takes the element and the operator's own descriptor.
        num_operands: The first operands, of which an element is needed; the others are read as a whole.
    """

    write: Callable[[Point, Any], Scalar]
    num_operands: int = 1


def _of_two(combine: Callable[[Any, Any], Any]) -> ElementRule:
    """The rule of `combine`, which is monotone in both operands, so that the bounds of integers are at the corners."""

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        first, second = at.operands
        result = combine(first.expr, second.expr)
        if at.is_float:
            return Scalar(result)
        corners = [combine(x, y) for x in (first.low, first.high) for y in (second.low, second.high)]
        require_i32(min(corners), max(corners), "the result", at.node.where)
        return Scalar(result, min(corners), max(corners))

    return ElementRule(write, num_operands=2)


def _comparison(compare: Callable[[Any, Any], Any]) -> ElementRule:
    """The rule of a truth value of two operands."""

    def write(at: Point, operation: ir.Operation) -> Scalar:
        del operation
        first, second = at.operands
        return Scalar(compare(first.expr, second.expr))

    return ElementRule(write, num_operands=2)


def _clamp(at: Point, operation: Clamp) -> Scalar:
    low, high = operation.minimum, operation.maximum
    if not at.is_float:
        return clamped(at.operands[0], int(low), int(high))
    x = at.operands[0].expr
    lower = ir.maximum(x, low) if low > float("-inf") else x
    return Scalar(ir.minimum(lower, high) if high < float("inf") else lower)


def _table(at: Point, operation: Table) -> Scalar:
    del operation
    table = at.array(1)
    entry = load(at.kernel.constant("table", table, ir.DType.I8), at.operands[0].expr + 128)
    return Scalar(ir.cast(entry, I32), int(table.min()), int(table.max()))


def _recentred(at: Point, operation: Recentre) -> Scalar:
    x, offset = at.operands[0], -128 if operation.dtype is ir.DType.I8 else 128
    return Scalar(x.expr + offset, x.low + offset, x.high + offset)


def _sigmoid(at: Point, operation: Sigmoid) -> Scalar:
    """1 / (1 + exp(-x)) with an exponential that never overflows; below -9 it is exp(x) itself, as in LiteRT."""
    del operation
    bound = at.body.let("value", at.operands[0].expr)
    decay = at.body.let("decay", EXP(ir.select(bound < 0.0, bound, 0.0 - bound)))
    quotient = ir.select(bound < 0.0, decay, ir.const(1.0, F32)) / (decay + 1.0)
    return Scalar(ir.select(bound < LOGISTIC_IS_EXP_BELOW, decay, quotient))


def _tanh(at: Point, operation: Tanh) -> Scalar:
    del operation
    return Scalar(TANH(at.operands[0].expr))


def _hard_swish(at: Point, operation: TflHardSwish) -> Scalar:
    del operation
    bound = at.body.let("value", at.operands[0].expr)
    return Scalar(bound * ir.clamp(bound + 3.0, 0.0, 6.0) * float(np.float32(1 / 6)))


def _leaky_relu(at: Point, operation: TflLeakyRelu) -> Scalar:
    bound = at.body.let("value", at.operands[0].expr)
    return Scalar(ir.select(bound > 0.0, bound, bound * float(np.float32(operation.alpha))))


def _quantized(at: Point, operation: TflQuantize) -> Scalar:
    """roundf(x / scale) + zero point, saturated in float first so that the conversion is defined.

    The bound is the first operand of the maximum, which is what is left where the other is not a number.
    """
    zero_point = operation.zero_point
    rounded = ROUND(at.operands[0].expr / ir.const(operation.scale, F32))
    above = ir.maximum(ir.const(-256.0 - zero_point, F32), rounded)
    limited = at.body.let("rounded", ir.minimum(above, 256.0 - zero_point))
    return clamped(Scalar(ir.cast(limited, I32) + zero_point, -256, 256), -128, 127)


def _dequantized(at: Point, operation: TflDequantize) -> Scalar:
    return Scalar(ir.cast(at.operands[0].expr - operation.zero_point, F32) * operation.scale)


ELEMENTS: dict[type[ir.Operation], ElementRule] = {
    Add: _of_two(operator.add),
    Clamp: ElementRule(_clamp),
    Equal: _comparison(equal),
    Greater: _comparison(operator.gt),
    GreaterEqual: _comparison(operator.ge),
    Mul: _of_two(operator.mul),
    Recentre: ElementRule(_recentred),
    Rescale: ElementRule(rescaled),
    Sigmoid: ElementRule(_sigmoid),
    Sub: _of_two(operator.sub),
    Table: ElementRule(_table),
    Tanh: ElementRule(_tanh),
    TflDequantize: ElementRule(_dequantized),
    TflHardSwish: ElementRule(_hard_swish),
    TflLeakyRelu: ElementRule(_leaky_relu),
    TflQuantize: ElementRule(_quantized),
    TflRealRescale: ElementRule(real_rescaled),
}
