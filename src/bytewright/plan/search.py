"""The exact search in Python: what `_exact.c` does, statement by statement, for machines without a C compiler.

Both visit the same nodes in the same order and return the same plan, which tests hold them to; so names and
structure follow the C file, and docs/planner.md explains the method once for both. All arithmetic is on
integers; hashes are 64 bits wide.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from bytewright.plan.instance import Instance
from bytewright.plan.waste import Waste

TABLE_SIZE = 1 << 16
RELEASES_PER_BUFFER = 64
FIRST_LIMIT = 8  # nodes per buffer in the first round
POLL_NODES = 1 << 16
MASK = (1 << 64) - 1
FAR = (1 << 63) - 1

_MINIMUM, _LATE, _RELEASE, _PLACE = range(4)


class Result(IntEnum):
    """What a search found, numbered as in `_exact.h`."""

    UNKNOWN = 0
    SOLVED = 1
    INFEASIBLE = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a search: offsets by local buffer if solved, and how many nodes and items it looked at."""

    result: Result
    offsets: tuple[int, ...]
    num_nodes: int
    work: int = 0


def search(
    instance: Instance,
    capacity: int,
    node_budget: int,
    work_budget: int,
    poll: Callable[[int], None] | None = None,
) -> Answer:
    """Looks for offsets with every buffer ending at or below `capacity`."""
    if not instance.num_buffers:
        return Answer(Result.SOLVED, (), 0)
    state = _Search(instance, capacity, node_budget, work_budget, poll)
    # Two calls for each buffer placed; Python's own calls need no C stack.
    recursion_limit = sys.getrecursionlimit()
    sys.setrecursionlimit(recursion_limit + 2 * instance.num_buffers)
    try:
        result = state.run_portfolio()
    finally:
        sys.setrecursionlimit(recursion_limit)
    offsets = tuple(state.offset) if result is Result.SOLVED else ()
    return Answer(result, offsets, state.num_nodes, state.work)


def _mix(value: int) -> int:
    value ^= value >> 31
    value = value * 0x9E3779B97F4A7C15 & MASK
    value ^= value >> 29
    value = value * 0xBF58476D1CE4E5B9 & MASK
    return value ^ (value >> 32)


class _Search:
    """The state of one search; attributes as in the C struct of the same name."""

    def __init__(
        self,
        instance: Instance,
        capacity: int,
        node_budget: int,
        work_budget: int,
        poll: Callable[[int], None] | None,
    ) -> None:
        n, m = instance.num_buffers, instance.num_sections
        self.instance = instance
        self.poll = poll
        self.capacity = capacity
        self.node_budget = node_budget
        self.node_limit = 0
        self.num_nodes = 0
        self.work = 0
        self.work_budget = work_budget
        self.size = list(instance.sizes)
        self.room = list(instance.rooms)
        self.levels = list(instance.levels)
        self.alignment = list(instance.alignments)
        self.fixed = list(instance.fixed)
        self.base = instance.base
        self.contracts = instance.has_contracts
        rows, cells = instance.neighbour_rows, instance.neighbours
        self.neighbours = [list(cells[rows[b] : rows[b + 1]]) for b in range(n)]
        self.row_start = list(rows)
        rows, cells = instance.section_rows, instance.sections
        self.sections = [list(cells[rows[b] : rows[b + 1]]) for b in range(n)]
        self.first_section = [row[0] for row in self.sections]
        self.last_section = [row[-1] for row in self.sections]
        self.reach = list(self.size)
        if self.contracts:
            for b in range(n):
                gaps = instance.gaps_above[self.row_start[b] : self.row_start[b + 1]]
                self.reach[b] = max(self.size[b], *gaps, 0)
        self.max_releases = len(instance.neighbours) + RELEASES_PER_BUFFER * n
        self.num_releases = 0
        self.minimum = [0] * n
        self.late = [0] * n
        self.release = [0] * n
        self.offset = [0] * n
        self.index = [0] * n
        self.salt = [0] * n
        self.placed = [False] * n
        self.items: list[int] = []
        self.members: list[list[int]] = [[] for _ in range(m)]
        self.load = [0] * m
        self.cut = [0] * m
        self.weight = [0] * m
        self.trail: list[tuple[int, int, int]] = []  # (kind, buffer, old value)
        self.table: dict[int, tuple[int, int, int, int]] = {}  # slot -> key, check, offset, index

    # Restarts.

    def run_portfolio(self) -> Result:
        """Runs each order as it is and then behind the weights learned so far, under doubling limits."""
        limit = FIRST_LIMIT * self.instance.num_buffers
        while True:
            for base_order in self.instance.orders:
                for weighted in (False, True):
                    order = list(base_order)
                    if weighted:
                        order.sort(key=lambda b: -max(self.weight[t] for t in self.sections[b]))
                    self._start(order)
                    self.node_limit = self.num_nodes + min(self.node_budget - self.num_nodes, limit)
                    result = self._solve_split(0, len(order), 0, -1)
                    if result is not Result.UNKNOWN or self.num_nodes >= self.node_budget:
                        return result
                    if self.work >= self.work_budget:
                        return result
            limit *= 2

    def _start(self, order: list[int]) -> None:
        self.items = list(order)
        for i, b in enumerate(order):
            self.index[b] = i
            self.salt[b] = _mix(((b << 32) + i + 1) & MASK)
        self.trail.clear()
        self.num_releases = 0
        for t in range(self.instance.num_sections):
            self.members[t].clear()
            self.load[t] = self.cut[t] = 0
        for b in range(len(order)):
            self.placed[b] = False
            lowest = self.fixed[b] if self.fixed[b] >= 0 else self._align_up(b, 0)
            self.minimum[b] = self.late[b] = lowest
            self.release[b] = -1
            self._join_sections(b)
        self.work += len(order) + len(self.instance.sections)

    # State changes and their undoing.

    def _align_up(self, b: int, offset: int) -> int:
        low_bits = self.alignment[b] - 1
        return ((offset + self.base + low_bits) & ~low_bits) - self.base

    def _join_sections(self, b: int) -> None:
        for t in self.sections[b]:
            self.members[t].append(b)
            self.load[t] += self.room[b]
        for t in range(self.first_section[b] + 1, self.last_section[b] + 1):
            self.cut[t] += 1

    def _leave_sections(self, b: int) -> bool:
        """Takes the buffer out of its sections. Returns whether time falls apart at one of them."""
        split = False
        for t in self.sections[b]:
            self.members[t].remove(b)
            self.load[t] -= self.room[b]
        for t in range(self.first_section[b] + 1, self.last_section[b] + 1):
            self.cut[t] -= 1
            split = split or self.cut[t] == 0
        return split

    def _undo_to(self, length: int) -> None:
        trail = self.trail
        while len(trail) > length:
            kind, b, old = trail.pop()
            if kind == _MINIMUM:
                self.minimum[b] = old
            elif kind == _LATE:
                self.late[b] = old
            elif kind == _RELEASE:
                self.release[b] = old
                self.num_releases -= 1
            else:
                self.placed[b] = False
                self._join_sections(b)

    def _lowest_beside(self, b: int, frontier: int) -> int:
        """With contracts: what the placed neighbours leave a buffer at the frontier itself.

        Those that are there, too, may be beside it. That is of use up to the frontier; else `late` counts, where all of
        them lift it.
        """
        found = self.fixed[b] if self.fixed[b] >= 0 else self._align_up(b, 0)
        self.work += len(self.neighbours[b])
        gaps_above, gaps_below = self.instance.gaps_above, self.instance.gaps_below
        for k, x in enumerate(self.neighbours[b], self.row_start[b]):
            if self.placed[x] and (self.offset[x] != frontier or gaps_above[k] != 0):
                found = max(found, self._align_up(b, self.offset[x] + gaps_below[k]))
        return found if found <= frontier else self.late[b]

    def _place(self, b: int, at: int) -> tuple[int, bool]:
        """Places the buffer and lifts its neighbours.

        Returns the number of unplaced neighbours (-1 if one of them is fixed and would have to move), and
        whether time falls apart.
        """
        num_unplaced = 0
        self.placed[b] = True
        self.offset[b] = at
        self.trail.append((_PLACE, b, 0))
        self.work += len(self.neighbours[b]) + self.last_section[b] - self.first_section[b] + 1
        split = self._leave_sections(b)
        gaps_above = self.instance.gaps_above
        for k, y in enumerate(self.neighbours[b], self.row_start[b]):
            if self.placed[y]:
                continue
            num_unplaced += 1
            lifted = self._align_up(y, at + (gaps_above[k] if self.contracts else self.size[b]))
            if self.contracts:
                if lifted > self.late[y]:
                    self.trail.append((_LATE, y, self.late[y]))
                    self.late[y] = lifted
                lifted = self._lowest_beside(y, at) if self.late[y] > at else self.late[y]
            if lifted <= self.minimum[y]:
                continue
            if 0 <= self.fixed[y] < lifted:
                return -1, split
            self.trail.append((_MINIMUM, y, self.minimum[y]))
            self.minimum[y] = lifted
        return num_unplaced, split

    # Inference.

    def _lowest(self, b: int, frontier: int) -> int:
        """The lowest offset for the buffer now, given that nothing goes below the frontier any more."""
        if not self.contracts or self.fixed[b] >= 0 or self.minimum[b] == frontier:
            return self.minimum[b]
        return self.late[b]

    def _bumped(self, b: int, at: int, frontier: int) -> int:
        """The least offset of a buffer that an unplaced neighbour must lift over the frontier, or FAR."""
        best = FAR
        self.work += len(self.neighbours[b])
        gaps_above, gaps_below = self.instance.gaps_above, self.instance.gaps_below
        for k, x in enumerate(self.neighbours[b], self.row_start[b]):
            if self.placed[x]:
                continue
            if self.contracts:
                top_of_b, top_of_x, x_at = gaps_above[k], gaps_below[k], self.minimum[x]
            else:
                top_of_b, top_of_x, x_at = self.size[b], self.size[x], self.release[x]
            x_at = max(x_at, frontier)
            if x_at < at + top_of_b and x_at + top_of_x < best:
                best = x_at + top_of_x
        return FAR if best == FAR else self._align_up(b, best)

    def _sort_members(self, members: list[int]) -> None:
        """By release, then buffer, descending; moved one by one because every move counts as work."""
        release = self.release
        for i in range(1, len(members)):
            b, j = members[i], i
            key = (release[b], b)
            while j > 0 and (release[members[j - 1]], members[j - 1]) < key:
                members[j] = members[j - 1]
                j -= 1
            members[j] = b
            self.work += i - j

    def _net_size(self, b: int, marked: set[int]) -> int:
        """What the buffer adds to the union of the marked ones of its section."""
        net = self.size[b]
        if not self.contracts:
            return net
        self.work += len(self.neighbours[b])
        for k, x in enumerate(self.neighbours[b], self.row_start[b]):
            if x in marked:
                net -= self.instance.shared[k]
        if net <= 0:
            return 0
        marked.add(b)
        return net

    def _section_fits(self, t: int) -> bool:
        """Whether the section's unplaced buffers can still end below the capacity."""
        members, release = self.members[t], self.release
        self.work += len(members)
        if not members or max(release[b] for b in members) + self.load[t] <= self.capacity:
            return True
        is_plain = not self.contracts and not self.levels
        if is_plain and min(release[b] for b in members) + self.load[t] > self.capacity:
            return False
        self._sort_members(members)
        self.work += len(members) * (1 + len(self.levels))
        marked: set[int] = set()
        wastes = [Waste(level) for level in self.levels]
        total = apart = wasted = 0
        for b in members:
            net = self._net_size(b, marked)
            total += net
            if net == self.size[b]:  # shares nothing with those before it that do not either
                apart += net
                wasted = max((0, *(waste.add(self.size[b], self.alignment[b]) for waste in wastes)))
            if release[b] + max(total, apart + wasted) > self.capacity:
                return False
        return True

    def _infer(self, begin: int, end: int, frontier: int, frontier_index: int) -> tuple[int, int, int] | None:
        """Brings releases up to date and checks the sections they concern.

        Returns key, check and the offset below which some unplaced buffer fits, or None if there is no plan.
        """
        dirty: dict[int, None] = {}
        key = check = 0
        threshold = FAR
        for i in range(begin, end):
            b = self.items[i]
            r = self._lowest(b, frontier)
            threshold = min(threshold, r + self.reach[b])
            h = _mix((self.minimum[b] + self.salt[b]) & MASK)
            if self.contracts:
                h = _mix((h + self.late[b]) & MASK)
            key += h
            check += _mix(h ^ 0xD6E8FEB86659FD93)
            if r < frontier or (r == frontier and self.index[b] < frontier_index):
                r = FAR if self.fixed[b] >= 0 else self._bumped(b, r, frontier)
                if r == FAR:
                    return None
            elif r > frontier and self.minimum[b] < frontier:
                r = frontier  # with contracts: another buffer may still lift it to just there
            if r > self.release[b] and self.num_releases < self.max_releases:
                self.trail.append((_RELEASE, b, self.release[b]))
                self.num_releases += 1
                self.release[b] = r
                self.work += len(self.sections[b])
                for t in self.sections[b]:
                    dirty[t] = None
        key &= MASK
        check &= MASK
        entry = self.table.get(key % TABLE_SIZE)
        if entry is not None and entry[:2] == (key, check) and entry[2:] <= (frontier, frontier_index):
            return None
        for t in dirty:
            if not self._section_fits(t):
                self.weight[t] += 1
                return None
        return key, check, threshold

    # The search.

    def _next_candidate(self, begin: int, end: int, frontier: int, offset: int, index: int) -> int:
        """The next buffer in (offset, index) after the given pair: its place in `items`, or -1."""
        best, best_offset, best_index = -1, FAR, FAR
        for i in range(begin, end):
            b = self.items[i]
            at = self._lowest(b, frontier)
            if at < offset or at > best_offset or (at == offset and self.index[b] <= index):
                continue
            if at < best_offset or self.index[b] < best_index:
                best, best_offset, best_index = i, at, self.index[b]
        return best

    def _solve_split(self, begin: int, end: int, frontier: int, frontier_index: int) -> Result:
        """Sorts the stretch by first section and solves each part that shares no section with the next."""
        first = [self.first_section[b] for b in self.items[begin:end]]
        if first:
            self.work += end - begin + max(first) - min(first) + 1
        self.items[begin:end] = sorted(self.items[begin:end], key=lambda b: self.first_section[b])
        start = begin
        while start < end:
            reaches = self.last_section[self.items[start]]
            stop = start + 1
            while stop < end and self.first_section[self.items[stop]] <= reaches:
                reaches = max(reaches, self.last_section[self.items[stop]])
                stop += 1
            result = self._solve_part(start, stop, frontier, frontier_index)
            if result is not Result.SOLVED:
                return result
            start = stop
        return Result.SOLVED

    def _solve_part(self, begin: int, end: int, frontier: int, frontier_index: int) -> Result:
        """Places items[begin:end], none before (frontier, frontier_index). Undoes everything on failure."""
        if begin == end:
            return Result.SOLVED
        if self.num_nodes >= self.node_limit or self.work >= self.work_budget:
            return Result.UNKNOWN
        self.num_nodes += 1
        self.work += end - begin
        if self.poll is not None and self.num_nodes % POLL_NODES == 0:
            self.poll(self.num_nodes)
        length_on_entry = len(self.trail)
        facts = self._infer(begin, end, frontier, frontier_index)
        if facts is None:
            self._undo_to(length_on_entry)
            return Result.INFEASIBLE
        key, check, threshold = facts
        length, offset, index = len(self.trail), frontier, frontier_index
        while True:
            i = self._next_candidate(begin, end, frontier, offset, index)
            self.work += end - begin
            if i < 0:
                break
            b = self.items[i]
            offset, index = self._lowest(b, frontier), self.index[b]
            if offset >= threshold:
                break
            if offset + self.size[b] > self.capacity:
                continue  # with contracts, where it might have stayed lower
            self.items[i], self.items[end - 1] = self.items[end - 1], b
            num_unplaced, split = self._place(b, offset)
            if num_unplaced >= 0:
                next_index = -1 if self.contracts else index
                solve = self._solve_split if split else self._solve_part
                result = solve(begin, end - 1, offset, next_index)
                if result is not Result.INFEASIBLE:
                    return result
            self._undo_to(length)
            if num_unplaced == 0:
                break
        self._undo_to(length_on_entry)
        self.table[key % TABLE_SIZE] = (key, check, frontier, frontier_index)
        return Result.INFEASIBLE
