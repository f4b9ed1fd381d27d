"""Between which values the integers of a function lie while it is evaluated: what needs no check.

Other than in `analyses.ranges`, a value that nothing is known of has the bounds of its type, and so has a result
once it was checked.
"""

from typing import assert_never

from bytewright import ir
from bytewright.ir.analyses.ranges import Range, combined_range
from bytewright.ir.walk import as_any


class Intervals:
    """What is known at the present statement."""

    def __init__(self) -> None:
        self._variables: dict[str, Range | None] = {}
        self._known: dict[int, Range | None] = {}  # by identity of nodes, until a variable is defined

    def define(self, variable: ir.Var, interval: Range | None) -> None:
        """Learns of a variable and of its bounds, unless they are those of its type."""
        self._variables[variable.name] = interval
        self._known.clear()

    def of(self, expression: ir.Expr) -> Range | None:
        """Bounds of an integer value (after its checks), or None for other types."""
        if id(expression) not in self._known:
            self._known[id(expression)] = self._find(expression) if expression.dtype.is_integer else None
        return self._known[id(expression)]

    def exact(self, node: ir.Binary) -> Range | None:
        """Bounds of the mathematical result, which may exceed the type."""
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None or left[0] > left[1] or right[0] > right[1]:
            return None
        found = combined_range(node.operator, left, right)
        return node.left.dtype.bounds if node.operator is ir.BinaryOperator.AND and found is None else found

    def _find(self, expression: ir.Expr) -> Range:
        low, high = bounds = expression.dtype.bounds
        node = as_any(expression)
        match node:
            case ir.Const():
                found = int(node.value), int(node.value)
            case ir.Var():
                found = self._variables.get(node.name)
            case ir.Binary():
                found = self.exact(node)
            case ir.Cast():
                inner = self.of(node.operand)
                found = inner if lies_in(inner, low, high) else None
            case ir.Select():
                first, second = self.of(node.if_true), self.of(node.if_false)
                found = first and second and (min(first[0], second[0]), max(first[1], second[1]))
            case ir.Load() | ir.ScalarCall():
                found = None
            case _:
                assert_never(node)
        return bounds if found is None else (max(found[0], low), min(found[1], high))


def lies_in(interval: Range | None, low: int, high: int) -> bool:
    """Whether all of an interval is known to lie between two values, these included."""
    return interval is not None and low <= interval[0] and interval[1] <= high
