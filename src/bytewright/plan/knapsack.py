"""What an unfinished choice of pools must still cost where all buffers are alive at once, as parameters are.

Then each level is one knapsack of whole buffers. Buffers are decided in a fixed order, so those that are undecided are
always the rest of that order, and one table a level (dynamic programming, Bellman 1957), made once, answers for each
position and each number of bytes left what the rest costs at least. Bytes are counted in units: sizes are rounded down
and capacities up, so that the bound holds.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bytewright.plan.flat import FlatProblem
from bytewright.plan.levels import Level, levels_of

NUM_UNITS = 16384
MAX_CELLS = 1 << 22  # of all tables: 32 MiB
_IMPOSSIBLE = 1 << 60


class KnapsackTables:
    """The least cost of the rest, by level, position in the order, and units left.

    Args:
        flat: The problem; without contracts, because those let buffers share bytes.
        order: The buffers, all alive at once, in the order in which they are decided.
    """

    def __init__(self, flat: FlatProblem, order: Sequence[int]) -> None:
        self.levels = [level for level in levels_of(flat, sorted(order)) if _is_of_use(flat, level)]
        num_units = min(NUM_UNITS, MAX_CELLS // ((len(order) + 1) * max(len(self.levels), 1)))
        self.unit_bytes = [max(1, -(-level.capacity // max(num_units, 1))) for level in self.levels]
        self.tables = [
            _table(flat, order, level, unit) for level, unit in zip(self.levels, self.unit_bytes, strict=True)
        ]

    def moving_cost(self, load: Sequence[int], position: int) -> int | None:
        """The least cost of the buffers from a position on beyond their cheapest choices; None if there is no way.

        Args:
            load: Bytes of the buffers before that position, by pool.
            position: In the order.
        """
        total = 0
        for level, unit, table in zip(self.levels, self.unit_bytes, self.tables, strict=True):
            left_bytes = level.capacity - sum(load[pool] for pool in level.pools)
            if left_bytes < 0:
                return None
            cost = int(table[position, -(-left_bytes // unit)])
            if cost >= _IMPOSSIBLE:
                return None
            total += cost
        return total


def _is_of_use(flat: FlatProblem, level: Level) -> bool:
    """Whether a level may be full, and its costs are numbers that a table can hold."""
    is_full = sum(flat.size_bytes[index] for index in level.step) > level.capacity
    return is_full and sum(step or 0 for step in level.step.values()) < _IMPOSSIBLE


def _table(flat: FlatProblem, order: Sequence[int], level: Level, unit: int) -> NDArray[np.int64]:
    columns = -(-level.capacity // unit) + 1
    table = np.zeros((len(order) + 1, columns), dtype=np.int64)
    for position in range(len(order) - 1, -1, -1):
        index, after = order[position], table[position + 1]
        if index not in level.step:
            table[position] = after
            continue
        step = level.step[index]
        beyond = np.full(columns, _IMPOSSIBLE) if step is None else after + step
        size = flat.size_bytes[index] // unit
        inside = np.full(columns, _IMPOSSIBLE)
        if size < columns:
            inside[size:] = after[: columns - size]
        table[position] = np.minimum(np.minimum(beyond, inside), _IMPOSSIBLE)
    return table
