"""What integer expressions are for many values of their variables at once: arrays, as numpy computes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from bytewright import ir

Numbers = NDArray[np.int64]


def _quotient(left: Numbers, right: Numbers) -> Numbers:
    """C's division, which truncates; where the divisor is 0 nothing is computed, in a turn that does not run."""
    divisor = np.where(right == 0, 1, right)
    return np.sign(left) * np.sign(divisor) * (np.abs(left) // np.abs(divisor))


_COMPUTED: Mapping[ir.BinaryOperator, Callable[[Numbers, Numbers], Numbers]] = {
    ir.BinaryOperator.ADD: np.add,
    ir.BinaryOperator.SUB: np.subtract,
    ir.BinaryOperator.MUL: np.multiply,
    ir.BinaryOperator.DIV: _quotient,
    ir.BinaryOperator.MOD: lambda left, right: left - _quotient(left, right) * right,
    ir.BinaryOperator.SHL: np.left_shift,
    ir.BinaryOperator.SHR: np.right_shift,
    ir.BinaryOperator.AND: np.bitwise_and,
    ir.BinaryOperator.MIN: np.minimum,
    ir.BinaryOperator.MAX: np.maximum,
    ir.BinaryOperator.LT: np.less,
    ir.BinaryOperator.LE: np.less_equal,
    ir.BinaryOperator.GT: np.greater,
    ir.BinaryOperator.GE: np.greater_equal,
    ir.BinaryOperator.EQ: np.equal,
    ir.BinaryOperator.LOGICAL_AND: lambda left, right: (left != 0) & (right != 0),
    ir.BinaryOperator.LOGICAL_OR: lambda left, right: (left != 0) | (right != 0),
}


def evaluate(expression: ir.Expr, values: Mapping[str, Numbers | None]) -> Numbers | None:
    """The value for each combination; None if it depends on data, or on a variable that is not known."""
    match expression:
        case ir.Const(value=value):
            return np.array(int(value), dtype=np.int64) if not isinstance(value, float) else None
        case ir.Var(name=name):
            return values.get(name)
        case ir.Cast(operand=operand):
            found = evaluate(operand, values) if expression.dtype.is_integer else None
            return None if found is None else _wrapped(found, expression.dtype, operand.dtype)
        case ir.Binary():
            left, right = evaluate(expression.left, values), evaluate(expression.right, values)
            return None if left is None or right is None else _COMPUTED[expression.operator](left, right)
        case ir.Select():
            parts = (expression.condition, expression.if_true, expression.if_false)
            condition, if_true, if_false = (evaluate(part, values) for part in parts)
            if condition is None or if_true is None or if_false is None:
                return None
            return np.where(condition != 0, if_true, if_false)
        case _:
            return None


def _wrapped(values: Numbers, dtype: ir.DType, given: ir.DType) -> Numbers:
    if not given.is_integer or dtype.size_bytes == ir.DType.I64.size_bytes:
        return values
    low, high = dtype.bounds
    if low <= given.bounds[0] and given.bounds[1] <= high:
        return values
    return (values - low) % (high - low + 1) + low
