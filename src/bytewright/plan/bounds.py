"""Lower bounds: how low the top of a pool can be at best, whatever the plan.

At every time the buffers alive in a pool take at least the size of the union of their bytes, and what alignment wastes
between them (`waste.py`). Without contracts the union is the sum of their sizes. With contracts only contracted pairs
can share bytes, so by the second Bonferroni inequality the union is at least the sum of sizes less what each contracted
pair can share at most; and since the union of fewer buffers is no larger, a buffer that would take more off than it
adds is left out. Both statements hold however many contracts meet in one buffer. What alignment wastes is added for
buffers of which no two have a contract: those that have none with any buffer alive then, and as many others as can be.

Buffers of no bytes take no part: all that is known of one is that the pool reaches up to its offset.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from bytewright.plan.flat import FlatProblem, align_up
from bytewright.plan.sweep import Moment, moments
from bytewright.plan.waste import SlidingWaste, levels_of_loss

# Contracts make a time expensive to judge. After so many buffers with contracts, counted over all times, the times that
# are left are not judged: the bound stays true, and may be lower than it could be.
MAX_JUDGED = 1 << 21


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the top, and the tick it comes from if it comes from one."""

    lower_bound_bytes: int
    tick: int | None


def union_of(flat: FlatProblem, alive: Iterable[int]) -> int:
    """A lower bound on the bytes that these coexisting buffers of one pool take together."""
    members = set(alive)
    total = sum(flat.size_bytes[i] for i in members)
    if not flat.sharing:
        return total
    shared = {
        i: {j: amount for j, amount in flat.sharing[i].items() if j in members}
        for i in sorted(members & flat.sharing.keys())
    }
    # Takes out, again and again, the buffer that takes off most. What a buffer takes off beyond its size only falls as
    # others leave, so that an entry of the queue may be too high, never too low.
    excess = {i: sum(row.values()) - flat.size_bytes[i] for i, row in shared.items()}
    queue = [(-value, i) for i, value in excess.items() if value > 0]
    heapify(queue)
    while queue:
        value, i = queue[0]
        if -value != excess[i]:
            heapreplace(queue, (-excess[i], i)) if excess[i] > 0 else heappop(queue)
            continue
        heappop(queue)
        total -= flat.size_bytes[i]
        for j, amount in shared.pop(i).items():
            del shared[j][i]
            excess[j] -= amount
    return total - sum(sum(row.values()) for row in shared.values()) // 2


def sections_of(flat: FlatProblem, members: Sequence[int]) -> Iterator[list[int]]:
    """The buffers alive at each time at which a birth is followed by a death, ascending.

    No other time has buffers alive together that are not together in one of these, so every pair of the
    members that coexists is in at least one section. Buffers of no bytes are in none.
    """
    alive: set[int] = set()
    for moment in moments(flat, members):
        alive.difference_update(moment.deaths)
        alive.update(moment.births)
        if moment.is_section:
            yield sorted(alive)


def lowest_top(flat: FlatProblem, pool: int, index: int) -> int:
    """Where a buffer ends that has a pool for itself."""
    fixed = flat.fixed[index]
    start = fixed if fixed >= 0 else align_up(0, flat.alignment_in(index, pool), flat.base[pool])
    return start + flat.size_bytes[index]


def pool_bound(flat: FlatProblem, pool: int, members: Sequence[int]) -> Bound:
    """The least top of a pool that holds these buffers, as far as single times and buffers tell."""
    best = Bound(max((lowest_top(flat, pool, index) for index in members), default=0), None)
    load = _Load(flat, pool, members)
    for moment in moments(flat, members):
        load.advance(moment)
        if moment.is_section and load.most_bytes > best.lower_bound_bytes:
            least = load.least_bytes()
            if least > best.lower_bound_bytes:
                best = Bound(least, moment.tick)
    return best


def _apart(flat: FlatProblem, order: Sequence[int]) -> list[int]:
    """Buffers of which no two may share bytes: each in this order that goes with those before it."""
    chosen: set[int] = set()
    for index in order:
        if chosen.isdisjoint(flat.sharing[index]):
            chosen.add(index)
    return sorted(chosen)


class _Load:
    """What one pool holds as time goes on.

    A buffer is alone while no buffer is alive that it may share bytes with, and a sharer while one is.
    """

    def __init__(self, flat: FlatProblem, pool: int, members: Sequence[int]) -> None:
        self.flat = flat
        self.alignment = {i: flat.alignment_in(i, pool) for i in members}
        self.alone_bytes = 0
        self.sharers: set[int] = set()
        self.num_partners: dict[int, int] = {}  # alive, by buffer that is alive and has a contract
        self.num_judged = 0
        levels = levels_of_loss(
            (flat.size_bytes[i], self.alignment[i]) for i in members if flat.size_bytes[i]
        )
        # Of the buffers that are alone.
        self.wastes = [SlidingWaste(level, align_up(0, level, flat.base[pool])) for level in levels]
        # Never below `least_bytes()`, and quick.
        self.most_bytes = max((waste.first for waste in self.wastes), default=0)

    def advance(self, moment: Moment) -> None:
        """Takes out who dies, and puts in who is born."""
        for index in moment.deaths:
            self._die(index)
        for index in moment.births:
            self._be_born(index)

    def _be_born(self, index: int) -> None:
        self.most_bytes += self._rounded_bytes(index)
        partners = [other for other in self.flat.sharing.get(index, ()) if other in self.num_partners]
        for other in partners:
            self.num_partners[other] += 1
            if self.num_partners[other] == 1:
                self._count_alone(other, -1)
                self.sharers.add(other)
        if index in self.flat.sharing:
            self.num_partners[index] = len(partners)
        if partners:
            self.sharers.add(index)
        else:
            self._count_alone(index, 1)

    def _die(self, index: int) -> None:
        self.most_bytes -= self._rounded_bytes(index)
        if not self.num_partners.pop(index, 0):
            self._count_alone(index, -1)
            return
        self.sharers.remove(index)
        for other in self.flat.sharing[index]:
            if other in self.num_partners:
                self.num_partners[other] -= 1
                if not self.num_partners[other]:
                    self.sharers.remove(other)
                    self._count_alone(other, 1)

    def _rounded_bytes(self, index: int) -> int:
        size = self.flat.size_bytes[index]
        return size + (-size & (self.alignment[index] - 1))

    def _count_alone(self, index: int, sign: int) -> None:
        size = self.flat.size_bytes[index]
        self.alone_bytes += sign * size
        for waste in self.wastes:
            waste.change(size, self.alignment[index], sign)

    def least_bytes(self) -> int:
        """A bound on the top at this moment."""
        least = self.alone_bytes + self._wasted()
        if not self.sharers or self.num_judged >= MAX_JUDGED:
            return least
        self.num_judged += len(self.sharers)
        union = self.alone_bytes + union_of(self.flat, self.sharers)
        return max(least, union, self._least_bytes_of_some())

    def _least_bytes_of_some(self) -> int:
        """The same of the buffers that are alone and of sharers of which no two may share bytes."""
        size = self.flat.size_bytes
        largest_first = sorted(self.sharers, key=lambda i: (-size[i], i))
        freest_first = sorted(largest_first, key=lambda i: self.num_partners[i])
        return max(
            self._least_bytes_with(_apart(self.flat, order)) for order in (largest_first, freest_first)
        )

    def _least_bytes_with(self, chosen: Sequence[int]) -> int:
        for index in chosen:
            self._count_alone(index, 1)
        least = self.alone_bytes + self._wasted()
        for index in chosen:
            self._count_alone(index, -1)
        return least

    def _wasted(self) -> int:
        return max((0, *(waste.wasted() for waste in self.wastes)))
