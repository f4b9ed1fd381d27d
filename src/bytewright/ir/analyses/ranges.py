"""Between which values an integer expression lies, as far as its function says so.

Symbols have bounds, loops count from one bound to another, and what is computed from known values is known. Arithmetic
counts as that of the whole numbers: an overflow is an error of the program (docs/ir.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.remember import remembered
from bytewright.ir.symbols import symbols_of

# The least and the greatest value.
Range = tuple[int, int]


@dataclass(slots=True)
class Intervals(Interpreter):
    """A domain: the range of each variable, where it is known, with all turns of loops together.

    Attributes:
        ranges: Of the variables that are defined, by name.
    """

    ranges: dict[str, Range] = field(default_factory=dict[str, Range])

    def range_of(self, expression: ir.Expr) -> Range | None:
        """Between which values an expression lies; None if it is not known."""
        return range_of(expression, self.ranges)

    def bind(self, loop: ir.For) -> tuple[Range, Range] | None:
        """Learns what the variable is in all turns together; returns the ranges of the bounds, if they are known."""
        begin, end = self.range_of(loop.begin), self.range_of(loop.end)
        if begin is None or end is None:
            return None
        self.ranges[loop.variable.name] = begin[0], max(begin[0], end[1] - 1)
        return begin, end

    def turns(self, loop: ir.For) -> Iterator[None]:
        """All turns together; the body of a loop without a turn counts, too."""
        self.bind(loop)
        yield

    def define(self, let: ir.Let) -> None:
        """A name has the range of its value."""
        found = self.range_of(let.value)
        if found is not None:
            self.ranges[let.variable.name] = found


@remembered
def ranges_of(function: ir.PrimFunc) -> Mapping[str, Range]:
    """The ranges of a function's variables by name, of those where they are known."""
    intervals = Intervals(
        {name: (symbol.lower, symbol.upper) for name, symbol in symbols_of(function).items()}
    )
    intervals.run(function.body)
    return intervals.ranges


def range_of(expression: ir.Expr, known: Mapping[str, Range]) -> Range | None:
    """The range of an expression, from those of the variables in it; None if it is not known."""
    match expression:
        case ir.Const(value=int(value)):
            return value, value
        case ir.Var():
            return known.get(expression.name)
        case ir.Binary(
            operator=ir.BinaryOperator.MIN,
            left=ir.Binary(operator=ir.BinaryOperator.MAX, right=ir.Const(value=int(low))) as raised,
            right=ir.Const(value=int(high)),
        ) if low <= high and range_of(raised, known) is None:
            return low, high
        case ir.Binary():
            left, right = range_of(expression.left, known), range_of(expression.right, known)
            return None if left is None or right is None else combined_range(expression.operator, left, right)
        case _:
            return None


def combined_range(operator: ir.BinaryOperator, left: Range, right: Range) -> Range | None:
    """The range of an operation on two ranges; None for operators and operands of which nothing is said."""
    match operator:
        case ir.BinaryOperator.ADD:
            return left[0] + right[0], left[1] + right[1]
        case ir.BinaryOperator.SUB:
            return left[0] - right[1], left[1] - right[0]
        case ir.BinaryOperator.MUL:
            corners = [a * b for a in left for b in right]
            return min(corners), max(corners)
        case ir.BinaryOperator.MIN:
            return min(left[0], right[0]), min(left[1], right[1])
        case ir.BinaryOperator.MAX:
            return max(left[0], right[0]), max(left[1], right[1])
        case ir.BinaryOperator.MOD if left[0] >= 0 and right[0] > 0:
            return 0, min(left[1], right[1] - 1)
        case ir.BinaryOperator.DIV if left[0] >= 0 and right[0] > 0:
            return left[0] // right[1], left[1] // right[0]
        case ir.BinaryOperator.AND if left[0] >= 0 or right[0] >= 0:
            return 0, min(bound[1] for bound in (left, right) if bound[0] >= 0)
        case ir.BinaryOperator.SHR if 0 <= right[0] == right[1]:
            return left[0] >> right[0], left[1] >> right[0]
        case ir.BinaryOperator.SHR:
            return min(left[0], 0), max(left[1], -1)
        case ir.BinaryOperator.SHL if 0 <= right[0] == right[1] < 64:
            return left[0] << right[0], left[1] << right[0]
        case _:
            return None
