"""What solvers answer, and questions within them: the best places found, and what is proved.

An exact search answers about one capacity with an `Answer`, every question about buffers and pools is answered with an
`Outcome`, and `solve` states an outcome that it has checked as a `Solution`, by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bytewright.plan.conflict import NO_CONFLICT, Conflict
from bytewright.plan.flat import FlatProblem


@dataclass(frozen=True, slots=True)
class Draft:
    """Places by buffer (pool -1: none was found), and how good they are."""

    pools: Sequence[int]
    offsets: Sequence[int]
    cost: int
    tops: tuple[int, ...]

    @property
    def num_unplaced(self) -> int:
        """How many buffers found no place."""
        return self.pools.count(-1)

    @property
    def worth(self) -> tuple[int, int]:
        """Smaller is better: cost, then the tops."""
        return (self.cost, sum(self.tops))

    @property
    def rank(self) -> tuple[int, int, int]:
        """Smaller is better: everything placed, then what it is worth."""
        return (self.num_unplaced, *self.worth)


def draft_of(flat: FlatProblem, pools: Sequence[int], offsets: Sequence[int]) -> Draft:
    """Places with their worth."""
    tops = [0] * len(flat.capacity)
    cost = 0
    for pool, offset, size, choices in zip(pools, offsets, flat.size_bytes, flat.choices, strict=True):
        if pool >= 0:
            tops[pool] = max(tops[pool], offset + size)
            cost += next(choice.cost for choice in choices if choice.pool == pool)
    return Draft(pools, offsets, cost, tuple(tops))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known about some buffers and the pools that they may use.

    Attributes:
        best: The best plan, or None. Of some buffers of a problem alone, it has their places in their order.
        cost_lower_bound: Proved bound on the cost.
        tops_lower_bound: Proved bound on the sum of tops among the plans of least cost.
        pool_lower_bounds: By pool index: proved bound on the top, for the buffers that the plan sends there.
        is_impossible: Whether it is proved that there is no plan.
        conflict: Buffers proved not to fit together, if such are known.
    """

    best: Draft | None
    cost_lower_bound: int = 0
    tops_lower_bound: int = 0
    pool_lower_bounds: Mapping[int, int] = field(default_factory=dict[int, int])
    is_impossible: bool = False
    conflict: Conflict = NO_CONFLICT

    @property
    def fits(self) -> bool | None:
        """Whether there is a plan; None if that is not known."""
        return True if self.best is not None else False if self.is_impossible else None
