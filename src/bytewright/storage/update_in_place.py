"""States that are updated where they are: the step that computes what one becomes writes it over it.

A graph computes what a state becomes beside it, where it is read to the end, and copies it there. The copy goes, and
the buffer beside it, if the last step that reads the state computes what it becomes, and its kernel reads each byte
before it writes it: run upwards, the distances of its overlap contract admit that both begin at one address
(`find_overlaps.py`). Between that step and the copy nothing touches the state, and kernels of the entry's device
alone touch what it becomes, which is there from now on. All of that may be inside an arm of a branch, or the body of a
loop.
"""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

from bytewright import ir
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.analyses.moves import writes_of
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import allocations, calls, named_buffers, statements_of, walk_statements
from bytewright.options import Pin
from bytewright.storage.find_overlaps import (
    Direction,
    distances_between,
    is_all,
    kernel_in_order,
    passed_by,
    scalars_of,
)
from bytewright.target.model import Target


def update_in_place(module: ir.Module, target: Target, pins: tuple[Pin, ...] = ()) -> ir.Module:
    """Returns the module with such states written once.

    Args:
        module: Lowered of a graph, so that copies of its entry are the compiler's own.
        target: What it is for.
        pins: What the user has places for stays.
    """
    entry = module.main
    while (shorter := _once(replace(module, entries=(entry,)), target, pins)) is not None:
        entry = shorter
    if entry is module.main:
        return module
    called = {call.callee for function in (entry, *module.kernels) for call in calls(function)}
    kernels = tuple(kernel for kernel in module.kernels if kernel.name in called)
    return replace(module, entries=(entry,), kernels=kernels)


def _once(module: ir.Module, target: Target, pins: tuple[Pin, ...]) -> ir.PrimFunc | None:
    """The entry with one such state; None if there is none left."""
    entry = module.main
    kernels = {kernel.name: kernel for kernel in module.kernels}
    own = {allocation.buffer.name: allocation for allocation in allocations(entry)}
    for sequence in (each for each in statements_of(entry) if isinstance(each, ir.Seq)):
        for position, source, state in _copies_to_states(sequence, kernels, own):
            is_pinned = any(fnmatchcase(source.buffer.name, pin.pattern) for pin in pins)
            places = (sequence, position, source, state)
            if not is_pinned and _can_be(source, state) and _is_updated(module, *places, target):
                return _without(entry, sequence.statements[position], source, state)
    return None


def _copies_to_states(
    sequence: ir.Seq, kernels: dict[str, ir.PrimFunc], own: dict[str, ir.Allocate]
) -> Iterator[tuple[int, ir.Allocate, ir.Allocate]]:
    """The statements that copy all of a buffer to a state, with both."""
    for position, statement in enumerate(sequence.statements):
        kernel = kernels.get(statement.callee) if isinstance(statement, ir.Call) else None
        if not isinstance(statement, ir.Call) or kernel is None or statement.kind is not ir.CallKind.EXTERN:
            continue
        passed = {parameter.name: region for parameter, region in buffer_arguments(kernel, statement)}
        names = [region.buffer.name for region in passed.values() if not region.indices]
        if len(passed) != 2 or len(names) != 2 or not own.keys() >= {*names}:
            continue
        writes = writes_of(kernel, scalars_of(kernel, statement))
        if writes is None or writes.others or len(writes.moves) != 1:
            continue
        (move,) = writes.moves
        source, state = own[passed[move.source].buffer.name], own[passed[writes.output].buffer.name]
        is_whole = (move.first, move.to, move.count) == (0, 0, ir.num_elements(state.buffer))
        if is_whole and state.storage.border is ir.Border.STATE:
            yield position, source, state


def _can_be(source: ir.Allocate, state: ir.Allocate) -> bool:
    """Whether one of the two may be the other: alike, and nothing is said of where the first is."""
    first, second = source.buffer, state.buffer
    is_plain = source.storage == ir.Storage(source.scope, provenance=source.storage.provenance)
    return (
        is_plain
        and not any(source.annotations)
        and source.scope in (None, ir.GLOBAL, ir.WORKSPACE)
        and (first.shape, first.dtype, first.rows) == (second.shape, second.dtype, second.rows)
        and first.line_bytes == second.line_bytes == 0
    )


def _is_updated(
    module: ir.Module,
    sequence: ir.Seq,
    position: int,
    source: ir.Allocate,
    state: ir.Allocate,
    target: Target,
) -> bool:
    """Whether a step before a copy may write its result over the state, which is what it reads."""
    entry, name, kept = module.main, source.buffer.name, state.buffer.name
    touching = {
        number: {buffer.name for buffer in named_buffers(statement)} & {name, kept}
        for number, statement in enumerate(sequence.statements)
        if not isinstance(statement, ir.Allocate)
    }
    first = next((number for number, names in touching.items() if name in names), position)
    last = max(number for number, names in touching.items() if name in names)
    call = sequence.statements[first]
    if any(isinstance(s, ir.View) for s in walk_statements(entry.body)):
        return False  # by other names they may be touched where it is not seen
    uses = [sum(buffer.name == name for buffer in named_buffers(each)) for each in (entry.body, sequence)]
    if uses[0] != uses[1]:
        return False  # it is touched elsewhere
    between = [touching[number] for number in touching if first < number < position]
    if not isinstance(call, ir.Call) or last != position or any(kept in names for names in between):
        return False
    own = {k.name for k in module.kernels if k.device == entry.device and k.job is None and not k.is_opaque}
    users = [
        c for c in calls(entry) if any(a.buffer.name == name for a in c.arguments if isinstance(a, ir.Region))
    ]
    return all(c.callee in own for c in users) and _may_write_over(call, kept, name, module, target)


def _may_write_over(call: ir.Call, kept: str, name: str, module: ir.Module, target: Target) -> bool:
    """Whether a call may be given one buffer for what it reads as `kept` and for what it writes as `name`."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    kernel = kernel_in_order(call, kernels, target)
    if kernel is None:
        return False
    passed = passed_by(kernel, call)
    written = [n for n, each in passed.items() if any(p.access is not ir.Access.READ for p, _ in each)]
    if kept not in passed or written != [name]:  # what has another result may be run downwards for that
        return False
    if not is_all(passed[kept], ir.Access.READ) or not is_all(passed[name], ir.Access.WRITE):
        return False
    found = distances_between(kernel, passed[kept], passed[name], scalars_of(kernel, call), kernels)
    upwards = found.get(Direction.UP)
    return upwards is not None and 0 in (upwards.below_bytes, upwards.above_bytes)


def _without(entry: ir.PrimFunc, copy: ir.Statement, source: ir.Allocate, state: ir.Allocate) -> ir.PrimFunc:
    """The entry without a copy, and with the state in the place of what was copied."""
    name = source.buffer.name
    reason = f"update_in_place: what it becomes, '{name}', is written over it"

    def changed(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if statement is copy or (isinstance(statement, ir.Allocate) and statement.buffer.name == name):
            return ()
        if statement is state:
            return (replace(state, storage=state.storage.narrowed(reason)),)
        return (statement,)

    def element(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> tuple[ir.Buffer, tuple[ir.Expr, ...]]:
        return (state.buffer if buffer.name == name else buffer), indices

    body = rewrite_sequence(entry.body, Rewriting(statement=changed))
    return replace(entry, body=rewrite_sequence(body, Rewriting(element=element)))
