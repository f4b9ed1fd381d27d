"""Which arrays leave the stack: of all sets that let every path keep its limit, one of the fewest bytes.

A path asks for so many bytes, out of the arrays that exist at once on it. Several paths may share arrays, so this is a
covering knapsack over the paths, in which a thing weighs what it costs. It is solved by dynamic programming over what
each path still lacks, exactly up to `MAX_STATES`; paths that share no array are solved apart. Among sets of as many
bytes the one of the fewest arrays is taken, and among those the first by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# A kernel and an array in it.
Array = tuple[str, str]

# States of one table. Beyond, only the best are kept: the answer holds, and may be a few bytes more.
MAX_STATES = 100_000


@dataclass(frozen=True, slots=True)
class Demand:
    """A path that is too long.

    Attributes:
        arrays: Those that exist at once and may leave, with their bytes.
        needed_bytes: How many of these have to.
        reason: What is said of each that does: the path and its sum.
    """

    arrays: Mapping[Array, int]
    needed_bytes: int
    reason: str

    @property
    def can_be_met(self) -> bool:
        """Whether it is enough that all of them leave."""
        return sum(self.arrays.values()) >= self.needed_bytes


def choose_moves(demands: Sequence[Demand]) -> frozenset[Array]:
    """The arrays to move; each demand can be met."""
    return frozenset(array for group in _groups(demands) for array in _cheapest(group))


def _groups(demands: Sequence[Demand]) -> Iterator[list[Demand]]:
    """Demands that share arrays, directly or by way of others."""
    left = list(demands)
    while left:
        group = [left.pop(0)]
        arrays = set(group[0].arrays)
        while joined := [demand for demand in left if not arrays.isdisjoint(demand.arrays)]:
            left = [demand for demand in left if arrays.isdisjoint(demand.arrays)]
            group += joined
            arrays.update(array for demand in joined for array in demand.arrays)
        yield group


def _cheapest(demands: Sequence[Demand]) -> tuple[Array, ...]:
    sizes = {array: size for demand in demands for array, size in demand.arrays.items()}
    # What each path still lacks -> (bytes, number, arrays) of the cheapest set that leaves it so.
    table: dict[tuple[int, ...], tuple[int, int, tuple[Array, ...]]] = {
        tuple(demand.needed_bytes for demand in demands): (0, 0, ())
    }
    for array in sorted(sizes):
        grown = dict(table)
        for lacking, (num_bytes, number, arrays) in table.items():
            left = tuple(
                max(0, lack - demand.arrays.get(array, 0))
                for lack, demand in zip(lacking, demands, strict=True)
            )
            found = (num_bytes + sizes[array], number + 1, (*arrays, array))
            if left != lacking and (left not in grown or found < grown[left]):
                grown[left] = found
        if len(grown) > MAX_STATES:
            kept = sorted(grown.items(), key=lambda item: (item[1][1], item[1][0] + sum(item[0]), item[0]))
            grown = dict(kept[:MAX_STATES])
        table = grown
    nothing = tuple(0 for _ in demands)
    return table[nothing][2] if nothing in table else tuple(sorted(sizes))
