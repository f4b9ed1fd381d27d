"""Which buffers could lie in others, so that a copy is spared: slices in what they are slices of, operands in what they
are put together to.

A step that only copies a block, and all of its output, needs not run where the output is a part of its input. A step
that copies all of an input to a block of its output needs not copy that where the input is a part of the output:
whoever makes it writes it where it belongs. Both hold only while nothing else is written to those bytes: so all that
writes the one has run before the step, and the other is written by the step alone.

Each part is sound by itself and with any of the others; whether it saves memory is another question. A buffer of which
one is a part is there as long as any of them is needed, so a plan may get larger: whoever asks compares plans.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.ir.address import has_constant_size, num_elements, region_index
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.moves import Move, Writes, writes_of
from bytewright.ir.analyses.touch import touch_table
from bytewright.ir.walk import calls, condition_buffer, loaded_buffers, walk_statements
from bytewright.options import Pin
from bytewright.storage.find_overlaps import scalars_of
from bytewright.storage.join_alignments import asked_alignments
from bytewright.target.model import Target


@dataclass(frozen=True, slots=True)
class Part:
    """A buffer that could lie in another one.

    Attributes:
        name: What would have no memory of its own.
        within: Where it would lie; that may be a part itself.
        first: The element of that with which it would begin.
        step: The number, among all calls of the entries, of that which would copy less, or nothing.
    """

    name: str
    within: str
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part lies in the end: in a buffer that is no part of another, from an element on."""

    root: str
    first: int


def places_of(parts: Iterable[Part]) -> dict[str, Place]:
    """Where each part lies, by name."""
    direct = {part.name: (part.within, part.first) for part in parts}
    found: dict[str, Place] = {}
    for name in direct:
        root, first = name, 0
        while root in direct:
            root, offset = direct[root]
            first += offset
        found[name] = Place(root, first)
    return found


def find_parts(module: ir.Module, target: Target, pins: tuple[Pin, ...] = ()) -> tuple[Part, ...]:
    """All parts of the entries' buffers, each in one of its own entry; what a pin names stays by itself."""
    found: list[Part] = []
    num_calls = 0
    for alone in ir.entries_alone(module):
        search = _Search(alone, target, pins)
        parts = tuple(part for step in search.copying() for part in search.parts_of(*step))
        while misplaced := search.misplaced(parts):
            parts = tuple(part for part in parts if part.name not in misplaced)
        found += [replace(part, step=num_calls + part.step) for part in parts]
        num_calls += len(calls(alone.main))
    return tuple(found)


@dataclass(slots=True)
class _Use:
    """How the entry uses a buffer.

    Attributes:
        written: The top statements that write it.
        alignment: The strictest of what it is passed for, in bytes.
        is_plain: Whether it is passed to kernels of the entry's device alone, from a known element on.
    """

    written: list[int] = field(default_factory=list[int])
    alignment: int = 1
    is_plain: bool = True


class _Search:
    """What is known of an entry; parts that were found."""

    def __init__(self, module: ir.Module, target: Target, pins: tuple[Pin, ...]) -> None:
        self.entry, self.pins = module.main, pins
        self.kernels = {kernel.name: kernel for kernel in module.kernels}
        self.alignments = asked_alignments(module, target)
        own = {s.buffer.name: s for s in self.entry.body.statements if isinstance(s, ir.Allocate)}
        self.own = {name: s for name, s in own.items() if _is_plain(s)}
        self.given = {p.buffer.name: p for p in self.entry.buffer_parameters}
        self.uses: dict[str, _Use] = {name: _Use() for name in (*own, *self.given)}
        self.found: set[str] = set()
        for position, statement in enumerate(self.entry.body.statements):
            for inner in walk_statements(statement):
                self._learn(position, inner)
        for name, touches in touch_table(module, target).of_buffers(self.entry).items():
            if name in self.uses and any(touch.device != self.entry.device for touch in touches):
                self.uses[name].is_plain = False

    def _learn(self, position: int, statement: ir.Statement) -> None:
        for buffer in (*loaded_buffers(statement), condition_buffer(statement)):
            if buffer is not None and buffer.name in self.uses:
                self.uses[buffer.name].is_plain = False
        if not isinstance(statement, ir.Call):
            return
        kernel = self.kernels.get(statement.callee)
        is_plain = kernel is not None and not kernel.is_opaque and kernel.job is None
        is_plain = is_plain and statement.kind is ir.CallKind.EXTERN
        parameters = (None,) * len(statement.arguments) if kernel is None else kernel.parameters
        alignments = self.alignments.get(statement.callee, (1,) * len(statement.arguments))
        for parameter, argument, alignment in zip(parameters, statement.arguments, alignments, strict=True):
            use = self.uses.get(argument.buffer.name) if isinstance(argument, ir.Region) else None
            if use is None or not isinstance(argument, ir.Region):
                continue
            use.is_plain = use.is_plain and is_plain and isinstance(region_index(argument), ir.Const)
            use.alignment = max(use.alignment, alignment)
            if isinstance(parameter, ir.BufferParameter) and parameter.access is not ir.Access.READ:
                use.written.append(position)

    def copying(self) -> Iterator[tuple[int, int, ir.Call, Writes]]:
        """The steps at the top that copy something: their numbers, and where they stand."""
        number = 0
        for position, statement in enumerate(self.entry.body.statements):
            kernel = self.kernels.get(statement.callee) if isinstance(statement, ir.Call) else None
            if isinstance(statement, ir.Call) and kernel is not None and statement.kind is ir.CallKind.EXTERN:
                writes = writes_of(kernel, scalars_of(kernel, statement))
                if writes is not None and writes.moves:
                    yield number, position, statement, writes
            number += sum(isinstance(inner, ir.Call) for inner in walk_statements(statement))

    def parts_of(self, number: int, position: int, call: ir.Call, writes: Writes) -> Iterator[Part]:
        """The parts that spare copies of one step."""
        passed = {p.name: r for p, r in buffer_arguments(self.kernels[call.callee], call)}
        output = passed[writes.output]
        if self.uses.get(output.buffer.name, _Use()).written != [position] or _first(output):
            return
        whole = (0, num_elements(output.buffer))
        if (
            not writes.others
            and len(writes.moves) == 1
            and (writes.moves[0].to, writes.moves[0].count) == whole
        ):
            (move,) = writes.moves
            source = passed[move.source]
            name, within, first = output.buffer.name, source.buffer.name, _first(source) + move.first
            if self._can_be(name) and self._can_hold(within, output.buffer, position):
                self.found.add(name)
                yield Part(name, within, first, number)
                return
        num_uses = [region.buffer.name for region in passed.values()]
        for move in writes.moves:
            source = passed[move.source].buffer
            is_all = (move.first, move.count, _first(passed[move.source])) == (0, num_elements(source), 0)
            if (
                is_all
                and num_uses.count(source.name) == 1
                and _is_alone(move, writes)
                and self._can_be(source.name)
                and self._is_written_before(source.name, position)
                and self._can_hold(output.buffer.name, source, position + 1)
            ):
                self.found.add(source.name)
                yield Part(source.name, output.buffer.name, move.to, number)

    def _can_be(self, name: str) -> bool:
        """Whether a buffer may have no memory of its own."""
        return name in self.own and name not in self.found and self._is_plain(name)

    def _can_hold(self, name: str, part: ir.Buffer, position: int) -> bool:
        """Whether a buffer may hold a part, with no write to it at a top statement from this one on."""
        holder, part_scope = self.own.get(name) or self.given.get(name), self.own[part.name].scope
        is_given = isinstance(holder, ir.BufferParameter)  # then it is wherever the application has memory
        return (
            holder is not None
            and self._is_plain(name)
            and holder.buffer.dtype is part.dtype
            and (holder.scope, part_scope)
            in ([(ir.GLOBAL, ir.WORKSPACE)] if is_given else [(part_scope, part_scope)])
            and self._is_written_before(name, position)
        )

    def _is_plain(self, name: str) -> bool:
        buffer = (self.own.get(name) or self.given[name]).buffer
        is_pinned = any(fnmatchcase(name, pin.pattern) for pin in self.pins)
        return (
            self.uses[name].is_plain
            and has_constant_size(buffer)
            and buffer.rows is None
            and not buffer.line_bytes
            and not is_pinned
        )

    def _is_written_before(self, name: str, position: int) -> bool:
        return all(written < position for written in self.uses[name].written)

    def misplaced(self, parts: tuple[Part, ...]) -> set[str]:
        """The parts that would begin at an address that somebody who is given them cannot take."""
        size = {part.name: self.own[part.name].buffer.dtype.size_bytes for part in parts}
        return {
            name
            for name, place in places_of(parts).items()
            if place.first * size[name] % self.uses[name].alignment
        }


def _is_plain(allocation: ir.Allocate) -> bool:
    """Whether nothing is said of it but its scope."""
    return allocation.storage == ir.Storage(
        allocation.scope, provenance=allocation.storage.provenance
    ) and not any(allocation.annotations)


def _first(region: ir.Region) -> int:
    index = region_index(region)
    return int(index.value) if isinstance(index, ir.Const) else -1


def _is_alone(move: Move, writes: Writes) -> bool:
    """Whether nothing else is written where a block goes."""
    others = [*writes.others, *((other.to, other.end - 1) for other in writes.moves if other is not move)]
    return all(last < move.to or move.end <= first for first, last in others)
