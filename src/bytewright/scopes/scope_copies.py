"""Copies between scopes: where two calls want one value in places that have nothing in common.

A value is what a piece of memory holds until it is written again. For each value and destination there is one copy,
made right before the first statement that needs it, and outside of loops that do not change the value. What a call
writes elsewhere is brought back right behind it, and serves what reads it there afterwards. The buffers of copies are
allocated like any other.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.analyses.bind_symbols import Known
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import defined_names, named_buffers, names_in, regions, stores, walk_statements
from bytewright.scopes.copy_kernels import CopyKernels
from bytewright.scopes.drop_dead_copies import DropDeadCopies, Move
from bytewright.scopes.scope_uses import Memory, Piece, Use, Written
from bytewright.target.model import Device, Role

# By a call's identity and the number of an argument: what it is given elsewhere than it asks for.
Needed = Mapping[tuple[int, int], Use]


@dataclass(frozen=True, slots=True)
class Copied:
    """A piece of memory, and where a copy of it is."""

    piece: Piece
    scope: ir.Scope | None


_Stop = tuple[Piece, ir.Scope | None]  # a place that a value is copied from or to
Live = dict[Copied, None]  # copies that hold what the memory holds, in order


_COPY = "device_copy"
_HELP = "ask for one scope in both, or pass a copy"


def with_copies(
    function: ir.PrimFunc,
    needed: Needed,
    memory: Memory,
    scopes: Mapping[str, ir.Scope | None],
    kernels: Mapping[str, Known],
    copies: CopyKernels,
    full: Container[Written],
) -> ir.PrimFunc:
    """The function whose calls are given copies where they need them.

    Args:
        function: A kernel or an entry.
        needed: The arguments that are to be copies.
        memory: What its names stand for.
        scopes: Of what it defines, and of constants.
        kernels: Those that it may call.
        copies: The kernels that copy, to which those that are missing are added.
        full: Parameters that are written to the last element. Of others, what was there before is kept.

    Raises:
        CompileError: BW703 and BW705, for copies that cannot be made.
    """
    return _Copying(function, needed, memory, scopes, kernels, copies, full).run()


@dataclass(slots=True)
class _Copying:
    function: ir.PrimFunc
    needed: Needed
    memory: Memory
    scopes: Mapping[str, ir.Scope | None]
    kernels: Mapping[str, Known]
    copies: CopyKernels
    full: Container[Written]
    names: set[str] = field(default_factory=set[str])
    buffers: dict[Copied, ir.Allocate] = field(default_factory=dict[Copied, ir.Allocate])
    destinations: dict[Piece, list[ir.Scope | None]] = field(
        default_factory=dict[Piece, list["ir.Scope | None"]]
    )
    first: dict[Copied, Use] = field(default_factory=dict[Copied, Use])  # what each copy is made for
    between: dict[tuple[Copied, str], ir.Allocate] = field(
        default_factory=dict[tuple[Copied, str], ir.Allocate]
    )  # where a copy is on its way, by pool
    moves: dict[int, Move] = field(default_factory=dict[int, Move])
    calls: set[int] = field(default_factory=set[int])  # that are given copies, by identity
    num_threads: int = 0  # parallel loops around the present statement

    def run(self) -> ir.PrimFunc:
        self.names = {*names_in(self.function), *self.scopes}
        for use in self.needed.values():
            self.add_destination(use)
        for use in self.needed.values():
            self.first.setdefault(self.copy_of(use), use)
        self.calls = {call for call, _ in self.needed}
        written = replace(self.function, body=self.block(self.function.body, {}, {}))
        body = DropDeadCopies(self.memory, self.kernels, self.moves, self.full).run(written).body
        before, named = ({b.name for b in named_buffers(each)} for each in (self.function.body, body))
        made = (*self.buffers.values(), *self.between.values())
        used = (allocation for allocation in made if allocation.buffer.name in named)
        return replace(self.function, body=ir.Seq((*used, *_without(body, before - named).statements)))

    def add_destination(self, use: Use) -> None:
        """Uses that have a place in common share a copy."""
        known = self.destinations.setdefault(use.piece, [])
        for number, scope in enumerate(known):
            try:
                known[number] = ir.join_scopes(scope, use.parameter.scope)
                return
            except ValueError:
                continue
        known.append(use.parameter.scope)

    def copy_of(self, use: Use) -> Copied:
        """The copy that a use is given."""
        fitting = (s for s in self.destinations[use.piece] if ir.is_within(s, use.parameter.scope))
        return Copied(use.piece, next(fitting))

    # Statements in order, with the copies that hold what memory holds

    def block(self, sequence: ir.Seq, live: Live, after: Live) -> ir.Seq:
        """A sequence, behind which the copies of `after` are read; what is live at its end is left in `live`."""
        written: list[ir.Statement] = []
        statements = sequence.statements
        for number, statement in enumerate(statements):
            if isinstance(statement, ir.Call):
                written.extend(self.call(statement, live))
            elif not self.has_needed(statement):
                self.forget(live, statement)
                written.append(statement)
            else:
                written.extend(self.inner(statement, live, self.before(statements[number + 1 :], after)))
        for name in (name for statement in statements for name in defined_names(statement)):
            _drop(live, name)
        return ir.Seq(tuple(written))

    def inner(self, statement: ir.Statement, live: Live, after: Live) -> Iterator[ir.Statement]:
        match statement:
            case ir.Seq():
                yield self.block(statement, live, after)
            case ir.If():
                yield from self.branch(statement, live, after)
            case ir.For():
                yield from self.loop(statement, live, after)
            case _:
                yield statement

    def branch(self, statement: ir.If, live: Live, after: Live) -> Iterator[ir.Statement]:
        """What is needed on more than one way is copied before they part."""
        sides = (statement.then, statement.otherwise or ir.Seq(()))
        first = [self.before(side.statements, {}) for side in sides]
        later = dict(after)
        self.forget(later, statement)
        for copied in {**first[0], **first[1]}:
            if [copied in way for way in (*first, later)].count(True) > 1:
                yield from self.fill(copied, live)
        ends = [dict(live), dict(live)]
        then, otherwise = (self.block(side, end, after) for side, end in zip(sides, ends, strict=True))
        live.clear()
        live.update((copied, None) for copied in ends[0] if copied in ends[1])
        yield ir.If(statement.condition, then, None if statement.otherwise is None else otherwise)

    def loop(self, loop: ir.For, live: Live, after: Live) -> Iterator[ir.Statement]:
        """What no turn changes is copied before the first; what is live as a turn begins is so at the end of each."""
        for copied in self.before((loop,), {}):
            kept = {copied: None}
            self.forget(kept, loop)
            if copied in kept:
                yield from self.fill(copied, live)
        turn = {**self.before(loop.body.statements, after), **after}
        _drop(turn, loop.variable.name)
        self.num_threads += loop.kind is ir.LoopKind.PARALLEL
        while True:
            end = dict(live)
            body = self.block(loop.body, end, turn)
            _drop(end, loop.variable.name)
            lost = [copied for copied in live if copied not in end]
            for copied in lost:
                del live[copied]
            if not lost:
                break
        self.num_threads -= loop.kind is ir.LoopKind.PARALLEL
        if _has_turns(loop):
            live.update(end)
        yield replace(loop, body=body)

    def call(self, call: ir.Call, live: Live) -> Iterator[ir.Statement]:
        """A call, with what it reads copied before it, and what it wrote behind it."""
        arguments, backs = list(call.arguments), Live()
        for use in self.memory.uses(call, self.kernels):
            if (id(call), use.index) not in self.needed:
                continue
            copied = self.copy_of(use)
            if not use.is_overwritten(self.full):
                yield from self.fill(copied, live)
            arguments[use.index] = ir.Region(self.buffer(copied))
            if use.is_written and not use.is_scratch:
                backs[copied] = None
        yield replace(call, arguments=tuple(arguments))
        self.forget(live, call)
        for copied in backs:
            yield from self.move(copied, is_back=True)
            self.overwrite(live, copied.piece)
            live[copied] = None

    # What statements need, and what they end

    def before(self, statements: Sequence[ir.Statement], after: Live) -> Live:
        """The copies that would be read, of values that memory holds before some statements."""
        found = dict(after)
        for statement in reversed(statements):
            match statement:
                case ir.Call():
                    self.forget(found, statement)
                    uses = self.memory.uses(statement, self.kernels)
                    read = (
                        u
                        for u in uses
                        if (id(statement), u.index) in self.needed and not u.is_overwritten(self.full)
                    )
                    found = {**dict.fromkeys(map(self.copy_of, read)), **found}
                case ir.Seq():
                    found = self.before(statement.statements, found)
                case ir.If():
                    sides = (statement.then, statement.otherwise or ir.Seq(()))
                    first, second = (self.before(side.statements, found) for side in sides)
                    found = {**first, **second}
                case ir.For():
                    turn = self.before(statement.body.statements, found)
                    _drop(turn, statement.variable.name)
                    found = {**self.before(statement.body.statements, {**turn, **found}), **found}
                case _:
                    self.forget(found, statement)
            for name in defined_names(statement):
                _drop(found, name)
        return found

    def forget(self, live: Live, statement: ir.Statement) -> None:
        """Drops the copies of what a statement writes."""
        for inner in walk_statements(statement) if live else ():
            for store in stores(inner):
                self.overwrite(live, Piece(store.buffer, store.indices, (1,)))
            if isinstance(inner, ir.InstructionCall):
                for written in inner.written:
                    self.overwrite(live, Piece(written, (), ir.storage_shape(written)))
            if isinstance(inner, ir.Call) and inner.callee in self.kernels:
                for use in self.memory.uses(inner, self.kernels):
                    if use.is_written:
                        self.overwrite(live, use.piece)
            elif isinstance(inner, ir.Call):
                for given in regions(inner):
                    self.overwrite(live, Piece(given.buffer, (), ir.storage_shape(given.buffer)))

    def overwrite(self, live: Live, piece: Piece) -> None:
        for copied in [copied for copied in live if self.memory.may_overlap(copied.piece, piece)]:
            del live[copied]

    def has_needed(self, statement: ir.Statement) -> bool:
        """Whether any call in a statement is given a copy."""
        return any(id(inner) in self.calls for inner in walk_statements(statement))

    # Copies

    def fill(self, copied: Copied, live: Live) -> Iterator[ir.Statement]:
        """Makes a copy, if there is none that holds the value."""
        if copied not in live:
            yield from self.move(copied)
            live[copied] = None

    def move(self, copied: Copied, *, is_back: bool = False) -> Iterator[ir.Call]:
        """The calls that copy, from where a value is or back: one, or more where no device reaches both ends."""
        use, piece = self.first[copied], copied.piece
        if self.num_threads:
            raise self.refused(use, "a parallel loop has no copy of its own")
        if piece.is_told_by_data:
            raise self.refused(use, "what part of it is copied is read from memory")
        homes = [(name, self.scopes[name]) for name in self.memory.of(piece.buffer.name)]
        scopes = tuple(dict.fromkeys(scope for _, scope in homes))
        home = scopes[0] if len(scopes) == 1 else None if None in scopes else ir.GLOBAL
        stops = [(piece, home)]
        hops = self.copies.route(self.function, use, homes, copied.scope)
        for hop in hops[:-1]:
            assert hop.pool is not None
            stops.append((_whole(self.on_the_way(copied, hop.pool)), ir.pool_scope(hop.pool)))
        stops.append((_whole(self.buffer(copied)), copied.scope))
        parts = list(zip(stops[:-1], stops[1:], (hop.device for hop in hops), strict=True))
        for near, far, device in reversed(parts) if is_back else parts:
            yield self.hop(*((far, near) if is_back else (near, far)), device, use, is_back=is_back)

    def hop(self, source: _Stop, destination: _Stop, device: Device, use: Use, *, is_back: bool) -> ir.Call:
        """The call of a device that copies between two places."""
        (read, first), (written, second) = source, destination
        kernel = self.copies.between(read.shape, read.buffer.dtype, device, (first, second))
        symbols = (p.variable for p in kernel.parameters if isinstance(p, ir.ScalarParameter))
        operators = tuple(f"{_COPY} for {operator}" for operator in use.call.operators) or (_COPY,)
        regions = (read.region, written.region)
        call = ir.Call(kernel.name, (*regions, *symbols), operators=operators, where=use.call.where)
        self.moves[id(call)] = Move(call, read, written, is_back)
        return call

    def buffer(self, copied: Copied) -> ir.Buffer:
        """Where a copy is."""
        if copied not in self.buffers:
            use, piece, scope = self.first[copied], copied.piece, copied.scope
            self.check(use, scope)
            tag = "" if scope is None or scope.tag is None else f"_in_{scope.tag}"
            alignment = max(
                piece.buffer.alignment, *(u.parameter.buffer.alignment for u in self.users(copied))
            )
            name = unique_name(f"{piece.buffer.name}{tag}", self.names)
            buffer = ir.Buffer(name, piece.shape, piece.buffer.dtype, alignment)
            homes = ", ".join(str(self.scopes[root]) for root in self.memory.of(piece.buffer.name))
            reason = f"place_scopes: a copy of '{piece.buffer.name}', which is in {homes}: {use.asking}"
            self.copies.buffers.add((self.function.name, name))
            self.buffers[copied] = ir.Allocate(buffer, ir.Storage(scope, provenance=(reason,)))
        return self.buffers[copied].buffer

    def on_the_way(self, copied: Copied, pool: str) -> ir.Buffer:
        """Where a copy is in a pool between its two ends."""
        if (copied, pool) not in self.between:
            made = self.buffer(copied)
            buffer = replace(made, name=unique_name(f"{copied.piece.buffer.name}_through_{pool}", self.names))
            reason = f"place_scopes: '{copied.piece.buffer.name}' on its way to '{made.name}': no device reaches both"
            storage = ir.Storage(ir.pool_scope(pool), provenance=(reason,))
            self.copies.buffers.add((self.function.name, buffer.name))
            self.between[copied, pool] = ir.Allocate(buffer, storage)
        return self.between[copied, pool].buffer

    def users(self, copied: Copied) -> Iterator[Use]:
        return (use for use in self.needed.values() if self.copy_of(use) == copied)

    def check(self, use: Use, scope: ir.Scope | None) -> None:
        """Refuses places that nothing can be copied to.

        Raises:
            CompileError: BW705.
        """
        pool = None if scope is None else self.copies.target.find_pool(scope.pool or "")
        if pool is not None and pool.role is not Role.WORKSPACE:
            raise self.refused(use, f"nothing is copied into '{pool.name}', a {pool.role.value} pool")
        if ir.is_on_stack(scope) and self.function.name in self.copies.entries:
            raise self.refused(use, "the entry has nothing on a stack")

    def refused(self, use: Use, why: str) -> CompileError:
        known = (f"'{name}' is in {self.scopes[name]}" for name in self.memory.of(use.piece.buffer.name))
        return compile_error(
            "BW705",
            f"'{use.piece.buffer.name}' cannot be in {use.parameter.scope}, and no copy can: {why}",
            (use.asking, *known),
            _HELP,
            str(use.call.where),
        )


def _without(body: ir.Seq, names: Container[str]) -> ir.Seq:
    """A body without allocations that nothing uses any more, since nobody reads what would be copied back there."""

    def keep(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        is_left = not isinstance(statement, ir.Allocate) or statement.buffer.name not in names
        return (statement,) if is_left else ()

    return rewrite_sequence(body, Rewriting(statement=keep))


def _drop(live: Live, name: str) -> None:
    """Ends what is told by a name that ends, or is not defined yet."""
    for copied in [copied for copied in live if name in copied.piece.names]:
        del live[copied]


def _whole(buffer: ir.Buffer) -> Piece:
    return Piece(buffer, (), ir.storage_shape(buffer))


def _has_turns(loop: ir.For) -> bool:
    begin, end = loop.begin, loop.end
    return isinstance(begin, ir.Const) and isinstance(end, ir.Const) and begin.value < end.value
