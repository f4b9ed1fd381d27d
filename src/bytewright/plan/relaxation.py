"""What an unfinished choice of pools must still cost, with fractions of buffers allowed.

While pools are chosen, every undecided buffer is counted in its cheapest pool. What a level holds too much at one time
must go beyond it, at least at the cost of the cheapest moves per byte: a fractional knapsack (Dantzig 1957). Alignment
and fragmentation are left out, so the bound holds for every plan.
"""

from collections.abc import Sequence
from fractions import Fraction

from bytewright.plan.flat import FlatProblem
from bytewright.plan.levels import Level, levels_of


class Relaxation:
    """The bytes of undecided buffers, level by level and section by section.

    Args:
        flat: The problem; without contracts, because those let buffers share bytes.
        sections: Buffers that are alive together.
    """

    def __init__(self, flat: FlatProblem, sections: Sequence[Sequence[int]]) -> None:
        self.flat = flat
        self.is_open = [True] * flat.num_buffers
        self.num_steps = 0  # of loops, for whoever keeps a budget
        self.levels = levels_of(flat, sorted({index for alive in sections for index in alive}))
        # By level and section: bytes of undecided buffers, and those that may go beyond, cheapest per byte first.
        self.open_bytes = [[self._bytes_in(level, alive) for alive in sections] for level in self.levels]
        self.movable = [self._movable(level, sections) for level in self.levels]

    def _bytes_in(self, level: Level, alive: Sequence[int]) -> int:
        return sum(self.flat.size_bytes[index] for index in alive if index in level.step)

    def _movable(self, level: Level, sections: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
        """By section: what may go beyond, and at which cost, the cheapest per byte first."""
        sizes = self.flat.size_bytes
        steps = [(index, cost) for index, cost in level.step.items() if cost is not None and sizes[index]]
        steps.sort(key=lambda item: (Fraction(item[1], sizes[item[0]]), item[0]))
        rank = {index: position for position, (index, _) in enumerate(steps)}
        return [[steps[k] for k in sorted(rank[i] for i in alive if i in rank)] for alive in sections]

    def set_open(self, index: int, sections: Sequence[int], is_open: bool) -> None:
        """A buffer has got a pool, or has none any more."""
        self.is_open[index] = is_open
        num_bytes = self.flat.size_bytes[index] if is_open else -self.flat.size_bytes[index]
        for level, open_bytes in zip(self.levels, self.open_bytes, strict=True):
            if index in level.step:
                self.num_steps += len(sections)
                for section in sections:
                    open_bytes[section] += num_bytes

    def moving_cost(self, load: Sequence[Sequence[int]], sections: Sequence[int]) -> int | None:
        """The least cost of all moves at the worst of some sections; None if no moves suffice.

        Args:
            load: Bytes of decided buffers, by pool and section.
            sections: Those to look at.
        """
        worst = 0
        self.num_steps += len(sections) * len(self.levels)
        for section in sections:
            total = 0
            for number, level in enumerate(self.levels):
                decided = sum(load[pool][section] for pool in level.pools)
                excess = decided + self.open_bytes[number][section] - level.capacity
                cost = self._cheapest_moves(self.movable[number][section], excess)
                if cost is None:
                    return None
                total += cost
            worst = max(worst, total)
        return worst

    def _cheapest_moves(self, movable: Sequence[tuple[int, int]], excess_bytes: int) -> int | None:
        if excess_bytes <= 0:
            return 0
        total = 0
        for index, step in movable:
            self.num_steps += 1
            if not self.is_open[index]:
                continue
            size_bytes = self.flat.size_bytes[index]
            if size_bytes >= excess_bytes:
                return total - (-step * excess_bytes // size_bytes)
            total += step
            excess_bytes -= size_bytes
        return None
