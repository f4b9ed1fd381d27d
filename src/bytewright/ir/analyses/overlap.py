"""How near a kernel's output may come to an input that nobody needs afterwards.

A kernel may write where it has finished reading. With `w` a byte of the output that is written, counted from where
the output begins, and `r` a byte of the input that is read later, from where the input begins, the two must not meet:
the output may begin `max(w - r) + 1` bytes below the input or further down, or `max(r - w) + 1` bytes above it or
further up. Both are found by going through the body as it runs, with those turns of its loops alone that tell
(`turns.py`), for all of them at once (`spans.py`). A statement reads before it writes; nothing else is moved. What is
not known counts as the worst: an index that data decides reaches all of its buffer, of a condition that data decides
both branches run. Where no distance can be told, because the order is open or a loop's bounds are, there is none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments, scalar_arguments
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.analyses.rows import ROW_END
from bytewright.ir.analyses.spans import NOTHING, Reach, Span
from bytewright.ir.analyses.turns import FEW_TURNS, TellingTurns, telling_turns
from bytewright.ir.analyses.values import Numbers, evaluate
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import expressions, operands, regions, walk_expression

# Combinations of turns that are looked at together, at most.
MAX_TURNS = 1 << 20
# A truth value for each combination of turns, or the same for all.
Mask = NDArray[np.bool_] | Literal[True]


@dataclass(frozen=True, slots=True)
class Distances:
    """How far below its input, or above it, an output must begin: all of it, or nothing is lost."""

    below_bytes: int
    above_bytes: int


@dataclass(frozen=True, slots=True)
class Given:
    """What a parameter is: the buffer that is read, or the one that is written, from one of its bytes on."""

    is_output: bool
    first_byte: int = 0


class _OpenError(Exception):
    """No distance can be told."""


def overlap_distances(
    function: ir.PrimFunc,
    given: Mapping[str, Given],
    scalars: Mapping[str, int],
    kernels: Mapping[str, ir.PrimFunc],
) -> Distances | None:
    """The distances that one call of a kernel needs between one input and one output; None if they must be apart.

    Args:
        function: The kernel.
        given: Its parameters for which the input or the output is passed; each is of one of the two alone.
        scalars: The values of its scalar parameters, of extents the greatest one. Others are not known.
        kernels: Those that it may call.
    """
    found = _read(function, given, scalars, kernels)
    if found is None:
        return None
    span, _ = found
    below, above = (0 if most is None else max(int(most.max()), 0) for most in (span.below, span.above))
    return Distances(below, above)


def unordered_loops(
    function: ir.PrimFunc, outputs: Collection[str], scalars: Mapping[str, int]
) -> frozenset[int] | None:
    """The loops, by identity, of which two turns may write the same bytes of an output; None if that is not known.

    Args:
        function: A kernel that calls no others.
        outputs: The names of the parameters that it writes.
        scalars: As for `overlap_distances`.
    """
    unordered: set[int] = set()
    for output in outputs:
        found = _read(function, {output: Given(is_output=True)}, scalars, {})
        if found is None:
            return None
        unordered |= found[1]
    return frozenset(unordered)


def _read(
    function: ir.PrimFunc,
    given: Mapping[str, Given],
    scalars: Mapping[str, int],
    kernels: Mapping[str, ir.PrimFunc],
) -> tuple[Span, set[int]] | None:
    """The whole body, and its unordered loops; None if its order is open."""
    if function.is_opaque:
        return None
    symbols = symbols_of(function)
    # Ends of rows are extents where these are open.
    ends = {n: scalars[n] for n in ((*symbols, ROW_END) if symbols else ()) if n in scalars}
    ranges = {name: (0 if name in ends else value, value) for name, value in scalars.items()}
    values: dict[str, Numbers | None] = {
        n: np.array(value, dtype=np.int64) for n, value in scalars.items() if n not in ends
    }
    places = {
        name: [_Place(where.is_output, np.array(where.first_byte, dtype=np.int64))]
        for name, where in given.items()
    }
    reader = _Reader(kernels, telling_turns(function, ranges, given), ends, places, values)
    try:
        reader.run(function.body)
    except _OpenError:
        return None
    return reader.span or Span(), reader.unordered


def _rises(expression: ir.Expr, names: Collection[str]) -> bool:
    """Whether more of the extents of these names is never less of an expression that has no other variable."""
    match expression:
        case ir.Const():
            return True
        case ir.Var():
            return expression.name in names
        case ir.Binary(operator=ir.BinaryOperator.ADD | ir.BinaryOperator.MIN | ir.BinaryOperator.MAX):
            return _rises(expression.left, names) and _rises(expression.right, names)
        case ir.Binary(operator=ir.BinaryOperator.SUB, right=ir.Const()):
            return _rises(expression.left, names)
        case ir.Binary(
            operator=ir.BinaryOperator.MUL | ir.BinaryOperator.DIV, right=ir.Const(value=int(value))
        ) if value > 0:
            return _rises(expression.left, names)
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _Place:
    """One thing that a name may stand for: where it begins in the input or the output, in which turns."""

    is_output: bool
    first_byte: Numbers
    mask: Mask = True


@dataclass(slots=True)
class _Reader(Interpreter):
    """One body, and what is known at the present statement.

    Attributes:
        ends: The greatest values of open extents. Less of one is fewer turns of loops that end there, and the others in
            the order that they had; all else that is computed from it is not known.
        places: What names of buffers stand for, of those that are in the input or the output.
        values: Of variables, for each combination of turns of the loops around; None if that is not known.
        mask: The combinations in which the statement runs.
        num_axes: Loops around that are looked at turn by turn.
        num_turns: Combinations of their turns.
        unordered: Loops, by identity, whose turns write neither one after the other nor the other way round.
        span: Of the block so far; None if it touches nothing.
    """

    kernels: Mapping[str, ir.PrimFunc]
    telling: TellingTurns
    ends: Mapping[str, int]
    places: dict[str, list[_Place]]
    values: dict[str, Numbers | None]
    mask: Mask = True
    num_axes: int = 0
    num_turns: int = 1
    unordered: set[int] = field(default_factory=set[int])
    span: Span | None = None

    # Statements

    def evaluate(self, statement: ir.Statement) -> None:
        """What is loaded is read before anything is written."""
        if id(statement) in self.telling.loading:
            for expression in expressions(statement):
                self._then(self._loads(expression, self.mask))

    def execute(self, call: ir.InstructionCall) -> None:
        """Of an instruction that is given neither the input nor the output, nothing."""
        if call.touches_memory and any(b.name in self.places for b in (*call.read, *call.written)):
            self.run(call)

    def turns(self, loop: ir.For) -> Iterator[None]:
        """The turns that tell, all of them at once."""
        if id(loop) not in self.telling.touching:
            return
        begin, end = evaluate(loop.begin, self.values), self._end(loop.end)
        if begin is None or end is None or loop.kind is ir.LoopKind.PARALLEL:
            raise _OpenError
        outside = self.span, self.mask, self.num_axes, self.num_turns
        if not self._enter(loop.variable.name, begin, end):
            return
        num_turns = self.num_turns // outside[-1]
        self.span = None
        yield
        span, num_axes = self.span, self.num_axes
        self.span, self.mask, self.num_axes, self.num_turns = outside
        if span is not None:
            self._then(span.turned(num_turns, num_axes))
            if not span.is_ordered(num_turns, num_axes):
                self.unordered.add(id(loop))

    def _end(self, expression: ir.Expr) -> Numbers | None:
        """The end of a loop; the greatest where an open extent decides it."""
        if self.ends and _rises(expression, self.ends):
            return evaluate(
                expression, {name: np.array(value, dtype=np.int64) for name, value in self.ends.items()}
            )
        return evaluate(expression, self.values)

    def _enter(self, variable: str, begin: Numbers, end: Numbers) -> bool:
        """Chooses the turns of a loop, as a new axis in front of the others; False if it never turns."""
        first, last, runs = np.broadcast_arrays(begin, end, self._runs(begin < end))
        first, last = first[runs], last[runs]
        if not first.size:
            return False
        longest = int((last - first).max())
        if longest <= FEW_TURNS or variable in self.telling.irregular:
            turns = begin + _axis(np.arange(longest, dtype=np.int64), self.num_axes)
            num_turns, all_run = longest, bool((last - first == longest).all())
        else:
            bounds = np.unique(np.stack((first, last)), axis=1)
            telling = self.telling.of(variable, bounds[0], bounds[1])
            if telling is None:
                raise _OpenError
            turns = _axis(telling, self.num_axes)
            num_turns, all_run = len(telling), bounds.shape[1] == 1
        self.num_turns *= num_turns
        if self.num_turns > MAX_TURNS:
            raise _OpenError
        self.num_axes += 1
        self.values[variable] = turns
        if not (all_run and runs.all()):
            self.mask = self._runs((turns >= begin) & (turns < end))
        return True

    def _runs(self, condition: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where a condition holds and the statement runs."""
        return condition if self.mask is True else condition & self.mask

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        """Each arm with the combinations in which it is taken, where there are any; both if data decides."""
        outside, holds = self.mask, evaluate(branch.condition, self.values)
        for arm, side in ((branch.then, True), (branch.otherwise, False)):
            if arm is None:
                continue
            if holds is not None:
                self.mask = _both(outside, holds.astype(bool) == side)
            if self.mask is True or np.any(self.mask):
                yield arm
            self.mask = outside

    def define(self, let: ir.Let) -> None:
        self.values[let.variable.name] = evaluate(let.value, self.values)

    def show(self, view: ir.View) -> None:
        holds = None if view.condition is None else evaluate(view.condition, self.values)
        found: list[_Place] = []
        for region, side in ((view.source, True), (view.otherwise, False)):
            if region is not None:
                mask = True if holds is None else holds.astype(bool) == side
                found += self._shown(region, mask)
        if found:
            self.places[view.buffer.name] = found

    def store(self, store: ir.Store) -> None:
        for place in self.places.get(store.buffer.name, ()):
            if not place.is_output:
                raise _OpenError
            self._then(Span(written=self._bytes(place, store.buffer, store.indices, self.mask)))

    def call(self, call: ir.Call) -> None:
        """The body of the callee, in the place of the call."""
        if not any(region.buffer.name in self.places for region in regions(call)):
            return
        callee = self.kernels.get(call.callee)
        if callee is None or callee.is_opaque or call.kind is not ir.CallKind.EXTERN:
            raise _OpenError
        places = {p.name: self._shown(region) for p, region in buffer_arguments(callee, call)}
        scalars = {p.name: evaluate(value, self.values) for p, value in scalar_arguments(callee, call)}
        ranges: dict[str, Range] = {
            name: (int(value.min()), int(value.max())) for name, value in scalars.items() if value is not None
        }
        places = {name: found for name, found in places.items() if found}
        telling = telling_turns(callee, ranges, places)
        inner = _Reader(self.kernels, telling, {}, places, scalars, self.mask, self.num_axes, self.num_turns)
        inner.run(callee.body)
        self._then(inner.span)

    def _then(self, later: Span | None) -> None:
        """Adds what comes next."""
        self.span = _in_turn(self.span, later)

    def _shown(self, region: ir.Region, mask: Mask = True) -> list[_Place]:
        """What a region stands for."""
        found: list[_Place] = []
        for place in self.places.get(region.buffer.name, ()):
            index = evaluate(ir.region_index(region), self.values)
            if index is None:
                raise _OpenError
            first = place.first_byte + index * region.buffer.dtype.size_bytes
            found.append(_Place(place.is_output, first, _both(place.mask, mask)))
        return found

    def _loads(self, expression: ir.Expr, mask: Mask) -> Span | None:
        """What an expression reads; of a choice, the side that is chosen."""
        if not any(
            isinstance(node, ir.Load) and node.buffer.name in self.places
            for node in walk_expression(expression)
        ):
            return None
        if isinstance(expression, ir.Select):
            found = self._loads(expression.condition, mask)
            holds = evaluate(expression.condition, self.values)
            for value, side in ((expression.if_true, True), (expression.if_false, False)):
                chosen = mask if holds is None else _both(mask, holds.astype(bool) == side)
                found = _in_turn(found, self._loads(value, chosen))
            return found
        found = None
        for operand in operands(expression):
            found = _in_turn(found, self._loads(operand, mask))
        if isinstance(expression, ir.Load):
            for place in self.places.get(expression.buffer.name, ()):
                if not place.is_output:  # what it reads of the output, it has written
                    read = self._bytes(place, expression.buffer, expression.indices, mask)
                    found = _in_turn(found, Span(read=read))
        return found

    def _bytes(self, place: _Place, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], mask: Mask) -> Reach:
        """The first and the last byte of an element, or of all that there is where it is not known which one."""
        index = evaluate(ir.flat_index(buffer, indices), self.values)
        size = buffer.dtype.size_bytes
        last = size - 1 if index is not None else ir.size_bytes(buffer) - 1
        low = place.first_byte + (0 if index is None else index * size)
        mask = _both(mask, place.mask)
        if mask is True:
            return Reach(low, low + last)
        return Reach(np.where(mask, low, NOTHING), np.where(mask, low + last, -NOTHING))


def _axis(turns: Numbers, num_axes: int) -> Numbers:
    """Turns of a loop as an axis in front of others."""
    return turns.reshape((-1, *(1,) * num_axes))


def _both(first: Mask, second: Mask) -> Mask:
    return second if first is True else first if second is True else first & second


def _in_turn(first: Span | None, second: Span | None) -> Span | None:
    return second if first is None else first if second is None else first.then(second)
