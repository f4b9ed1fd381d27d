"""By how many bytes pools are too small as a whole, before it is asked which few buffers prove it.

Buffers that may be in no other pools need, at each tick, what those that are alive take together: the sum of their
sizes, less what contracts let them share. That is a lower bound: where only alignment or the order of lifetimes keeps
a plan from existing, there is no shortfall to speak of.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from bytewright.plan.bounds import union_of
from bytewright.plan.flat import FlatProblem, flatten
from bytewright.plan.problem import Pool, Problem
from bytewright.plan.sweep import moments

_MOST_POOLS = 6  # of which every choice is looked at


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Pools that together have fewer bytes than the buffers which may be nowhere else.

    Attributes:
        tick: Where that is.
        buffers: Those that are alive there, and may be nowhere else.
    """

    pools: tuple[str, ...]
    capacity_bytes: int
    needed_bytes: int
    tick: int
    buffers: tuple[str, ...] = ()

    @property
    def missing_bytes(self) -> int:
        """The difference."""
        return self.needed_bytes - self.capacity_bytes


def largest_shortfall(problem: Problem) -> Shortfall | None:
    """The one with the most bytes missing, in the fewest pools; None if there is none."""
    flat = flatten(problem)
    found = [_shortfall(flat, pools) for pools in _choices(problem.pools)]
    worst = max(found, key=lambda shortfall: shortfall.missing_bytes, default=None)
    return worst if worst is not None and worst.missing_bytes > 0 else None


def needed_in(problem: Problem, names: Sequence[str]) -> Shortfall:
    """What pools need at least, whether they have it or not."""
    return _shortfall(flatten(problem), [pool for pool in problem.pools if pool.name in names])


def _shortfall(flat: FlatProblem, pools: Sequence[Pool]) -> Shortfall:
    names = tuple(pool.name for pool in pools)
    problem = flat.problem
    confined = [
        number
        for number, buffer in enumerate(flat.buffers)
        if all(candidate.pool in names for candidate in problem.candidates_of(buffer))
    ]
    needed_bytes, tick, alive = _peak(flat, confined)
    alive_names = tuple(flat.buffers[number].name for number in alive)
    return Shortfall(names, sum(pool.capacity_bytes or 0 for pool in pools), needed_bytes, tick, alive_names)


def _choices(pools: Sequence[Pool]) -> Iterator[tuple[Pool, ...]]:
    limited = [pool for pool in pools if pool.capacity_bytes is not None]
    sizes = range(1, len(limited) + 1) if len(limited) <= _MOST_POOLS else (1, len(limited))
    for size in sizes:
        yield from combinations(limited, size)


def _peak(flat: FlatProblem, members: Sequence[int]) -> tuple[int, int, tuple[int, ...]]:
    """The most bytes that are known to be needed at one tick, the first such tick, and who is alive there."""
    best, alive, num_bytes = (0, 0, ()), set[int](), 0
    for moment in moments(flat, members):
        alive.difference_update(moment.deaths)
        alive.update(moment.births)
        num_bytes += sum(flat.size_bytes[i] for i in moment.births)
        num_bytes -= sum(flat.size_bytes[i] for i in moment.deaths)
        if moment.is_section and num_bytes > best[0]:
            needed_bytes = union_of(flat, alive)
            if needed_bytes > best[0]:
                best = (needed_bytes, moment.tick, tuple(sorted(alive)))
    return best
