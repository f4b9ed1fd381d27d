"""Which elements an index reaches: sums of variables times numbers, and the sets that they run through.

Of an index that is such a sum, and whose variables' ranges are known, the elements are known one by one; of others at
most an interval is. `written.py` tells the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.analyses.ranges import Intervals, Range, combined_range
from bytewright.ir.walk import walk_expression

Mask = NDArray[np.bool_]
Ranges = Mapping[str, Range]
_MAX_STARTS = 1 << 20
_COUNTING = frozenset({ir.DType.I32, ir.DType.I64})


@dataclass(frozen=True, slots=True)
class Form:
    """`constant` plus each variable times its coefficient, none of which is 0."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    def plus(self, other: Form, factor: int = 1) -> Form:
        """The sum with another form times a number."""
        terms = dict(self.terms)
        for name, coefficient in other.terms:
            terms[name] = terms.get(name, 0) + coefficient * factor
        kept = tuple((name, coefficient) for name, coefficient in terms.items() if coefficient)
        return Form(self.constant + other.constant * factor, kept)

    def times(self, factor: int) -> Form:
        """The form times a number."""
        return Form(0).plus(self, factor)

    @property
    def written(self) -> int | str:
        """As a number, or as `32*turn - 4` with the variables in order of their names."""
        terms = [name if factor == 1 else f"{factor}*{name}" for name, factor in sorted(self.terms)]
        if not terms:
            return int(self.constant)
        constant = f" {'-' if self.constant < 0 else '+'} {abs(self.constant)}" if self.constant else ""
        return " + ".join(terms) + constant

    def range_in(self, ranges: Ranges) -> Range | None:
        """Between which values it lies; None if a variable's range is not known."""
        low = high = self.constant
        for name, coefficient in self.terms:
            if name not in ranges:
                return None
            ends = [coefficient * end for end in ranges[name]]
            low, high = low + min(ends), high + max(ends)
        return low, high


@dataclass(frozen=True, slots=True)
class Quotient:
    """A form divided by a positive number and rounded down, and then limited, where there are limits."""

    numerator: Form
    divisor: int = 1
    low: int | None = None
    high: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.low is not None or self.high is not None

    def is_natural(self, ranges: Ranges) -> bool:
        """Whether it is known not to be negative."""
        if self.low is not None:
            return self.low >= 0
        known = self.numerator.range_in(ranges)
        return known is not None and known[0] >= 0 and (self.high is None or self.high >= 0)

    def plus(self, other: Form, factor: int = 1) -> Quotient | None:
        """The sum with a form times a number; None where limits would move with a variable."""
        if self.is_limited and other.terms:
            return None
        numerator = self.numerator.plus(other, factor * self.divisor)
        low, high = (
            None if limit is None else limit + factor * other.constant for limit in (self.low, self.high)
        )
        return Quotient(numerator, self.divisor, low, high)

    def over(self, divisor: int) -> Quotient:
        """The same divided once more."""
        low, high = (None if limit is None else limit // divisor for limit in (self.low, self.high))
        return Quotient(self.numerator, self.divisor * divisor, low, high)

    def at_least(self, limit: int) -> Quotient:
        """The greater one of it and a number."""
        low = limit if self.low is None else max(self.low, limit)
        return Quotient(self.numerator, self.divisor, low, None if self.high is None else max(self.high, low))

    def at_most(self, limit: int) -> Quotient:
        """The smaller one of it and a number."""
        high = limit if self.high is None else min(self.high, limit)
        return Quotient(self.numerator, self.divisor, None if self.low is None else min(self.low, high), high)


@dataclass(slots=True)
class Definitions:
    """What names stand for: forms of those that are sums of others, and the expressions of the rest."""

    forms: dict[str, Form] = field(default_factory=dict[str, Form])
    values: dict[str, ir.Expr] = field(default_factory=dict[str, ir.Expr])

    def define(self, variable: ir.Var, value: ir.Expr) -> None:
        """Learns of a `Let`. A type that does not count has its own numbers alone."""
        found = self.form(value)
        if found is not None and (variable.dtype in _COUNTING or not found.terms):
            self.forms[variable.name] = found
        else:
            self.values[variable.name] = value

    def form(self, expression: ir.Expr) -> Form | None:
        """The expression as a sum, if it is one."""
        match expression:
            case ir.Const(value=int(value)):
                return Form(value)
            case ir.Var(name=name):
                if name in self.values:
                    return None
                return self.forms.get(name) or Form(0, ((name, 1),))
            case ir.Cast() if expression.operand.dtype.is_integer:
                form = self.form(expression.operand)
                return form if form is not None and _keeps(expression, form) else None
            case ir.Binary():
                return self._binary_form(expression)
            case _:
                return None

    def _binary_form(self, node: ir.Binary) -> Form | None:
        if node.operator not in (ir.BinaryOperator.ADD, ir.BinaryOperator.SUB, ir.BinaryOperator.MUL):
            return None
        left, right = self.form(node.left), self.form(node.right)
        if left is None or right is None:
            return None
        if node.operator is not ir.BinaryOperator.MUL:
            return left.plus(right, 1 if node.operator is ir.BinaryOperator.ADD else -1)
        if left.terms and right.terms:
            return None
        factor, scaled = (left.constant, right) if not left.terms else (right.constant, left)
        return scaled.times(factor)

    def quotient(self, expression: ir.Expr, ranges: Ranges) -> Quotient | None:
        """The expression as a quotient, if it is one; every form is one, too.

        C's division rounds towards zero: it is a quotient where what is divided is known not to be negative.
        """
        found = self.form(expression)
        if found is not None:
            return Quotient(found)
        match expression:
            case ir.Var(name=name):
                return self.quotient(self.values[name], ranges)
            case ir.Cast() if expression.dtype.is_integer and expression.operand.dtype.is_integer:
                return self.quotient(expression.operand, ranges)
            case ir.Binary():
                left = self.quotient(expression.left, ranges)
                right = self.quotient(expression.right, ranges)
                return (
                    None
                    if left is None or right is None
                    else _combined(expression.operator, left, right, ranges)
                )
            case _:
                return None

    def variables_of(self, expression: ir.Expr) -> tuple[str, ...]:
        """The variables that an expression depends on, directly or through what they stand for."""
        names: dict[str, None] = {}
        pending, seen = [expression], set[str]()
        while pending:
            for node in walk_expression(pending.pop()):
                if not isinstance(node, ir.Var) or node.name in seen:
                    continue
                seen.add(node.name)
                if node.name in self.values:
                    pending.append(self.values[node.name])
                else:
                    form = self.forms.get(node.name, Form(0, ((node.name, 1),)))
                    names |= dict.fromkeys(name for name, _ in form.terms)
        return tuple(names)

    def range_of(self, expression: ir.Expr, ranges: Ranges) -> Range | None:
        """Between which values an integer expression lies, if that is known."""
        found = self.form(expression)
        if found is not None:
            return found.range_in(ranges)
        match expression:
            case ir.Var(name=name) if name in self.values:
                return self.range_of(self.values[name], ranges)
            case ir.Cast(operand=operand):
                return self.range_of(operand, ranges) if expression.dtype.is_integer else None
            case ir.Select():
                sides = [self.range_of(side, ranges) for side in (expression.if_true, expression.if_false)]
                known = [side for side in sides if side is not None]
                return (min(k[0] for k in known), max(k[1] for k in known)) if len(known) == 2 else None
            case ir.Binary():
                left, right = self.range_of(expression.left, ranges), self.range_of(expression.right, ranges)
                if left is None or right is None:
                    return None
                return _range_of_operation(expression.operator, left, right)
            case _:
                return None

    def truth_of(self, condition: ir.Expr, ranges: Ranges) -> bool | None:
        """Whether a condition holds for all values of the variables (True), for none (False), or not so."""
        match condition:
            case ir.Const(value=value):
                return bool(value)
            case ir.Var(name=name) if name in self.values:
                return self.truth_of(self.values[name], ranges)
            case ir.Binary(operator=ir.BinaryOperator.LOGICAL_AND | ir.BinaryOperator.LOGICAL_OR):
                absorbing = condition.operator is ir.BinaryOperator.LOGICAL_OR
                sides = [self.truth_of(side, ranges) for side in (condition.left, condition.right)]
                return absorbing if absorbing in sides else None if None in sides else not absorbing
            case ir.Binary():
                left, right = self.range_of(condition.left, ranges), self.range_of(condition.right, ranges)
                return None if left is None or right is None else _compared(condition.operator, left, right)
            case _:
                return None


def _keeps(cast: ir.Cast, form: Form) -> bool:
    """Whether a cast wraps no value of its operand, which is a sum: a wider type does not."""
    if not form.terms:
        return cast.dtype.is_integer and cast.dtype.bounds[0] <= form.constant <= cast.dtype.bounds[1]
    (low, high), own = cast.operand.dtype.bounds, cast.dtype
    return own in _COUNTING and own.bounds[0] <= low and high <= own.bounds[1]


@dataclass(slots=True)
class Forms(Intervals):
    """A domain: what names stand for, and the ranges of loop variables, with all turns of loops together."""

    definitions: Definitions = field(default_factory=Definitions)

    def range_of(self, expression: ir.Expr) -> Range | None:
        """Between which values an integer expression lies, if that is known."""
        return self.definitions.range_of(expression, self.ranges)

    def define(self, let: ir.Let) -> None:
        """A name stands for its value."""
        self.definitions.define(let.variable, let.value)


def _combined(
    operator: ir.BinaryOperator, left: Quotient, right: Quotient, ranges: Ranges
) -> Quotient | None:
    """An operation on two quotients, if it is one."""
    is_limit = operator in (ir.BinaryOperator.MIN, ir.BinaryOperator.MAX)
    if is_limit and left == Quotient(Form(left.numerator.constant)):
        left, right = right, left
    number = right.numerator.constant if right == Quotient(Form(right.numerator.constant)) else None
    match operator:
        case ir.BinaryOperator.DIV if number is not None and number > 0 and left.is_natural(ranges):
            return left.over(number)
        case ir.BinaryOperator.MAX if number is not None:
            return left.at_least(number)
        case ir.BinaryOperator.MIN if number is not None:
            return left.at_most(number)
        case ir.BinaryOperator.ADD | ir.BinaryOperator.SUB if right == Quotient(right.numerator):
            return left.plus(right.numerator, 1 if operator is ir.BinaryOperator.ADD else -1)
        case ir.BinaryOperator.ADD if left == Quotient(left.numerator):
            return right.plus(left.numerator)
        case _:
            return None


def _range_of_operation(operator: ir.BinaryOperator, left: Range, right: Range) -> Range | None:
    """As `combined_range`, and exact where that only has bounds: remainders within one turn, bits of two numbers."""
    match operator:
        case ir.BinaryOperator.MOD if left[0] >= 0 and right[0] == right[1] > 0:
            same_turn = left[0] // right[0] == left[1] // right[0]
            return (left[0] % right[0], left[1] % right[0]) if same_turn else (0, right[0] - 1)
        case ir.BinaryOperator.AND if left[0] == left[1] and right[0] == right[1]:
            return left[0] & right[0], left[0] & right[0]
        case _:
            return combined_range(operator, left, right)


def _compared(operator: ir.BinaryOperator, left: Range, right: Range) -> bool | None:
    match operator:
        case ir.BinaryOperator.LT:
            return True if left[1] < right[0] else False if left[0] >= right[1] else None
        case ir.BinaryOperator.LE:
            return True if left[1] <= right[0] else False if left[0] > right[1] else None
        case ir.BinaryOperator.GT:
            return _compared(ir.BinaryOperator.LT, right, left)
        case ir.BinaryOperator.GE:
            return _compared(ir.BinaryOperator.LE, right, left)
        case ir.BinaryOperator.EQ if left == right and left[0] == left[1]:
            return True
        case ir.BinaryOperator.EQ:
            return False if left[1] < right[0] or right[1] < left[0] else None
        case _:
            return None


def num_turns(names: Iterable[str], ranges: Ranges) -> int:
    """How many combinations of values some variables have, those without a range left as they are."""
    return prod(ranges[name][1] - ranges[name][0] + 1 for name in names if name in ranges)


def each_turn(names: Iterable[str], ranges: Ranges) -> Iterator[dict[str, Range]]:
    """The ranges with each of these combinations."""
    known = [name for name in names if name in ranges]
    for values in product(*(range(ranges[name][0], ranges[name][1] + 1) for name in known)):
        yield {**ranges, **{name: (value, value) for name, value in zip(known, values, strict=True)}}


@dataclass(frozen=True, slots=True)
class Runs:
    """Elements: a run of `length` from each of the starts on."""

    starts: NDArray[np.int64]
    length: int

    @property
    def first(self) -> int:
        """The least element."""
        return int(self.starts.min())

    @property
    def last(self) -> int:
        """The greatest element."""
        return int(self.starts.max()) + self.length - 1


def runs_of(form: Form, ranges: Ranges, length: int = 1) -> Runs | None:
    """The elements that a form runs through, each with the `length - 1` after it; None if that is not known.

    Variables are independent: ranges of loops that depend on each other must not be given.
    """
    base, steps = form.constant, list[tuple[int, int]]()
    for name, coefficient in form.terms:
        if name not in ranges:
            return None
        low, high = ranges[name]
        base += coefficient * (low if coefficient > 0 else high)
        if high > low:
            steps.append((abs(coefficient), high - low))
    starts = np.array([base], dtype=np.int64)
    for step, count in sorted(steps):
        if step <= length and len(starts) == 1:
            length += step * count
        elif len(starts) * (count + 1) > _MAX_STARTS:
            return None
        else:
            starts = np.unique(np.add.outer(starts, np.arange(count + 1, dtype=np.int64) * step))
    return Runs(starts, length)


def mark(mask: Mask, runs: Runs) -> None:
    """Sets the elements in a mask; those outside of it do not exist."""
    if len(runs.starts) == 1:
        first = int(runs.starts[0])
        mask[max(0, first) : max(0, first + runs.length)] = True
        return
    for offset in range(runs.length) if runs.length < len(runs.starts) else ():
        places = runs.starts + offset
        mask[places[(places >= 0) & (places < len(mask))]] = True
    if runs.length >= len(runs.starts):
        for start in runs.starts.tolist():
            mask[max(0, start) : max(0, start + runs.length)] = True
