"""Proves that the index arithmetic of a module fits the types that C computes it with.

Indices, bounds of loops and conditions on them are computed from loops, extents and constants, so their ranges are
known: every step of such arithmetic must fit its type wherever it is evaluated. What depends on data is not looked at:
lowering proves that, and the evaluator checks it.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import assert_never

from bytewright import ir
from bytewright.diagnostics import Collector, CompileError, Diagnostic
from bytewright.ir.analyses.ranges import Intervals, Range, combined_range
from bytewright.ir.symbols import symbols_of
from bytewright.ir.text.expressions import format_expression
from bytewright.ir.walk import as_any, expressions

# What each function is passed in all calls, by the position of a parameter; None if that is not known.
Given = dict[str, dict[int, Range | None]]
_LONGEST_TEXT = 80
# Comparisons as `left + distance <= right`, or the same with the sides swapped.
_ORDERS = {
    ir.BinaryOperator.LT: (1, False),
    ir.BinaryOperator.LE: (0, False),
    ir.BinaryOperator.GT: (1, True),
    ir.BinaryOperator.GE: (0, True),
}


def check_indices(module: ir.Module) -> None:
    """Refuses a module with index arithmetic that can leave its type.

    Raises:
        CompileError: BW110, with the first such expression of each kernel.
    """
    given: Given = {}
    found = Collector()
    for function in (*module.entries, *reversed(module.kernels)):  # callers before callees
        checker = _Checker(function, given)
        checker.run(function.body)
        if checker.fault is not None:
            with found.catch():
                raise CompileError(_refused(function, *checker.fault))
    found.stop_if_any()


def _refused(function: ir.PrimFunc, node: ir.Expr, reached: Range) -> Diagnostic:
    text = format_expression(node)
    text = text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}..."
    extreme = reached[1] if reached[1] > node.dtype.bounds[1] else reached[0]
    bits = 8 * node.dtype.size_bytes
    message = f"kernel '{function.name}': an index can be {extreme}, which {bits} bits do not hold: {text}"
    where = function.where
    return Diagnostic("BW110", message, where=str(where) if where.model else None)


class _Checker(Intervals):
    """One function: the ranges of what is defined at the present statement, where they are known."""

    def __init__(self, function: ir.PrimFunc, given: Given) -> None:
        Intervals.__init__(self)
        self.given = given
        self.fault: tuple[ir.Expr, Range] | None = None
        passed = given.get(function.name, {})
        for position, parameter in enumerate(function.parameters):
            if isinstance(parameter, ir.ScalarParameter):
                self.learn(parameter.variable, passed.get(position))
        for name, symbol in symbols_of(function).items():
            self.ranges[name] = symbol.lower, symbol.upper

    # Statements

    def learn(self, variable: ir.Var, found: Range | None) -> None:
        if found is not None:
            self.ranges[variable.name] = found

    def turns(self, loop: ir.For) -> Iterator[None]:
        bounds = self.bind(loop)
        if bounds is None or bounds[0][0] < bounds[1][1]:  # else it never runs
            yield

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        self.range_of(branch.condition)
        for arm, holds in ((branch.then, True), (branch.otherwise, False)):
            if arm is not None:
                with self.where(branch.condition, holds) as reachable:
                    if reachable:
                        yield arm

    def show(self, view: ir.View) -> None:
        if view.condition is None or view.otherwise is None:
            self.range_of(ir.region_index(view.source))
            return
        self.range_of(view.condition)
        for region, holds in ((view.source, True), (view.otherwise, False)):
            with self.where(view.condition, holds) as reachable:
                if reachable:
                    self.range_of(ir.region_index(region))

    def store(self, store: ir.Store) -> None:
        self.range_of(ir.flat_index(store.buffer, store.indices))
        self.range_of(store.value)

    def execute(self, call: ir.InstructionCall) -> None:
        """Of one that touches registers alone, what it is given."""
        if call.touches_memory:
            self.run(call)
        else:
            for expression in expressions(call):
                self.range_of(expression)

    def call(self, call: ir.Call) -> None:
        """Checks the arguments, and adds what scalars can be to what the callee is known to be given."""
        callee = self.given.setdefault(call.callee, {})
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, ir.Region):
                self.range_of(ir.region_index(argument))
                continue
            if isinstance(argument, ir.ContextArgument):
                continue
            found = self.range_of(argument)
            before = callee.get(position, found)
            callee[position] = None if found is None or before is None else _hull(found, before)

    # Expressions

    def range_of(self, expression: ir.Expr) -> Range | None:
        """The range, where it is known; what leaves its type is noted, and then unknown."""
        node = as_any(expression)
        match node:
            case ir.Const():
                return (int(node.value), int(node.value)) if node.dtype.is_integer else None
            case ir.Var():
                return self.ranges.get(node.name)
            case ir.Load():
                self.range_of(ir.flat_index(node.buffer, node.indices))
                return None
            case ir.Binary():
                return self.binary(node)
            case ir.Cast():
                found = self.range_of(node.operand)
                return found if found is not None and _fits(found, node) else None
            case ir.ScalarCall():
                return self.scalar_call(node)
            case ir.Select():
                return self.select(node)
            case _:
                assert_never(node)

    def binary(self, node: ir.Binary) -> Range | None:
        left = self.range_of(node.left)
        if node.operator.is_lazy:
            with self.where(node.left, node.operator is ir.BinaryOperator.LOGICAL_AND) as reachable:
                if reachable:
                    self.range_of(node.right)
            return None
        right = self.range_of(node.right)
        if left is None or right is None or not node.dtype.is_integer:
            return None
        found = combined_range(node.operator, left, right)
        if found is not None and not _fits(found, node):
            self.fault = self.fault or (node, found)
            return None
        return found

    def scalar_call(self, node: ir.ScalarCall) -> Range | None:
        """Looks at the function with what this call gives it."""
        function, found = node.function, [self.range_of(operand) for operand in node.operands]
        if function.result is None:
            return None
        outside, self.ranges = self.ranges, {}
        for parameter, given in zip(function.parameters, found, strict=True):
            self.learn(parameter, given)
        for step, value in function.steps:
            self.learn(step, self.range_of(value))
        result = self.range_of(function.result)
        self.ranges = outside
        return result

    def select(self, node: ir.Select) -> Range | None:
        self.range_of(node.condition)
        found: list[Range | None] = []
        for side, holds in ((node.if_true, True), (node.if_false, False)):
            with self.where(node.condition, holds) as reachable:
                if reachable:
                    found.append(self.range_of(side))
        known = [item for item in found if item is not None]
        return None if len(known) < len(found) or not known else _hull(known[0], known[-1])

    @contextmanager
    def where(self, condition: ir.Expr, holds: bool = True) -> Generator[bool, None, None]:
        """Within the block variables are as a condition leaves them; yields False if it leaves them nothing."""
        before = dict(self.ranges)
        yield self.assume(condition, holds)
        self.ranges = before

    def assume(self, condition: ir.Expr, holds: bool) -> bool:
        """Narrows variables to what a condition leaves them; False if that is nothing."""
        if not isinstance(condition, ir.Binary):
            return True
        operator = condition.operator
        if operator is (ir.BinaryOperator.LOGICAL_AND if holds else ir.BinaryOperator.LOGICAL_OR):
            return self.assume(condition.left, holds) and self.assume(condition.right, holds)
        left, right = condition.left, condition.right
        if operator is ir.BinaryOperator.EQ and holds:
            return self.order(left, right, 0) and self.order(right, left, 0)
        if operator not in _ORDERS:
            return True
        distance, is_swapped = _ORDERS[operator]
        less, more = (right, left) if is_swapped else (left, right)
        return self.order(less, more, distance) if holds else self.order(more, less, 1 - distance)

    def order(self, less: ir.Expr, more: ir.Expr, distance: int) -> bool:
        """Narrows variables to `less + distance <= more`; False if that leaves one nothing."""
        lower, upper = self.range_of(less), self.range_of(more)
        if lower is None or upper is None:
            return True
        if isinstance(less, ir.Var):
            self.ranges[less.name] = lower = lower[0], min(lower[1], upper[1] - distance)
        if isinstance(more, ir.Var):
            self.ranges[more.name] = upper = max(upper[0], lower[0] + distance), upper[1]
        return lower[0] <= lower[1] and upper[0] <= upper[1]


def _fits(found: Range, node: ir.Expr) -> bool:
    if not node.dtype.is_integer:
        return False
    low, high = node.dtype.bounds
    return low <= found[0] and found[1] <= high


def _hull(first: Range, second: Range) -> Range:
    return min(first[0], second[0]), max(first[1], second[1])
