"""What a kernel does not compute but copies: blocks of an input that it stores as they are, in one block of its output.

The elements of the input lie one after the other, and so do they in the output: then the copy could be spared, if the
one buffer lay in the other. All of it is read off the loops, as they run with given scalars.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.address import flat_index
from bytewright.ir.analyses.affine import Form, Forms
from bytewright.ir.analyses.ranges import Range
from bytewright.ir.walk import walk_expression


@dataclass(frozen=True, slots=True)
class Move:
    """A block that is copied.

    Attributes:
        source: The name of the parameter that it is read from.
        first: The element of that with which it begins.
        to: The element of the output where that goes.
        count: Its elements.
    """

    source: str
    first: int
    to: int
    count: int

    @property
    def end(self) -> int:
        """The element of the output behind it."""
        return self.to + self.count


@dataclass(frozen=True, slots=True)
class Writes:
    """All that a kernel writes.

    Attributes:
        output: The name of the only parameter that it writes.
        moves: Blocks that are copied, each from a parameter that is read for that alone.
        others: Between which elements of the output everything else lies.
    """

    output: str
    moves: tuple[Move, ...]
    others: tuple[Range, ...]


def writes_of(kernel: ir.PrimFunc, scalars: Mapping[str, int]) -> Writes | None:
    """What a kernel writes, run with these scalars; None if it does more than to store under loops of known lengths."""
    outputs = [p.buffer for p in kernel.buffer_parameters if p.access is not ir.Access.READ]
    if kernel.is_opaque or kernel.job is not None or len(outputs) != 1:
        return None
    reader = _Stores(output=outputs[0].name)
    for name, value in scalars.items():
        reader.definitions.define(ir.Var(name, ir.DType.I32), ir.const(value))
    try:
        reader.run(kernel.body)
    except _UnknownError:
        return None
    stores = reader.stores
    read = [name for store in stores for name in store.loaded]
    moves = tuple(s.move for s in stores if s.move is not None and read.count(s.move.source) == 1)
    others = tuple(s.written for s in stores if s.move not in moves)
    return Writes(outputs[0].name, moves, others)


class _UnknownError(Exception):
    """The kernel is not of the kind that is understood."""


@dataclass(frozen=True, slots=True)
class _Store:
    """A store in all its turns: the elements that it writes lie in `written`; it loads from `loaded`."""

    written: Range
    loaded: tuple[str, ...]
    move: Move | None


@dataclass(slots=True, kw_only=True)
class _Stores(Forms):
    """The stores of a body, under loops of known lengths alone."""

    output: str
    stores: list[_Store] = field(default_factory=list[_Store])

    def turns(self, loop: ir.For) -> Iterator[None]:
        """All turns together, if there are any."""
        begin, end = self._number(loop.begin), self._number(loop.end)
        if begin < end:
            self.ranges[loop.variable.name] = (begin, end - 1)
            yield

    def _number(self, expression: ir.Expr) -> int:
        found = self.range_of(expression)
        if found is None or found[0] != found[1]:
            raise _UnknownError
        return found[0]

    def store(self, store: ir.Store) -> None:
        """Elements that are copied, or others."""
        place = self._form(store.buffer, store.indices)
        written = None if place is None else place.range_in(self.ranges)
        if store.buffer.name != self.output or place is None or written is None:
            raise _UnknownError
        loaded = tuple(n.buffer.name for n in walk_expression(store.value) if isinstance(n, ir.Load))
        value = _unwidened(store.value)
        move = None
        if isinstance(value, ir.Load) and value.buffer.dtype is store.buffer.dtype:
            move = self._move(value, place)
        self.stores.append(_Store(written, loaded, move))

    def _move(self, load: ir.Load, place: Form) -> Move | None:
        source = self._form(load.buffer, load.indices)
        if source is None:
            return None
        source, place = _fixed(source, self.ranges), _fixed(place, self.ranges)
        if sorted(source.terms) != sorted(place.terms) or load.buffer.name == self.output:
            return None
        found, count = source.range_in(self.ranges), _dense_count(source, self.ranges)
        if found is None or count is None:
            return None
        return Move(load.buffer.name, found[0], found[0] + place.constant - source.constant, count)

    def _form(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> Form | None:
        return None if buffer.rows is not None else self.definitions.form(flat_index(buffer, indices))

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        raise _UnknownError(branch)

    def show(self, view: ir.View) -> None:
        raise _UnknownError(view)

    def call(self, call: ir.Call) -> None:
        raise _UnknownError(call)

    def allocate(self, allocate: ir.Allocate) -> None:
        raise _UnknownError(allocate)


def _unwidened(value: ir.Expr) -> ir.Expr:
    """What an integer was before it was made wider, and as wide as it was again."""
    inner = value
    while (
        isinstance(inner, ir.Cast)
        and inner.dtype.is_integer
        and inner.dtype.size_bytes >= value.dtype.size_bytes
    ):
        inner = inner.operand
    return inner


def _fixed(form: Form, ranges: Mapping[str, Range]) -> Form:
    """The form with the value of each variable that has only one in its place."""
    fixed = Form(form.constant)
    for name, step in form.terms:
        low, high = ranges.get(name, (0, 1))
        fixed = fixed.plus(Form(low) if low == high else Form(0, ((name, 1),)), step)
    return fixed


def _dense_count(form: Form, ranges: Mapping[str, Range]) -> int | None:
    """How many elements a form runs through, if each but the last is followed by the next; else None."""
    count = 1
    for step, turns in sorted((step, ranges[name][1] - ranges[name][0] + 1) for name, step in form.terms):
        if turns > 1 and step != count:
            return None
        count *= turns
    return count
