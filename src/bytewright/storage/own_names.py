"""Tells the buffers of several entries apart: all lie on one clock, and in one plan, under names of their own.

What one entry has alone and another calls alike gets the name of its entry in front: `classify/t`. A state is one
buffer in all of them, so it gets the strictest alignment and the pools that each of them leaves.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError, compile_error
from bytewright.ir.definitions import redefined
from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.symbols import buffers_of
from bytewright.ir.walk import allocations


def own_names(module: ir.Module) -> ir.Module:
    """Returns the module in which no two entries have a buffer of one name, but for states, which are alike in all.

    Raises:
        CompileError: BW301, entries leave a state no pool in common.
    """
    if len(module.entries) < 2:
        return module
    states = _states(module)
    counts = Counter(buffer.name for entry in module.entries for buffer in buffers_of(entry))
    taken = {*counts, *(constant.buffer.name for constant in module.constant_buffers)}
    entries: list[ir.PrimFunc] = []
    for entry in module.entries:
        changed: dict[ir.Buffer, ir.Buffer] = {}
        for buffer in buffers_of(entry):
            state = states.get(buffer.name)
            if state is not None:
                renamed = state.buffer
            elif counts[buffer.name] > 1:
                renamed = replace(buffer, name=unique_name(f"{entry.name}/{buffer.name}", taken))
            else:
                continue
            if renamed != buffer:
                changed[buffer] = renamed
        told = redefined(entry, {name: state.storage for name, state in states.items()})
        entries.append(substitute_in_function(told, changed) if changed else told)
    return module if tuple(entries) == module.entries else replace(module, entries=tuple(entries))


def _states(module: ir.Module) -> dict[str, ir.Allocate]:
    """Each state as all entries ask for it, by the name that all call it."""
    found: dict[str, list[ir.Allocate]] = {}
    for entry in module.entries:
        for allocation in allocations(entry):
            if ir.border_of(allocation) is ir.Border.STATE:
                found.setdefault(allocation.buffer.name, []).append(allocation)
    return {name: _joined(name, own) for name, own in found.items()}


def _joined(name: str, own: Sequence[ir.Allocate]) -> ir.Allocate:
    first = own[0]
    buffer = replace(
        first.buffer,
        alignment=max(each.buffer.alignment for each in own),
        line_bytes=max(each.buffer.line_bytes for each in own),
    )
    storage = first.storage
    for each in own[1:]:
        pools = _common(storage.candidates, each.storage.candidates)
        try:
            scope = ir.join_scopes(storage.scope, each.scope)
        except ValueError as error:
            raise _without_pool(name, own) from error
        if pools == ():
            raise _without_pool(name, own)
        storage = replace(storage, scope=scope, candidates=pools)
    return replace(first, buffer=buffer, storage=storage)


def _common(first: tuple[str, ...] | None, second: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Pools of both, in the order of the first; None is any."""
    if first is None or second is None:
        return second if first is None else first
    return tuple(pool for pool in first if pool in second)


def _without_pool(name: str, own: Sequence[ir.Allocate]) -> CompileError:
    texts = dict.fromkeys(", ".join(each.storage.candidates or (f"'{each.scope}'",)) for each in own)
    message = (
        f"no pool may hold state '{name}' for all entries, of which each asks for others: {'; '.join(texts)}"
    )
    return compile_error("BW301", message, help="ask for the same scope of it in all of them")
