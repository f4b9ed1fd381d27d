"""Gives buffers whole cache lines, where a device touches them that does not see the memory coherently.

Every such buffer of the entry begins with a line, and the planner leaves it the rest of its last one, so no other byte
that lives at the same time shares a line with it; and the pool ends with a line if such a buffer is its last. A buffer
has one size in all pools, so it has lines if one of its candidate pools asks for them, wherever it ends. Inputs and
outputs of the application may lie in whatever memory the entry reaches: the header says what they are aligned to, and
how many bytes are theirs. Constants share lines among each other (`lines.py`).

Each buffer is aligned, too, as all devices ask that touch it, the one of the application included. Runs after
`attach_candidates`, and before arenas are made of what has lines.
"""

from collections.abc import Iterable
from dataclasses import replace

from bytewright import ir
from bytewright.ir.analyses.clock import LiveBuffer, buffers_by_entry
from bytewright.ir.analyses.lines import line_bytes, line_reason
from bytewright.ir.analyses.touch import alignment_reason, touch_alignment
from bytewright.ir.definitions import redefined
from bytewright.ir.rewrite import substitute_in_function
from bytewright.target.model import Target


def own_lines(module: ir.Module, target: Target) -> ir.Module:
    """Returns the module whose entries' buffers say which cache lines they have to themselves, and why."""
    if all(device.cache_line_bytes == 0 and device.touch_alignment == 1 for device in target.devices):
        return module
    clocks = zip(module.entries, buffers_by_entry(module, target), strict=True)
    entries = tuple(_with_lines(entry, buffers, target) for entry, buffers in clocks)
    return replace(module, entries=entries)


def _with_lines(entry: ir.PrimFunc, buffers: Iterable[LiveBuffer], target: Target) -> ir.PrimFunc:
    changed: dict[ir.Buffer, ir.Buffer] = {}
    storages: dict[str, ir.Storage] = {}
    for live in buffers:
        reasons: list[str] = []
        memories = _memories(live, entry, target)
        buffer, line = live.buffer, line_bytes(memories, live.touches, target)
        alignment = touch_alignment(live.touches, target)
        if alignment > buffer.alignment:
            buffer = replace(buffer, alignment=alignment)
            reasons.append(alignment_reason(live.touches, target))
        if line > buffer.line_bytes:
            buffer = replace(buffer, line_bytes=line, alignment=max(line, buffer.alignment))
            reasons.append(line_reason(memories, live.touches, target))
        if reasons:
            changed[live.buffer] = buffer
            if live.allocation is not None:
                lines = (f"own_lines: {reason}" for reason in reasons)
                storages[buffer.name] = live.allocation.storage.narrowed(*lines)
    return substitute_in_function(redefined(entry, storages), changed) if changed else entry


def _memories(live: LiveBuffer, entry: ir.PrimFunc, target: Target) -> list[str]:
    """Where a buffer may end; nowhere yet, if a pass has still to say what its tag means."""
    if live.allocation is None:
        return list(target.device(entry.device).reached_memories)
    return [target.pool(pool).memory for pool in live.allocation.storage.candidates or ()]
