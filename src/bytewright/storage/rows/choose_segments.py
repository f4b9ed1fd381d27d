"""Chooses which steps run together row by row: dynamic programming over the places where the entry can be cut.

What an entry needs is the most that is alive at one time. Of a step that stands alone that is what is alive during it;
of a segment, all that is alive during any of its steps, with rings in the place of the tensors between them. Every cut
of the entry into steps and segments has a peak, the largest of these. The least peak is found first; among the cuts
that have it, the one with the fewest segments, and of these with the fewest steps in segments.

These are sums of sizes. What the planner makes of them it proves; whoever calls this compares.
"""

from collections.abc import Iterator

from bytewright.storage.rows.alive import Alive
from bytewright.storage.rows.segment import MAX_STEPS, Segment, segment_of
from bytewright.storage.rows.steps import RowProgram

# Steps that are looked at: with more, looking for segments would take longer than all else.
MOST_STEPS = 4000


def choose_segments(program: RowProgram, alive: Alive, *, everywhere: bool = False) -> tuple[Segment, ...]:
    """The segments of the best cut; none where no segment lowers the peak.

    Where the first step takes the input row by row, only cuts count whose first segment begins with it; none if there
    are no such cuts.

    Args:
        program: The steps.
        alive: Their memory.
        everywhere: Also where the peak is not: of all cuts with the least peak, take one whose steps need the least
            in sum.
    """
    return _Choice(program, alive, everywhere).best()


# The sum of needs where that counts, the number of segments, that of the steps in them.
_Cost = tuple[int, int, int]


class _Choice:
    """One search; segments are made once."""

    def __init__(self, program: RowProgram, alive: Alive, everywhere: bool) -> None:
        self.program, self.alive, self.everywhere = program, alive, everywhere
        self.segments: dict[tuple[int, int], Segment | None] = {}
        self.needs: dict[tuple[int, int], int | None] = {}
        self.alive_in: list[list[str]] = [[] for _ in range(program.num_steps)]
        for name, (_, first, last) in alive.tensors.items():
            for number in range(first, last + 1):
                self.alive_in[number].append(name)

    def best(self) -> tuple[Segment, ...]:
        count, peaks = self.program.num_steps, self.alive.peaks
        fixed = [peaks[n] for n in range(count) if n not in self.program.steps]
        floor = max(fixed, default=0)
        is_wanted = self.everywhere or self.program.taken is not None
        if not count or count > MOST_STEPS or (max(peaks) <= floor and not is_wanted):
            return ()
        least = self._least_peak()
        if least is None:
            return ()
        peak = max(floor, least)
        if peak >= max(peaks) and not is_wanted:
            return ()
        return self._cheapest(peak)

    def _least_peak(self) -> int | None:
        """The least that the largest need of any cut can be; None if there is no cut."""
        best: list[int | None] = [0]
        for end in range(1, self.program.num_steps + 1):
            before, alone = best[-1], self._alone(end - 1)
            least = None if before is None or alone is None else max(before, alone)
            for first in self._firsts(end):
                before = best[first]
                if before is None or (least is not None and before >= least):
                    continue  # no need could be so small that it counts
                need = self._need(first, end)
                if need is not None:
                    least = max(before, need) if least is None else min(least, max(before, need))
            best.append(least)
        return best[-1]

    def _cheapest(self, peak: int) -> tuple[Segment, ...]:
        """The segments of the cheapest cut whose needs stay within the peak."""
        best: list[_Cost | None] = [(0, 0, 0)]  # None where every piece that ends there exceeds the peak
        cut: list[int] = [0]
        for end in range(1, self.program.num_steps + 1):
            alone, before = self._alone(end - 1), best[-1]
            least: _Cost | None = None
            if before is not None and alone is not None and alone <= peak:
                least = self._with(before, alone, 1)
            begin = end - 1
            for first in self._firsts(end):
                before = best[first]
                if before is None or (least is not None and self._with(before, 0, end - first) >= least):
                    continue  # it costs too much whatever it needs
                need = self._need(first, end)
                cost = None if need is None or need > peak else self._with(before, need, end - first)
                if cost is not None and (least is None or cost < least):
                    least, begin = cost, first
            best.append(least)
            cut.append(begin)
        segments: list[Segment] = []
        end = self.program.num_steps
        while end:
            segment = self._segment(cut[end], end) if end - cut[end] > 1 else None
            segments.extend([] if segment is None else [segment])
            end = cut[end]
        return tuple(reversed(segments))

    def _with(self, before: _Cost, need: int, num_steps: int) -> _Cost:
        """What a cut costs with one more piece: a step alone, or a segment."""
        total = need * num_steps if self.everywhere else 0
        fused = (1, num_steps) if num_steps > 1 else (0, 0)
        return before[0] + total, before[1] + fused[0], before[2] + fused[1]

    def _firsts(self, end: int) -> Iterator[int]:
        """Where a segment may begin that ends before a step, the shortest first."""
        if end - 1 in self.program.steps:
            for first in range(end - 2, max(end - 1 - MAX_STEPS, -1), -1):
                if first not in self.program.steps or first + 1 in self.program.barriers:
                    return
                yield first

    def _alone(self, number: int) -> int | None:
        """What a step needs that stands alone; None for one that takes the rows of a ring."""
        return self.alive.peaks[number] if number or self.program.taken is None else None

    def _segment(self, first: int, end: int) -> Segment | None:
        if (first, end) not in self.segments:
            self.segments[first, end] = segment_of(self.program, first, end)
        return self.segments[first, end]

    def _need(self, first: int, end: int) -> int | None:
        """The bytes that a segment needs; None if the steps are none."""
        if (first, end) not in self.needs:
            self.needs[first, end] = self._summed(first, end)
        return self.needs[first, end]

    def _summed(self, first: int, end: int) -> int | None:
        segment = self._segment(first, end)
        if segment is None:
            return None
        names = dict.fromkeys(name for number in range(first, end) for name in self.alive_in[number])
        total = 0
        for name in names:
            if name in segment.rings:
                total += segment.rings[name] * self.program.tensors[name].row_bytes
            else:
                total += self.alive.tensors[name][0]
        return total + max(self.alive.scratch[first:end])
