"""How much of each pool is in use at each step, from the plan alone."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from bytewright.record.buffers import PlannedBuffer, PlannedPool
from bytewright.record.plan import Plan
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """The use of one workspace pool over time.

    Attributes:
        live_bytes: By step: the most bytes of live buffers at any tick of it.
        peak_bytes: The most at any step.
        peak_steps: The steps where that is so.
        by_rows: The steps that run together row by row, with rings in this pool.
        peak_tick: The first tick with so many bytes.
    """

    pool: PlannedPool
    live_bytes: tuple[int, ...]
    peak_bytes: int
    peak_steps: tuple[int, ...]
    by_rows: tuple[int, ...] = ()
    peak_tick: int = 0


def used_workspaces(plan: Plan) -> list[PlannedPool]:
    """The workspace pools that hold anything."""
    return [pool for pool in plan.pools_of(Role.WORKSPACE) if pool.used_bytes]


def live_at_ticks(plan: Plan, pool: PlannedPool) -> tuple[int, ...]:
    """Live bytes of a pool at each tick, and at the end of the clock; bytes that two buffers share count once."""
    changes = [0] * (plan.num_ticks + 1)
    buffers = plan.buffers_in(pool.name)
    for buffer in buffers:
        lower, upper = _ticks(plan, buffer)
        changes[lower] += buffer.size_bytes
        changes[upper] -= buffer.size_bytes
    for first, second, shared_bytes in _shared(plan, buffers):
        lower = max(_ticks(plan, first)[0], _ticks(plan, second)[0])
        upper = min(_ticks(plan, first)[1], _ticks(plan, second)[1])
        changes[lower] -= shared_bytes
        changes[upper] += shared_bytes
    return tuple(accumulate(changes))


def _ticks(plan: Plan, buffer: PlannedBuffer) -> tuple[int, int]:
    return buffer.live or (0, plan.num_ticks)


def _shared(
    plan: Plan, buffers: Iterable[PlannedBuffer]
) -> Iterator[tuple[PlannedBuffer, PlannedBuffer, int]]:
    """Pairs that are alive at one time and have bytes in common, and how many."""
    alive: list[PlannedBuffer] = []
    for buffer in sorted(buffers, key=lambda buffer: _ticks(plan, buffer)):
        alive = [other for other in alive if _ticks(plan, other)[1] > _ticks(plan, buffer)[0]]
        begin = buffer.place.offset
        for other in alive:
            if begin is None or other.place.offset is None:
                continue  # requested at run time, from an arena that is counted
            end = min(begin + buffer.size_bytes, other.place.offset + other.size_bytes)
            if end > max(begin, other.place.offset):
                yield other, buffer, end - max(begin, other.place.offset)
        alive.append(buffer)


def use_over_time(plan: Plan, pool: PlannedPool) -> PoolHistory:
    """Live bytes of a pool at each step."""
    at_tick = live_at_ticks(plan, pool)
    live_bytes = tuple(max(at_tick[step.ticks[0] : step.ticks[1]], default=0) for step in plan.steps)
    peak = max(live_bytes, default=0)
    peak_steps = tuple(step.index for step, live in zip(plan.steps, live_bytes, strict=True) if live == peak)
    here = {buffer.name for buffer in plan.buffers_in(pool.name)}
    by_rows = tuple(
        step
        for segment in plan.segments
        if here.intersection(segment.rings)
        for step in range(segment.steps[0], segment.steps[1] + 1)
    )
    peak_tick = max(range(plan.num_ticks), key=lambda tick: at_tick[tick], default=0)
    return PoolHistory(pool, live_bytes, peak, peak_steps, by_rows, peak_tick)


def coexist(first: PlannedBuffer, second: PlannedBuffer) -> bool:
    """Whether both are alive at some tick."""
    if first.live is None or second.live is None:
        return False
    return first.live[0] < second.live[1] and second.live[0] < first.live[1]


def spans_of(steps: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Steps that follow each other, half-open."""
    spans: list[tuple[int, int]] = []
    for step in steps:
        if spans and step == spans[-1][1]:
            spans[-1] = (spans[-1][0], step + 1)
        else:
            spans.append((step, step + 1))
    return tuple(spans)


def step_ranges(steps: tuple[int, ...]) -> str:
    """`0, 2..5, 9`."""
    return ", ".join(map(span_text, spans_of(steps)))


def span_text(span: tuple[int, int]) -> str:
    """`2..5`, of a half-open span."""
    first, end = span
    return str(first) if first == end - 1 else f"{first}..{end - 1}"
