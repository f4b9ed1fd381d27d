"""What alignment wastes between buffers that are alive together, whatever their order.

Take a level: a power of two. A buffer aligned to it or stricter begins on a multiple of it (as an address), so between
two such buffers, and what lies between them, the distance is a multiple of the level. If nothing but that buffer lies
there, its size is rounded up: its *loss*. Buffers of weaker alignment can fill such gaps, each at most one of them and
at most with its *residue*, its size modulo the level; the topmost strict buffer need not be rounded up. What remains of
the losses is wasted in every plan.
"""

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush


def levels_of_loss(rows: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The alignments, ascending, at which some of the (size, alignment) rows have a loss."""
    rows = list(rows)
    strictest: dict[int, int] = {}  # by lowest bit of the size: it has a loss at each level above that bit
    for size, alignment in rows:
        strictest[size & -size] = max(strictest.get(size & -size, 1), alignment)
    alignments = sorted({alignment for _, alignment in rows})
    return tuple(a for a in alignments if any(bit < a <= most for bit, most in strictest.items()))


class Waste:
    """The waste of a growing set of buffers at one level.

    Args:
        level: The alignment.
        first: The lowest multiple of the level in the pool: bytes below it are lost too.
    """

    __slots__ = ("first", "largest", "level", "losses", "num_odd", "num_strict", "residues")

    def __init__(self, level: int, first: int = 0) -> None:
        self.level = level
        self.first = first
        self.losses = self.largest = self.residues = self.num_odd = self.num_strict = 0

    def add(self, size: int, alignment: int) -> int:
        """Adds a buffer. Returns the least number of bytes wasted so far; negative if nothing is known."""
        self._count(size, alignment, 1)
        if alignment >= self.level:
            self.largest = max(self.largest, -size & (self.level - 1))
        return self._least()

    def _count(self, size: int, alignment: int, times: int) -> None:
        if alignment >= self.level:
            self.losses += times * (-size & (self.level - 1))
            self.num_strict += times
        elif residue := size & (self.level - 1):
            self.residues += times * residue
            self.num_odd += times

    def _least(self) -> int:
        if not self.num_strict:
            return 0
        filled = min(self.residues, self.num_odd * max(self.largest, self.first))
        return self.first + self.losses - self.largest - filled


class SlidingWaste(Waste):
    """The same of a set that also loses buffers."""

    __slots__ = ("_heap", "_times")

    def __init__(self, level: int, first: int) -> None:
        super().__init__(level, first)
        self._times: Counter[int] = Counter()
        self._heap: list[int] = []  # losses, negated; those that are gone leave when they come to the front

    def change(self, size: int, alignment: int, times: int) -> None:
        """Adds a buffer (`times` is 1), or takes one out that was added (-1)."""
        self._count(size, alignment, times)
        if alignment >= self.level:
            loss = -size & (self.level - 1)
            self._times[loss] += times
            if times > 0 and self._times[loss] == 1:
                heappush(self._heap, -loss)

    def wasted(self) -> int:
        """The least number of bytes wasted; negative if nothing is known."""
        while self._heap and not self._times[-self._heap[0]]:
            heappop(self._heap)
        self.largest = -self._heap[0] if self._heap else 0
        return self._least()
