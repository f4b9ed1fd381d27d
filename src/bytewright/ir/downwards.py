"""Kernels that run from the last row and pixel to the first, so that their output may lie above their input.

A loop may run backwards whose turns are independent: none reads what another one wrote, and no two write the same
byte. That is found out here, not assumed; sums inside a pixel are not independent, and keep their order.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from bytewright.base.c_names import unique_name
from bytewright.ir.address import flat_index
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.overlap import unordered_loops
from bytewright.ir.analyses.turns import telling_turns
from bytewright.ir.expr import Var
from bytewright.ir.prim import (
    Access,
    Allocate,
    Call,
    For,
    InstructionCall,
    Let,
    LoopKind,
    ParameterRole,
    PrimFunc,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.remember import Remembered
from bytewright.ir.rewrite import with_blocks
from bytewright.ir.symbols import symbols_of
from bytewright.ir.walk import (
    evaluated,
    loaded_buffers,
    names_in,
    regions,
    statements_of,
    stored_buffers,
    walk_statements,
)

# Of the bounds of a loop: their sum is computed in 32 bits.
_LARGEST_BOUND = 1 << 30
_NOTE = "from the last to the first, because the output lies above the input"

_known: Remembered[dict[Hashable, PrimFunc | None]] = Remembered()


def run_downwards(function: PrimFunc, scalars: Mapping[str, int]) -> PrimFunc | None:
    """The kernel with its independent loops backwards, those that both read and write; None without any.

    Args:
        function: A kernel.
        scalars: What its scalar parameters are at a call, of extents the greatest value.
    """
    known = _known.get(function)
    if known is None:
        _known.put(function, known := {})
    key = tuple(sorted(scalars.items()))
    if key not in known:
        loops = _Independent(function, scalars).loops
        known[key] = _turned(function, loops) if loops else None
    return known[key]


def _turned(function: PrimFunc, loops: list[For]) -> PrimFunc:
    taken, chosen = set(names_in(function)), {id(loop) for loop in loops}
    outermost = loops[0]

    def change(sequence: Seq) -> Seq:
        return Seq(tuple(map(turned, sequence.statements)))

    def turned(statement: Statement) -> Statement:
        changed = with_blocks(statement, change)
        if not isinstance(changed, For) or id(statement) not in chosen:
            return changed
        up = replace(changed.variable, name=unique_name(f"{changed.variable.name}_up", taken))
        down = Let(changed.variable, changed.begin + changed.end - 1 - up)
        notes = [note for note in (changed.note, _NOTE if statement is outermost else "") if note]
        body = Seq((down, *changed.body.statements))
        return replace(changed, variable=up, body=body, note=", ".join(notes))

    return replace(function, body=change(function.body))


class _Independent:
    """The loops of a kernel that may run backwards, and of which the direction tells, outer ones first."""

    def __init__(self, function: PrimFunc, scalars: Mapping[str, int]) -> None:
        activations = [p for p in function.buffer_parameters if p.role is ParameterRole.ACTIVATION]
        self.inputs = {p.name for p in activations if p.access is Access.READ}
        self.outputs = {p.name for p in activations if p.access is Access.WRITE}
        self.symbols = symbols_of(function).keys()
        self.loops: list[For] = []
        is_plain = all(p.access is not Access.READ_WRITE for p in activations) and not function.is_opaque
        if not is_plain or not self.inputs or any(isinstance(s, Call) for s in statements_of(function)):
            return
        unordered = unordered_loops(function, self.outputs, scalars)
        if unordered is None:
            return
        ranges = telling_turns(function, {n: (v, v) for n, v in scalars.items()}, self.outputs).ranges
        for statement in statements_of(function):
            if isinstance(statement, View):  # names are unique in a function
                names = {region.buffer.name for region in regions(statement)}
                self.inputs |= {statement.buffer.name} if names & self.inputs else set()
                self.outputs |= {statement.buffer.name} if names & self.outputs else set()
        loops = [s for s in statements_of(function) if isinstance(s, For) and id(s) not in unordered]
        independent = [
            loop
            for loop in loops
            if ranges.get(loop.variable.name, (0, _LARGEST_BOUND))[1] < _LARGEST_BOUND
            and self._is_independent(loop)
        ]
        # C compilers make vectors of elements that lie one after another, in loops that go up alone.
        self.loops = [loop for loop in independent if not self._is_dense(loop)] or independent

    def _is_independent(self, loop: For) -> bool:
        if loop.kind is not LoopKind.SERIAL or self._has_open_bounds(loop):
            return False
        inside = list(walk_statements(loop.body))
        own = {s.buffer.name for s in inside if isinstance(s, Allocate)}
        own |= {b.name for s in (loop, *inside) if isinstance(s, For) for b in s.private}
        loaded = {buffer.name for s in inside for buffer in loaded_buffers(s)}
        stored = {buffer.name for s in inside for buffer in stored_buffers(s)}
        return (
            bool(loaded & self.inputs)
            and bool(stored & self.outputs)
            and not loaded & self.outputs
            and stored <= own | self.outputs
        )

    def _is_dense(self, loop: For) -> bool:
        """Whether a loop without others in it writes one element of an output after the other."""
        inside = list(walk_statements(loop.body))
        names, stores = (
            Definitions(),
            [s for s in inside if isinstance(s, Store) and s.buffer.name in self.outputs],
        )
        for statement in inside:
            if isinstance(statement, Let):
                names.define(statement.variable, statement.value)
        forms = [names.form(flat_index(store.buffer, store.indices)) for store in stores]
        steps = {None if form is None else dict(form.terms).get(loop.variable.name) for form in forms}
        return steps == {1} and not any(isinstance(s, For | InstructionCall) for s in inside)

    def _has_open_bounds(self, loop: For) -> bool:
        bounds = replace(loop, body=Seq(()))
        return any(isinstance(node, Var) and node.name in self.symbols for node in evaluated(bounds))
