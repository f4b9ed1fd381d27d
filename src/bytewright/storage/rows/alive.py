"""What is alive during each step of the entries, for the search for segments: read off the clock and the problem."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.analyses.clock import Timeline
from bytewright.ir.walk import definitions
from bytewright.plan.problem import Problem


@dataclass(frozen=True, slots=True)
class Alive:
    """What is alive when, without segments.

    Attributes:
        tensors: Size in bytes, first step and last step of what an entry keeps between steps, by name.
        peaks: The most bytes that are alive at one time, during each step, what pairs may share counted once.
        scratch: The bytes of what lives during each step and is no tensor: what its kernel works with.
    """

    tensors: Mapping[str, tuple[int, int, int]]
    peaks: Sequence[int]
    scratch: Sequence[int]


def alive_of(module: ir.Module, timeline: Timeline, problem: Problem) -> Alive:
    """What the planner was asked about the entries.

    Args:
        module: As it was lowered: what its entries define are tensors, and the rest of the problem is scratch.
        timeline: The clock of what was stored.
        problem: Its workspace.
    """
    kept = {definition.buffer.name for entry in module.entries for definition in definitions(entry)}
    # A state is always alive, in a pool of its own: it is no part of what runs need.
    states = {buffer.name for buffer in ir.state_buffers(module)}
    begins = np.array([step.ticks[0] for step in timeline.steps] or [0])
    ends = np.array([step.ticks[1] for step in timeline.steps] or [0])
    change = np.zeros(timeline.num_ticks + 1, np.int64)
    tensors: dict[str, tuple[int, int, int]] = {}
    scratch = np.zeros(len(timeline.steps), np.int64)
    for buffer in problem.buffers:
        if buffer.name in states:
            continue
        lower, upper = buffer.first_tick, buffer.last_tick
        change[lower] += buffer.size_bytes
        change[upper] -= buffer.size_bytes
        first = int(np.searchsorted(ends, lower, "right"))
        last = int(np.searchsorted(begins, upper, "left")) - 1
        if buffer.name in kept:
            tensors[buffer.name] = (buffer.size_bytes, first, min(last, len(timeline.steps) - 1))
        else:
            scratch[first : last + 1] += buffer.size_bytes
    for lower, upper, shared_bytes in _shared(problem):
        change[lower] -= shared_bytes
        change[upper] += shared_bytes
    total = np.cumsum(change)
    peaks = [int(total[step.ticks[0] : step.ticks[1]].max()) for step in timeline.steps]
    return Alive(tensors, peaks, scratch.tolist())


def _shared(problem: Problem) -> Iterator[tuple[int, int, int]]:
    """When contracts let pairs of buffers share bytes, and how many; no buffer is counted in two pairs at one time."""
    buffers = {buffer.name: buffer for buffer in problem.buffers}
    pairs: list[tuple[int, str, str]] = []
    for contract in problem.contracts:
        first, second = buffers[contract.first], buffers[contract.second]
        shared_bytes = contract.most_shared(first.size_bytes, second.size_bytes)
        pairs.append((shared_bytes, first.name, second.name))
    taken: dict[str, list[tuple[int, int]]] = {}
    for shared_bytes, *names in sorted(pairs, reverse=True):
        lower = max(buffers[name].first_tick for name in names)
        upper = min(buffers[name].last_tick for name in names)
        times = [time for name in names for time in taken.get(name, ())]
        if shared_bytes > 0 and lower < upper and all(end <= lower or upper <= begin for begin, end in times):
            for name in names:
                taken.setdefault(name, []).append((lower, upper))
            yield lower, upper, shared_bytes
