"""By how many bytes pools are too small as a whole, before it is asked which few buffers prove it.

Buffers that may be in no other pools need, at each tick, the sum of those that are alive. That is a lower bound: where
only alignment or the order of lifetimes keeps a plan from existing, there is no shortfall to speak of.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations

from bytewright.plan.problem import Buffer, Pool, Problem

_MOST_POOLS = 6  # of which every choice is looked at


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Pools that together have fewer bytes than the buffers which may be nowhere else.

    Attributes:
        tick: Where that is.
    """

    pools: tuple[str, ...]
    capacity_bytes: int
    needed_bytes: int
    tick: int

    @property
    def missing_bytes(self) -> int:
        """The difference."""
        return self.needed_bytes - self.capacity_bytes


def largest_shortfall(problem: Problem) -> Shortfall | None:
    """The one with the most bytes missing, in the fewest pools; None if there is none."""
    found = [_shortfall(problem, pools) for pools in _choices(problem.pools)]
    worst = max(found, key=lambda shortfall: shortfall.missing_bytes, default=None)
    return worst if worst is not None and worst.missing_bytes > 0 else None


def _shortfall(problem: Problem, pools: Sequence[Pool]) -> Shortfall:
    names = tuple(pool.name for pool in pools)
    confined = [b for b in problem.buffers if all(c.pool in names for c in problem.candidates_of(b))]
    needed_bytes, tick = _peak(confined)
    return Shortfall(names, sum(pool.capacity_bytes or 0 for pool in pools), needed_bytes, tick)


def _choices(pools: Sequence[Pool]) -> Iterator[tuple[Pool, ...]]:
    limited = [pool for pool in pools if pool.capacity_bytes is not None]
    sizes = range(1, len(limited) + 1) if len(limited) <= _MOST_POOLS else (1, len(limited))
    for size in sizes:
        yield from combinations(limited, size)


def _peak(buffers: Sequence[Buffer]) -> tuple[int, int]:
    """The most bytes that are alive at one tick, and the first such tick."""
    changes: Counter[int] = Counter()
    for buffer in buffers:
        for lower, upper in buffer.lifetimes:
            changes[lower] += buffer.size_bytes
            changes[upper] -= buffer.size_bytes
    ticks = sorted(changes)
    alive_bytes = accumulate(changes[tick] for tick in ticks)
    return max(zip(alive_bytes, ticks, strict=True), key=lambda pair: pair[0], default=(0, 0))
