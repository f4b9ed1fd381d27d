"""The calls of steps that make rows, one by one: the loops of a plan gone through with their numbers.

All of it is read off the plan: loops with their ends, branches, and which rows each step says that it makes and needs.
It knows nothing of how the schedule was made, so `check` and paranoid runs judge that by it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from bytewright.ir.analyses.clock import Branch, Loop, outer_first
from bytewright.ir.analyses.row_replay import (
    MOST_CALLS,
    Arms,
    Node,
    Rows,
    Step,
    Turns,
    UnknownNumberError,
    side_of,
    steps_of,
    value_of,
)
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan


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
        """The rows that it reads of a buffer, and those between; None if that is not by rows."""
        windows = self.step.rows.windows if self.step.rows is not None else ()
        needed = [window.needed(self.made) for window in windows if window.buffer == buffer]
        if not needed:
            return None
        some = [rows for rows in needed if rows] or needed
        return range(min(rows.start for rows in some), max(rows.stop for rows in some))


@dataclass(frozen=True, slots=True)
class RowRun:
    """Steps in a row that make rows, with the loops around them.

    Attributes:
        steps: The first of them and the last.
        calls: All of their calls, in their order; None if the plan does not say it in numbers.
    """

    steps: tuple[int, int]
    calls: tuple[RowCall, ...] | None


def row_nodes(plan: Plan) -> tuple[Node, ...]:
    """The steps of a plan in its loops and branches, with the rows that they make and need."""
    return _Builder(plan, outer_first(plan.loops)).nodes(0, len(plan.steps), (), 0)


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
    nodes = row_nodes(plan) if ranges else ()
    return [RowRun(steps, _calls(plan, nodes, steps)) for steps in ranges]


def asked_rows(plan: Plan) -> dict[int, tuple[int, int]]:
    """The least row that the calls of each step ask for, and the one behind the greatest, whether they exist or not.

    Both sides of a branch count. Steps whose rows are not known in numbers are left out, and all that is in such loops.
    """
    found: dict[int, tuple[int, int]] = {}
    unknown: set[int] = set()
    budget = MOST_CALLS

    def visit(nodes: Iterable[Node], values: Mapping[str, int]) -> None:
        nonlocal budget
        for node in nodes:
            try:
                match node:
                    case Step(rows=Rows(begin=begin, end=end)):
                        budget -= 1
                        first, last = value_of(begin, values), value_of(end, values)
                        if first < last:
                            known = found.get(node.number, (first, last))
                            found[node.number] = min(known[0], first), max(known[1], last)
                    case Step():
                        pass
                    case Turns(variable=variable):
                        for value in range(value_of(node.begin, values), value_of(node.end, values)):
                            visit(node.body, {**values, variable or "": value})
                            if budget < 0:
                                raise UnknownNumberError(node)
                    case Arms():
                        visit((*node.then, *node.otherwise), values)
            except UnknownNumberError:
                unknown.update(step.number for step in steps_of([node]))

    visit(row_nodes(plan), {})
    return {number: rows for number, rows in found.items() if number not in unknown}


def _calls(plan: Plan, nodes: Iterable[Node], steps: tuple[int, int]) -> tuple[RowCall, ...] | None:
    walk = _Walk(plan, range(steps[0], steps[1] + 1))
    try:
        calls = tuple(islice(walk.calls(nodes, {}), MOST_CALLS + 1))
    except UnknownNumberError:
        return None
    return calls if len(calls) <= MOST_CALLS else None


@dataclass(frozen=True, slots=True)
class _Builder:
    """Puts the steps of a plan into its loops, outer ones first, and its branches."""

    plan: Plan
    loops: list[Loop]

    def nodes(
        self, first: int, end: int, around: tuple[Loop | Branch, ...], num_loops: int
    ) -> tuple[Node, ...]:
        """What stands from a step to before another, inside of some loops and branches."""
        found: list[Node] = []
        number = first
        while number < end:
            block = self._block(number, end, around, num_loops)
            match block:
                case Branch(then=then, otherwise=otherwise):
                    inside = (*around, block)
                    arms = [self.nodes(*arm, inside, num_loops) for arm in (then, otherwise)]
                    found.append(Arms(block.compared, arms[0], arms[1]))
                    number = otherwise[1]
                case Loop():
                    body = self.nodes(block.steps[0], block.steps[1] + 1, (*around, block), num_loops + 1)
                    found.append(Turns(block.variable, block.begin, block.end, block.inside, body))
                    number = block.steps[1] + 1
                case None:
                    step = self.plan.steps[number]
                    found.append(Step(number, step.reads, step.writes, step.rows))
                    number += 1
        return tuple(found)

    def _block(
        self, number: int, end: int, around: tuple[Loop | Branch, ...], num_loops: int
    ) -> Loop | Branch | None:
        """The outermost loop or branch that begins with a step; a branch says how many loops are around it."""
        for branch in self.plan.branches:
            first, last = branch.then[0], branch.otherwise[1]
            is_here = first == number and number < last <= end and branch.num_loops == num_loops
            if is_here and not any(block is branch for block in around):
                return branch
        for loop in self.loops:
            is_here = loop.steps[0] == number <= loop.steps[1] < end
            if is_here and not any(block is loop for block in around):
                return loop
        return None


class _Walk:
    """One walk through the calls of some steps. Raises UnknownNumberError where a number is not known."""

    def __init__(self, plan: Plan, steps: range) -> None:
        self.plan, self.steps = plan, steps
        self.num_calls: dict[int, int] = {}

    def calls(self, nodes: Iterable[Node], values: Mapping[str, int]) -> Iterator[RowCall]:
        """The calls of these steps, in their order."""
        for node in nodes:
            if not any(step.number in self.steps for step in steps_of([node])):
                continue
            match node:
                case Step():
                    yield self._call(node, values)
                case Turns(variable=variable):
                    if variable is None:
                        raise UnknownNumberError(node)
                    for value in range(value_of(node.begin, values), value_of(node.end, values)):
                        yield from self.calls(node.body, {**values, variable: value})
                case Arms():
                    side = side_of(node.compared, values)
                    if side is None:
                        raise UnknownNumberError(node)
                    yield from self.calls(node.then if side else node.otherwise, values)

    def _call(self, step: Step, values: Mapping[str, int]) -> RowCall:
        number = self.num_calls.get(step.number, 0)
        self.num_calls[step.number] = number + 1
        made = range(0) if step.rows is None else step.rows.made(values)
        return RowCall(self.plan.steps[step.number], number, made.start, made.stop)
