"""Which elements of a buffer a statement touches, through views and wherever a call passes parts of it.

An index that is a sum of loop variables with known ranges says them one by one, another one at most between which.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.affine import Form, Forms, Mask, Runs, each_turn, mark, runs_of
from bytewright.ir.walk import operands

_Side = TypeVar("_Side")
UNKNOWN = ir.Var("", ir.DType.I32)  # an index of which nothing is known
MAX_PLACES = 1 << 12  # that a part of a parameter is passed to from one call
_ONE = np.ones(1, np.bool_)


@dataclass(frozen=True, slots=True)
class Touch:
    """Elements of a buffer that a statement reads or writes: those of the pattern, from the form's value on.

    Attributes:
        form: None where it is no sum of variables.
        index: The expression of the form.
        is_certain: It happens whenever the statement does.
    """

    buffer: ir.Buffer
    form: Form | None
    index: ir.Expr
    pattern: Mask = field(default_factory=lambda: _ONE)
    is_certain: bool = True


@dataclass(slots=True)
class Elements(Forms):
    """A domain: what the statements of a function touch, by what names stand for at the present one."""

    views: dict[str, ir.View] = field(default_factory=dict[str, ir.View])
    _touches: dict[tuple[str, int], Touch] = field(default_factory=dict[tuple[str, int], Touch])

    def show(self, view: ir.View) -> None:
        """What is touched of a view is touched of what it shows."""
        self.views[view.buffer.name] = view

    def possible(self, condition: ir.Expr, sides: tuple[_Side, _Side]) -> tuple[_Side, ...]:
        """Of what is where a condition holds and what is elsewhere, that which may be: both, if that is not known."""
        truth = self.definitions.truth_of(condition, self.ranges)
        return sides if truth is None else sides[:1] if truth else sides[1:]

    def all_turns(self, loop: ir.For) -> Iterator[None]:
        """All turns of a loop together; none if it has no turn.

        The variable has a range if its values are the same in every turn of the loops around it.
        """
        outside, begin, end = self.ranges, self.range_of(loop.begin), self.range_of(loop.end)
        if begin is not None and end is not None and begin[0] == begin[1] and end[0] == end[1]:
            if begin[0] >= end[0]:
                return
            self.ranges = {**outside, loop.variable.name: (begin[0], end[0] - 1)}
        yield
        self.ranges = outside

    def one_by_one(self, names: Iterable[str]) -> Iterator[None]:
        """Each combination of values of some variables."""
        outside = self.ranges
        for turn in each_turn(names, outside):
            self.ranges = turn
            yield
        self.ranges = outside

    def sides(self, statement: ir.If) -> tuple[ir.Seq, ...]:
        """The sides of a branch that may be taken."""
        both = (statement.then, statement.otherwise or ir.Seq(()))
        return self.possible(statement.condition, both)

    def loads(self, expression: ir.Expr) -> Iterator[tuple[ir.Load, bool]]:
        """Loads in an expression, each with whether it always happens."""
        pending = [(expression, True)]
        while pending:
            node, is_certain = pending.pop()
            if isinstance(node, ir.Load):
                yield node, is_certain
            choice = choice_of(node)
            if choice is None:
                pending.extend((operand, is_certain) for operand in operands(node))
                continue
            condition, sides = choice
            possible = self.possible(condition, sides)
            pending.append((condition, is_certain))
            pending.extend((side, is_certain and len(possible) == 1) for side in possible if side is not None)

    def at(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> Touch:
        """The one element at some indices."""
        key = (buffer.name, id(indices))  # of one node, which lives as long as the function
        if key not in self._touches:
            index = ir.flat_index(buffer, indices)
            self._touches[key] = Touch(buffer, self.definitions.form(index), index)
        return self._touches[key]

    def passed(self, region: ir.Region, pattern: Mask) -> Touch:
        """What a callee touches of an argument by a pattern."""
        index = ir.region_index(region)
        return Touch(region.buffer, self.definitions.form(index), index, pattern)

    def sources(self, touch: Touch) -> Iterator[Touch]:
        """The touch, of what views show instead of the views."""
        view = self.views.get(touch.buffer.name)
        if view is None:
            yield touch
            return
        shown = (view.source, view.otherwise)
        possible = shown[:1] if view.condition is None else self.possible(view.condition, shown)
        for source in possible:
            if source is None:
                continue
            base = self.definitions.form(ir.region_index(source))
            form = None if base is None or touch.form is None else base.plus(touch.form)
            is_certain = touch.is_certain and len(possible) == 1
            pattern = _ONE if form is None else touch.pattern
            yield from self.sources(Touch(source.buffer, form, UNKNOWN, pattern, is_certain))

    def runs(self, touch: Touch) -> Runs | None:
        """The elements, if they are known one by one."""
        known = self.range_of(touch.index) if touch.form is None else None
        form = Form(known[0]) if known is not None and known[0] == known[1] else touch.form
        if form is None:
            return None
        if touch.pattern.all():
            return runs_of(form, self.ranges, len(touch.pattern))
        found = runs_of(form, self.ranges)
        many = found is not None and len(found.starts) * found.length > MAX_PLACES
        return None if many else found

    def reached(self, touch: Touch, count: int) -> tuple[Mask, bool]:
        """The elements of a buffer of `count`, and whether they are known one by one."""
        mask = np.zeros(count, np.bool_)
        runs = self.runs(touch)
        if runs is None:
            first, last = self.range_of(touch.index) or (0, count)
            mask[max(0, first) : max(0, last + len(touch.pattern))] = True
            return mask, False
        if touch.pattern.all():
            mark(mask, runs)
            return mask, True
        starts = (runs.starts[:, None] + np.arange(runs.length)).ravel()
        for start in starts.tolist():
            first, end = max(0, start), min(count, start + len(touch.pattern))
            mask[first:end] |= touch.pattern[first - start : end - start]
        return mask, True


def choice_of(node: ir.Expr) -> tuple[ir.Expr, tuple[ir.Expr | None, ir.Expr | None]] | None:
    """A condition, and what is evaluated only where it holds and only where it does not; None if all operands are."""
    match node:
        case ir.Select():
            return node.condition, (node.if_true, node.if_false)
        case ir.Binary(operator=ir.BinaryOperator.LOGICAL_AND):
            return node.left, (node.right, None)
        case ir.Binary(operator=ir.BinaryOperator.LOGICAL_OR):
            return node.left, (None, node.right)
        case _:
            return None
