"""The calls of steps that make rows, one by one: the loops of a plan gone through with their numbers.

All of it is read off the plan: loops with their ends, and which rows each step says that it makes and needs. It knows
nothing of how the schedule was made, so `check` and paranoid runs judge that by it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from bytewright.ir.analyses.clock import Loop, outer_first
from bytewright.record.plan import Plan, PlannedStep
from bytewright.record.rows import PlannedRows

# Calls in the loops of one group that are looked at: more have no image that a microcontroller sees in its life.
MOST_CALLS = 1_000_000
_TERM = re.compile(r"(?:(-?\d+)\*)?([A-Za-z_]\w*)|(-?\d+)")


@dataclass(frozen=True, slots=True)
class RowCall:
    """One call in a loop.

    Attributes:
        step: The step that is called.
        number: How many calls of that step come before it.
        begin: The first row that it makes, and
        end: the one behind the last, none where the two are equal; rows that the tensor does not have are left out.
    """

    step: PlannedStep
    number: int
    begin: int = 0
    end: int = 0

    @property
    def made(self) -> range:
        """The rows that it makes of its output."""
        return range(self.begin, self.end)

    def needed(self, buffer: str) -> range | None:
        """The rows that it reads of a buffer; None if that is not by rows."""
        rows = self.step.rows
        window = next((w for w in rows.windows if w.buffer == buffer), None) if rows is not None else None
        if window is None:
            return None
        if not self.made:
            return range(0)
        first, last = window.rows(self.begin), window.rows(self.end - 1)
        return range(first.start, max(first.start, last.stop))


@dataclass(frozen=True, slots=True)
class RowRun:
    """Steps in a row that make rows, with the loops around them.

    Attributes:
        steps: The first of them and the last.
        calls: All of their calls, in their order; None if the plan does not say it in numbers.
    """

    steps: tuple[int, int]
    calls: tuple[RowCall, ...] | None


def row_runs(plan: Plan) -> list[RowRun]:
    """The loops that stand in no other and have steps by rows, in their order.

    Steps by rows in no loop are runs, too. Runs that make rows of one buffer, or touch one ring, are one, with
    whatever stands between them.
    """
    outermost: list[tuple[int, int]] = []
    for loop in outer_first(plan.loops):
        if not outermost or loop.steps[0] > outermost[-1][1]:
            outermost.append(loop.steps)
    wanted = [(step.index, step.index) for step in plan.steps if step.rows is not None]
    rings = {buffer.name for buffer in plan.buffers.values() if buffer.ring is not None}
    concerned: dict[str, list[int]] = {}
    for step in plan.steps:
        made = () if step.rows is None else (step.rows.buffer,)
        for name in {*made, *rings.intersection(step.touched)}:
            concerned.setdefault(name, []).append(step.index)
    wanted += [(numbers[0], numbers[-1]) for numbers in concerned.values()]
    around = [
        loop for loop in outermost if any(loop[0] <= last and first <= loop[1] for first, last in wanted)
    ]
    ranges: list[tuple[int, int]] = []
    for first, last in sorted([*wanted, *around]):
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        else:
            ranges.append((first, last))
    return [RowRun(steps, _calls(plan, steps)) for steps in ranges]


def _calls(plan: Plan, steps: tuple[int, int]) -> tuple[RowCall, ...] | None:
    first, last = steps
    inside = [loop for loop in outer_first(plan.loops) if first <= loop.steps[0] <= loop.steps[1] <= last]
    arms = [arm for branch in plan.branches for arm in (branch.then, branch.otherwise)]
    if any(arm[0] <= last and first < arm[1] for arm in arms):
        return None  # which of these steps are called is not known
    try:
        calls = tuple(islice(_Walk(plan, inside).calls(first, last, 0, {}), MOST_CALLS + 1))
    except ValueError:
        return None
    return calls if len(calls) <= MOST_CALLS else None


class _Walk:
    """One walk through nested loops, outer ones first. Raises ValueError where a number is not known."""

    def __init__(self, plan: Plan, loops: list[Loop]) -> None:
        self.plan, self.loops = plan, loops
        self.num_calls: dict[int, int] = {}

    def calls(self, first: int, last: int, depth: int, values: Mapping[str, int]) -> Iterator[RowCall]:
        """What happens from a step to another; `depth` loops of the list are around or over."""
        number = first
        while number <= last:
            around = next(
                (
                    index
                    for index in range(depth, len(self.loops))
                    if self.loops[index].steps[0] == number and self.loops[index].steps[1] <= last
                ),
                None,
            )
            if around is None:
                yield self._call(self.plan.steps[number], values)
                number += 1
                continue
            loop = self.loops[around]
            if loop.variable is None:
                raise ValueError(loop)
            for value in range(_value(loop.begin, values), _value(loop.end, values)):
                yield from self.calls(*loop.steps, around + 1, {**values, loop.variable: value})
            number = loop.steps[1] + 1

    def _call(self, step: PlannedStep, values: Mapping[str, int]) -> RowCall:
        number = self.num_calls.get(step.index, 0)
        self.num_calls[step.index] = number + 1
        if step.rows is None:
            return RowCall(step, number)
        begin, end = _made(step.rows, values)
        return RowCall(step, number, begin, end)


def _made(rows: PlannedRows, values: Mapping[str, int]) -> tuple[int, int]:
    begin, end = max(_value(rows.begin, values), 0), min(_value(rows.end, values), rows.num_rows)
    return begin, max(begin, end)


def _value(number: int | str | None, values: Mapping[str, int]) -> int:
    """A number of the plan, or a sum as `Form.written`, where the variables have these values."""
    if isinstance(number, int):
        return number
    total = 0
    for text in (number or "").replace(" - ", " + -").split(" + "):
        term = _TERM.fullmatch(text)
        if term is None or (term[2] is not None and term[2] not in values):
            raise ValueError(number)
        total += int(term[3]) if term[3] is not None else int(term[1] or 1) * values[term[2]]
    return total
