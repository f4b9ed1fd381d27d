"""What it costs to go beyond the first few pools: the levels that bounds on an unfinished choice of pools add up.

Pools stand in one order. The first k of them together hold so many bytes; what exceeds that at one time must go beyond,
and each buffer that does pays what its choices beyond the first k cost more than those beyond the first k - 1. A buffer
in pool j pays that for each k < j, which is no more than its real cost, so the costs of the levels add up to a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bytewright.plan.flat import NO_LIMIT, FlatProblem


@dataclass(frozen=True, slots=True)
class Level:
    """The first few pools, taken together.

    Attributes:
        pools: Their indices.
        capacity: Their bytes.
        step: What going beyond costs, by buffer; None for one that cannot. Those that go for nothing are left out.
    """

    pools: tuple[int, ...]
    capacity: int
    step: dict[int, int | None]


def levels_of(flat: FlatProblem, members: Sequence[int]) -> list[Level]:
    """The levels of some buffers, as far as the pools have a limit."""
    levels: list[Level] = []
    order = _common_order(flat, members)
    for count in range(1, len(order) + 1):
        pools = order[:count]
        capacity = sum(flat.capacity[pool] for pool in pools)
        if capacity >= NO_LIMIT:
            break
        steps = {index: _step(flat, index, pools) for index in members}
        levels.append(
            Level(pools, capacity, {i: cost for i, cost in steps.items() if cost is None or cost > 0})
        )
    return levels


def _step(flat: FlatProblem, index: int, pools: tuple[int, ...]) -> int | None:
    """What it costs to go beyond some pools, over what it costs to go beyond all but the last of them."""
    choices = flat.choices[index]
    beyond = min((choice.cost for choice in choices if choice.pool not in pools), default=None)
    if beyond is None:
        return None
    return beyond - min(choice.cost for choice in choices if choice.pool not in pools[:-1])


def _common_order(flat: FlatProblem, members: Sequence[int]) -> tuple[int, ...]:
    """The pools that buffers may choose, those that most prefer in front."""
    num_pools = len(flat.capacity)
    rank = [0] * num_pools
    for index in members:
        position_of = {choice.pool: position for position, choice in enumerate(flat.choices[index])}
        for pool in range(num_pools):
            rank[pool] += position_of.get(pool, num_pools)
    return tuple(sorted(range(num_pools), key=lambda pool: (rank[pool], pool)))
