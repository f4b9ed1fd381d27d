"""Which turns of a function's loops tell where accesses are nearest: the first and last ones, and where it changes.

What an access reaches is a sum of loop variables times numbers, and so is, for one turn of each loop, the distance
between two accesses. The greatest of several such distances is convex in each variable, and so is greatest at an end
of every stretch of turns in which no condition changes: at its first turn or its last, or, where two turns of one
loop are compared, at the two first or the two last. So these turns stand for all, exactly. A stretch ends where a
condition, a bound, or the side of a minimum may change; turns in which that depends on other variables are all looked
at, and so are those of variables that indices are not sums of.

A sum that is divided by a number and rounded down is a sum again for every d-th turn, where d is the divisor, and its
remainder a number: so as many turns at each end stand for those of a stretch.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.analyses.affine import Definitions, Form, Forms, Quotient
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.remember import Remembered
from bytewright.ir.walk import evaluated, operands, regions, walk_expression

Turns = NDArray[np.int64]
# Loops of so few turns are looked at turn by turn.
FEW_TURNS = 4
# Beyond it, as many turns at each end of a stretch would be no fewer than all.
_MOST_PERIOD = 32
_PIECEWISE = (ir.BinaryOperator.MIN, ir.BinaryOperator.MAX)
_LINEAR = (ir.BinaryOperator.ADD, ir.BinaryOperator.SUB)


@dataclass(frozen=True, slots=True)
class TellingTurns:
    """The turns of the loops of one function, whose scalar parameters have certain ranges.

    Attributes:
        definitions: What names stand for.
        ranges: Of variables, where they are known.
        changes: By variable: sums at whose change of sign something changes.
        irregular: Variables of which every turn is looked at.
        periods: By variable: of how many turns each is a class of its own, of those where that is more than 1.
        loading: The statements that themselves load from what counts, by identity.
        touching: The loops in which anything touches it.
    """

    definitions: Definitions
    ranges: Mapping[str, Range]
    changes: Mapping[str, tuple[Form, ...]]
    irregular: frozenset[str]
    periods: Mapping[str, int]
    loading: frozenset[int]
    touching: frozenset[int]

    def of(self, variable: str, begins: Turns, ends: Turns) -> Turns | None:
        """Turns of a loop, ascending, for each of the pairs of bounds that it has; None if they are not known."""
        found: set[int] = set()
        near = 2 * self.periods.get(variable, 1)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if variable in self.irregular or end - begin <= max(FEW_TURNS, 2 * near):
                found.update(range(begin, end))
                continue
            cuts = {begin, end}
            for form in self.changes.get(variable, ()):
                zone = self._zone(form, variable)
                if zone is None:
                    return None
                low, high = max(zone[0], begin), min(zone[1], end - 1)
                found.update(range(low, high + 1))
                cuts.update(cut for cut in (zone[0], zone[1] + 1) if begin < cut < end)
            for cut in cuts:
                found.update(turn for turn in range(cut - near, cut + near) if begin <= turn < end)
        return np.array(sorted(found), dtype=np.int64)

    def _zone(self, form: Form, variable: str) -> Range | None:
        """The turns in which a sum may be zero; where it passes zero between two turns, an empty range between them."""
        factor = dict(form.terms)[variable]
        rest = Form(form.constant, tuple(t for t in form.terms if t[0] != variable)).range_in(self.ranges)
        if rest is None:
            return None
        low, high = (-rest[1], -rest[0]) if factor > 0 else rest
        return -(-low // abs(factor)), high // abs(factor)


def telling_turns(
    function: ir.PrimFunc, scalars: Mapping[str, Range], touched: Collection[str]
) -> TellingTurns:
    """Reads a function whose scalar parameters lie in these ranges, for accesses to some of its parameters."""
    key = (tuple(sorted(scalars.items())), tuple(sorted(touched)))
    known = _known.get(function)
    if known is None:
        _known.put(function, known := {})
    if key not in known:
        known[key] = _read(function, scalars, touched)
    return known[key]


_known: Remembered[dict[Hashable, TellingTurns]] = Remembered()


def _read(function: ir.PrimFunc, scalars: Mapping[str, Range], touched: Collection[str]) -> TellingTurns:
    reader = _Reader(touched=set(touched), ranges=dict(scalars))
    reader.run(function.body)
    changes: dict[str, list[Form]] = {}
    for form in dict.fromkeys(reader.changes):
        for name, _ in form.terms:
            changes.setdefault(name, []).append(form)
    fixed = {name: tuple(forms) for name, forms in changes.items()}
    return TellingTurns(
        reader.definitions,
        reader.ranges,
        fixed,
        frozenset(reader.irregular),
        reader.periods,
        frozenset(reader.loading),
        frozenset(reader.touching),
    )


@dataclass(slots=True, kw_only=True)
class _Reader(Forms):
    """Reads what addresses, conditions and bounds are computed from; what data decides is nobody's turn.

    Attributes:
        touched: Names of what the accesses are to, views included.
        of_data: Variables that depend on what is loaded.
        touches: Whether anything in the block so far touches what counts.
    """

    touched: set[str]
    touches: bool = False
    changes: list[Form] = field(default_factory=list[Form])
    irregular: set[str] = field(default_factory=set[str])
    periods: dict[str, int] = field(default_factory=dict[str, int])
    of_data: set[str] = field(default_factory=set[str])
    loading: set[int] = field(default_factory=set[int])
    touching: set[int] = field(default_factory=set[int])

    def evaluate(self, statement: ir.Statement) -> None:
        """Loads."""
        self.touches |= self._loads(statement)

    def turns(self, loop: ir.For) -> Iterator[None]:
        """All turns together; the bounds count where the body touches anything."""
        outside, self.touches = self.touches, False
        self.bind(loop)
        yield
        if self.touches:
            self.touching.add(id(loop))
            self._bounds(loop)
        self.touches |= outside

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        """Both; the condition counts where one of them touches anything."""
        outside, self.touches = self.touches, False
        yield from Forms.arms(self, branch)
        if self.touches:
            self._computed(branch.condition)
        self.touches |= outside

    def define(self, let: ir.Let) -> None:
        """What data decides stands for nothing."""
        if self._depends_on_data(let.value):
            self.of_data.add(let.variable.name)
        else:
            Forms.define(self, let)

    def show(self, view: ir.View) -> None:
        """A view of what counts counts; it is no access yet."""
        if self._names(view):
            self.touched.add(view.buffer.name)
            if view.condition is not None:
                self._computed(view.condition)

    def store(self, store: ir.Store) -> None:
        """An access."""
        if store.buffer.name in self.touched:
            self._computed(ir.flat_index(store.buffer, store.indices))
            self.touches = True

    def execute(self, call: ir.InstructionCall) -> None:
        """Of an instruction that is given nothing that counts, nothing."""
        if call.touches_memory and any(b.name in self.touched for b in (*call.read, *call.written)):
            self.run(call)

    def call(self, call: ir.Call) -> None:
        """An access; what the callee makes of numbers is not looked into."""
        if self._names(call):
            self.touches = True
            for argument in call.arguments:
                if isinstance(argument, ir.Expr):
                    self._every(argument)

    def _names(self, statement: ir.View | ir.Call) -> bool:
        """Whether it names what counts; where that begins is computed."""
        named = [region for region in regions(statement) if region.buffer.name in self.touched]
        for region in named:
            self._computed(ir.region_index(region))
        return bool(named)

    def _loads(self, statement: ir.Statement) -> bool:
        """Learns where a statement loads from what counts, and on what that depends."""
        nodes = tuple(evaluated(statement))
        loads = [node for node in nodes if isinstance(node, ir.Load) and node.buffer.name in self.touched]
        if not loads:
            return False
        self.loading.add(id(statement))
        for load in loads:
            self._computed(ir.flat_index(load.buffer, load.indices))
        for node in nodes:
            if isinstance(node, ir.Select) and not self._depends_on_data(node.condition):
                self._computed(node.condition)
        return True

    def _bounds(self, loop: ir.For) -> None:
        self._computed(loop.begin)
        self._computed(loop.end)
        first, last = self.definitions.form(loop.begin), self.definitions.form(loop.end)
        if first is not None and last is not None:
            length = last.plus(first, -1)
            self._change(*(length.plus(Form(-turns)) for turns in range(4)))
        for bound in (loop.begin, loop.end):
            if self.definitions.form(bound) is None and not self._is_step(bound):
                self._every(bound)

    def _change(self, *forms: Form) -> None:
        self.changes.extend(form for form in forms if form.terms)

    def _every(self, expression: ir.Expr) -> None:
        self.irregular.update(self.definitions.variables_of(expression))

    def _depends_on_data(self, expression: ir.Expr) -> bool:
        return any(
            isinstance(node, ir.Load | ir.ScalarCall)
            or (isinstance(node, ir.Var) and node.name in self.of_data)
            for node in walk_expression(expression)
        )

    def _is_step(self, expression: ir.Expr) -> bool:
        """Whether it keeps its value where no condition changes."""
        match expression:
            case ir.Const():
                return True
            case ir.Var(name=name):
                value, known = self.definitions.values.get(name), self.ranges.get(name)
                is_fixed = known is not None and known[0] == known[1]
                return is_fixed if value is None else self._is_step(value)
            case ir.Select():
                return self._is_step(expression.if_true) and self._is_step(expression.if_false)
            case ir.Binary():
                return self._is_step(expression.left) and self._is_step(expression.right)
            case _:
                return False

    def _computed(self, expression: ir.Expr) -> None:
        """Learns what an address, a bound or a condition depends on, but for what data decides."""
        pending: list[ir.Expr] = [expression]
        while pending:
            node = pending.pop()
            if isinstance(node, ir.Cast) and node.dtype.size_bytes < node.operand.dtype.size_bytes:
                self._every(node)  # it may wrap
            if isinstance(node, ir.Var):
                if node.name not in self.of_data and node.name in self.definitions.values:
                    pending.append(self.definitions.values[node.name])
            elif not isinstance(node, ir.Const) and not self._depends_on_data(node):
                if self.definitions.form(node) is None:
                    self._operation(node)
                pending.extend(operands(node))

    def _meeting(self, left: Quotient, right: Quotient) -> None:
        """Learns where one of two sums may pass the other; of one that is rounded, anywhere in its last step.

        Where a limit holds, it is the limit that is compared.
        """
        divisor = left.divisor * right.divisor
        apart = left.numerator.times(right.divisor).plus(right.numerator.times(left.divisor), -1)
        self._change(*(apart.plus(Form(step)) for step in ((0,) if divisor == 1 else (-divisor, 0, divisor))))
        for limited, other in ((left, right), (right, left)):
            for limit in (limited.low, limited.high):
                if limit is not None:
                    self._meeting(Quotient(Form(limit)), replace(other, low=None, high=None))

    def _by_classes(self, node: ir.Binary) -> None:
        """Learns where two sums meet that have remainders in them, for each remainder."""
        left, right = self._classes(node.left), self._classes(node.right)
        if left is None or right is None:
            self._every(node)
        else:
            self._change(*(one.plus(other, -1) for one in left for other in right))

    def _classes(self, expression: ir.Expr) -> list[Form] | None:
        """What a sum with remainders may be, each of them a number; None for anything else, or too many."""
        found = self.definitions.form(expression)
        if found is not None:
            return [found]
        match expression:
            case ir.Var(name=name):
                return self._classes(self.definitions.values[name])
            case ir.Binary(operator=ir.BinaryOperator.MOD):
                remainders = self._remainders(expression)
                return None if remainders is None else [Form(number) for number in remainders]
            case ir.Binary(operator=operator) if operator in _LINEAR:
                left, right = self._classes(expression.left), self._classes(expression.right)
                if left is None or right is None or len(left) * len(right) > _MOST_PERIOD:
                    return None
                sign = 1 if operator is ir.BinaryOperator.ADD else -1
                return [one.plus(other, sign) for one in left for other in right]
            case _:
                return None

    def _remainders(self, node: ir.Binary) -> range | None:
        """All remainders, of which each has turns of its own; None if that cannot be said."""
        found = self.definitions.form(node.left)
        if found is None or not isinstance(node.right, ir.Const) or int(node.right.value) < 1:
            return None
        dividend, divisor = Quotient(found), int(node.right.value)
        if not dividend.is_natural(self.ranges) or not self._has_period(replace(dividend, divisor=divisor)):
            return None
        return range(divisor)

    def _has_period(self, quotient: Quotient) -> bool:
        """Learns the periods of the variables of a sum that is divided; False if one is too long."""
        periods = {
            name: lcm(self.periods.get(name, 1), quotient.divisor // gcd(factor, quotient.divisor))
            for name, factor in quotient.numerator.terms
        }
        if max(periods.values(), default=1) > _MOST_PERIOD:
            return False
        self.periods |= periods
        return True

    def _operation(self, node: ir.Expr) -> None:
        match node:
            case ir.Binary(operator=operator) if operator.is_lazy or operator in _LINEAR:
                pass  # it changes where an operand does
            case ir.Binary(operator=operator) if operator.is_comparison or operator in _PIECEWISE:
                left = self.definitions.quotient(node.left, self.ranges)
                right = self.definitions.quotient(node.right, self.ranges)
                if left is not None and right is not None and 1 in (left.divisor, right.divisor):
                    self._meeting(left, right)
                elif not (self._is_step(node.left) and self._is_step(node.right)):
                    self._by_classes(node)
            case ir.Binary(operator=ir.BinaryOperator.DIV):
                found = self.definitions.quotient(node, self.ranges)
                if found is None or not self._has_period(found):
                    self._every(node)
            case ir.Binary(operator=ir.BinaryOperator.MOD):
                if self._remainders(node) is None:
                    self._every(node)
            case ir.Binary(operator=ir.BinaryOperator.MUL) if isinstance(node.left, ir.Const) or isinstance(
                node.right, ir.Const
            ):
                pass
            case ir.Cast() | ir.Select():
                pass
            case _:
                self._every(node)
