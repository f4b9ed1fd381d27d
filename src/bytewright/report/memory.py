"""How much of each pool is in use at each step, from the plan alone."""

from dataclasses import dataclass
from itertools import accumulate

from bytewright.record.plan import Plan, PlannedBuffer, PlannedPool
from bytewright.target.model import Role


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """The use of one workspace pool over time.

    Attributes:
        live_bytes: By step: the most bytes of live buffers at any tick of it.
        peak_bytes: The most at any step.
        peak_steps: The steps where that is so.
    """

    pool: PlannedPool
    live_bytes: tuple[int, ...]
    peak_bytes: int
    peak_steps: tuple[int, ...]


def used_workspaces(plan: Plan) -> list[PlannedPool]:
    """The workspace pools that hold anything."""
    return [pool for pool in plan.pools_of(Role.WORKSPACE) if pool.used_bytes]


def live_at_ticks(plan: Plan, pool: PlannedPool) -> tuple[int, ...]:
    """Live bytes of a pool at each tick, and at the end of the clock."""
    changes = [0] * (plan.num_ticks + 1)
    for buffer in plan.buffers_in(pool.name):
        lower, upper = buffer.live or (0, plan.num_ticks)
        changes[lower] += buffer.size_bytes
        changes[upper] -= buffer.size_bytes
    return tuple(accumulate(changes))


def use_over_time(plan: Plan, pool: PlannedPool) -> PoolHistory:
    """Live bytes of a pool at each step."""
    at_tick = live_at_ticks(plan, pool)
    live_bytes = tuple(max(at_tick[step.ticks[0] : step.ticks[1]], default=0) for step in plan.steps)
    peak = max(live_bytes, default=0)
    peak_steps = tuple(step.index for step, live in zip(plan.steps, live_bytes, strict=True) if live == peak)
    return PoolHistory(pool, live_bytes, peak, peak_steps)


def coexist(first: PlannedBuffer, second: PlannedBuffer) -> bool:
    """Whether both are alive at some tick."""
    if first.live is None or second.live is None:
        return False
    return first.live[0] < second.live[1] and second.live[0] < first.live[1]


def step_ranges(steps: tuple[int, ...]) -> str:
    """`0, 2..5, 9`."""
    ranges: list[list[int]] = []
    for step in steps:
        if ranges and step == ranges[-1][1] + 1:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])
    return ", ".join(str(a) if a == b else f"{a}..{b}" for a, b in ranges)
