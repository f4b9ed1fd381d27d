"""Steps that make rows, carried out call by call: whether each row is there when it is read.

A row that is read was made before, and in a ring its slot has not been given to another row since. A program says its
steps, loops and branches as a tree (`row_program.py` makes it of IR, `record/row_calls.py` of a plan); which rows a
call makes are sums of loop variables, so every call is known in numbers. Of a branch whose side they do not tell both
sides are carried out, and afterwards there is what is there after either.

Nothing here knows how a schedule was made. Steps without rows write and need all of a buffer; what they both read and
write they may write first.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bytewright.base.signed import Signed

Number = Signed | str | None
"""A number, a sum as `Form.written`, or what is no sum."""
# Calls that are looked at: more have no image that a microcontroller sees in its life.
MOST_CALLS = 1_000_000
_TERM = re.compile(r"(?:(-?\d+)\*)?([A-Za-z_]\w*)|(-?\d+)")
_COMPARISONS = ("<=", ">=", "==", "<", ">")


@dataclass(frozen=True, slots=True)
class Window:
    """Rows `stride * r + first` to `stride * r + last` of a buffer of `num_rows`, which row `r` of a result needs.

    Rows before its first and behind its last are not read.

    Attributes:
        divisor: What both numbers are divided by and rounded down, as where one row is read for two that are made.
    """

    buffer: str
    num_rows: int
    stride: int
    first: Signed
    last: Signed
    divisor: int = 1

    def needed(self, made: range) -> range:
        """The rows that some rows of the result need."""
        if not made:
            return range(0)
        first = max((self.stride * made.start + self.first) // self.divisor, 0)
        last = (self.stride * (made.stop - 1) + self.last) // self.divisor
        return range(first, max(first, min(last + 1, self.num_rows)))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `begin` to before `end` of a buffer of `num_rows`, which a call makes, without those that it does not have.

    Attributes:
        begin: A number, or a sum of the variables of loops such as `2*turn - 4`; None for what is no sum.
        end: The same.
        windows: What it needs for a row; of other buffers that it reads it needs all of it for each row.
    """

    buffer: str
    num_rows: int
    begin: Number
    end: Number
    windows: tuple[Window, ...]

    def made(self, values: Mapping[str, int]) -> range:
        """The rows, without those that the buffer does not have, where variables have some values."""
        begin = max(value_of(self.begin, values), 0)
        return range(begin, max(begin, min(value_of(self.end, values), self.num_rows)))


@dataclass(frozen=True, slots=True)
class Step:
    """A call of the program.

    Attributes:
        number: Among its calls.
        reads: Buffers.
        writes: Buffers.
        rows: Those that it makes; None if it makes all that it writes, or all that it makes of it.
    """

    number: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop; each turn has new buffers of those that are born inside."""

    variable: str | None
    begin: Number
    end: Number
    inside: tuple[str, ...]
    body: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Arms:
    """A branch: on what two sums are to each other, as `batch < 3`, or on what is not known."""

    compared: str | None
    then: tuple["Node", ...]
    otherwise: tuple["Node", ...]


Node = Step | Turns | Arms


class UnknownNumberError(ValueError):
    """A number that decides what is called is not known."""


def value_of(number: Number, values: Mapping[str, int]) -> int:
    """A number where variables have some values.

    Raises:
        UnknownNumberError: It is no sum of these variables.
    """
    if isinstance(number, int):
        return number
    total = 0
    for text in (number or "").replace(" - ", " + -").split(" + "):
        term = _TERM.fullmatch(text)
        if term is None or (term[2] is not None and term[2] not in values):
            raise UnknownNumberError(number)
        total += int(term[3]) if term[3] is not None else int(term[1] or 1) * values[term[2]]
    return total


def side_of(compared: str | None, values: Mapping[str, int]) -> bool | None:
    """Whether a comparison holds; None if that is not known."""
    operator = next((o for o in _COMPARISONS if compared is not None and f" {o} " in compared), None)
    if operator is None or compared is None:
        return None
    try:
        left, right = (value_of(text, values) for text in compared.split(f" {operator} "))
    except ValueError:
        return None
    match operator:
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case _:
            return left == right


def steps_of(nodes: Iterable[Node]) -> Iterator[Step]:
    """All steps, in their order."""
    for node in nodes:
        match node:
            case Step():
                yield node
            case Turns(body=body):
                yield from steps_of(body)
            case Arms(then=then, otherwise=otherwise):
                yield from steps_of((*then, *otherwise))


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with a call, or with all calls of a step together.

    Attributes:
        step: Its number; the first of those that cannot be followed.
        call: How many calls of the step come before; None for all of them.
        text: What it does: `reads row 3 of 't', which is not made yet`.
        buffer: The buffer that it is about, if it is about one.
        is_lost: Whether a larger ring would still have the row.
        last: The last step of those that cannot be followed; None for other faults.
    """

    step: int
    call: int | None
    text: str
    buffer: str | None = None
    is_lost: bool = False
    last: int | None = None


def replay(
    nodes: Sequence[Node],
    slots: Mapping[str, int],
    outputs: Collection[str] = (),
    once: Collection[str] = (),
    states: Collection[str] = (),
) -> list[RowFault]:
    """The first fault of each step.

    Args:
        nodes: The program.
        slots: Of each ring, how many rows it keeps.
        outputs: Buffers that are there when it has ended.
        once: Buffers of which no row may be made again.
        states: Buffers of which all rows are there when it begins.
    """
    replaying = _Replay.of(nodes, slots, once, states)
    for node in nodes:
        steps = [step.number for step in steps_of([node])]
        try:
            replaying.run([node], {}, replaying.state)
        except UnknownNumberError:
            text = f"which rows the loops of steps {steps[0]} to {steps[-1]} make cannot be followed"
            return [*replaying.faults.values(), RowFault(steps[0], None, text, last=steps[-1])]
    replaying.end(outputs)
    return list(replaying.faults.values())


@dataclass(slots=True)
class _Kept:
    """The rows of a buffer.

    Attributes:
        num_rows: Of the tensor.
        num_slots: As many as it keeps.
        maker: The first step that makes rows of it.
        made: Rows that were made.
        slots: Which row was made last in each slot; None where that is not known.
    """

    num_rows: int
    num_slots: int
    maker: int
    made: set[int] = field(default_factory=set[int])
    slots: dict[int, int | None] = field(default_factory=dict[int, int | None])

    def copy(self) -> "_Kept":
        return _Kept(self.num_rows, self.num_slots, self.maker, set(self.made), dict(self.slots))

    def join(self, other: "_Kept") -> None:
        """What is there after either of two ways."""
        self.made &= other.made
        for slot in {*self.slots, *other.slots}:
            if self.slots.get(slot) != other.slots.get(slot):
                self.slots[slot] = None

    def make(self, rows: range) -> None:
        for row in rows:
            self.made.add(row)
            self.slots[row % self.num_slots] = row


_State = dict[str, _Kept]


@dataclass(slots=True)
class _Replay:
    """A run through a program.

    Attributes:
        state: The buffers that some step makes rows of.
        relevant: Numbers of the steps that have anything to do with these.
        once: Buffers of which no row may be made again.
        faults: By step, the first.
        num_calls: Of each step.
    """

    state: _State
    relevant: frozenset[int]
    once: Collection[str]
    faults: dict[int, RowFault] = field(default_factory=dict[int, RowFault])
    num_calls: dict[int, int] = field(default_factory=dict[int, int])
    budget: int = MOST_CALLS

    @classmethod
    def of(
        cls, nodes: Sequence[Node], slots: Mapping[str, int], once: Collection[str], states: Collection[str]
    ) -> "_Replay":
        state: _State = {}
        for step in steps_of(nodes):
            if step.rows is not None and step.rows.buffer not in state:
                name, num_rows = step.rows.buffer, step.rows.num_rows
                state[name] = _Kept(num_rows, slots.get(name, num_rows), step.number)
                state[name].make(range(num_rows if name in states else 0))
        relevant = {s.number for s in steps_of(nodes) if not state.keys().isdisjoint((*s.reads, *s.writes))}
        return cls(state, frozenset(relevant), once)

    def run(self, nodes: Iterable[Node], values: Mapping[str, int], state: _State) -> None:
        for node in nodes:
            if not any(step.number in self.relevant for step in steps_of([node])):
                continue
            match node:
                case Step():
                    self._call(node, values, state)
                case Turns():
                    self._loop(node, values, state)
                case Arms():
                    self._branch(node, values, state)

    def end(self, outputs: Collection[str]) -> None:
        """What no call made, of what somebody wants to read."""
        wanted = {*outputs, *(fault.buffer for fault in self.faults.values())}
        for name, kept in self.state.items():
            missing = sorted(set(range(kept.num_rows)) - kept.made)
            if missing and name in wanted and kept.maker not in self.faults:
                text = f"never makes row {missing[0]} of '{name}'"
                self.faults[kept.maker] = RowFault(kept.maker, None, text, name)

    def _loop(self, loop: Turns, values: Mapping[str, int], state: _State) -> None:
        if loop.variable is None:
            raise UnknownNumberError(loop)
        for value in range(value_of(loop.begin, values), value_of(loop.end, values)):
            for name in loop.inside:
                if name in state:
                    state[name].slots.clear()
                    state[name].made.clear()
            self.run(loop.body, {**values, loop.variable: value}, state)

    def _branch(self, arms: Arms, values: Mapping[str, int], state: _State) -> None:
        side = side_of(arms.compared, values)
        if side is not None:
            self.run(arms.then if side else arms.otherwise, values, state)
            return
        before = {name: kept.copy() for name, kept in state.items()}
        self.run(arms.then, values, state)
        self.run(arms.otherwise, values, before)
        for name, kept in state.items():
            kept.join(before[name])

    def _call(self, step: Step, values: Mapping[str, int], state: _State) -> None:
        number = self.num_calls.get(step.number, 0)
        self.num_calls[step.number] = number + 1
        self.budget -= 1
        if self.budget < 0:
            raise UnknownNumberError(step)
        made = range(0) if step.rows is None else step.rows.made(values)
        if step.number not in self.faults:
            fault = next(self._faults(step, number, made, state), None)
            if fault is not None:
                self.faults[step.number] = fault
        for name in step.writes:
            if name not in state:
                continue
            kept = state[name]
            is_by_rows = step.rows is not None and step.rows.buffer == name
            kept.make(made if is_by_rows else range(kept.num_rows))

    def _faults(self, step: Step, number: int, made: range, state: _State) -> Iterator[RowFault]:
        rows = step.rows
        if rows is not None:
            own = state[rows.buffer]
            if rows.num_rows != own.num_rows:
                text = f"counts {rows.num_rows} rows of '{rows.buffer}', another step {own.num_rows}"
                yield RowFault(step.number, number, text, rows.buffer)
            if len(made) > own.num_slots:
                text = f"makes {len(made)} rows of '{rows.buffer}', which keeps {own.num_slots}"
                yield RowFault(step.number, number, text, rows.buffer, is_lost=True)
            for row in made if rows.buffer in self.once else ():
                if row in own.made:
                    text = f"makes row {row} of '{rows.buffer}' again"
                    yield RowFault(step.number, number, text, rows.buffer)
        for name in step.reads:
            if name in state and not (name in step.writes and rows is None):
                for row in _needed(step, name, made, state[name]):
                    yield from self._faults_of_row(step, number, name, row, state[name])
                    if rows is not None and rows.buffer == name and row not in made:
                        yield from self._faults_of_own(step, number, name, row, made, state[name])

    def _faults_of_row(self, step: Step, number: int, name: str, row: int, kept: _Kept) -> Iterator[RowFault]:
        there = kept.slots.get(row % kept.num_slots)
        if row not in kept.made:
            yield RowFault(step.number, number, f"reads row {row} of '{name}', which is not made yet", name)
        elif there != row:
            by_then = "may have another row" if there is None else f"has row {there}"
            text = f"reads row {row} of '{name}', whose slot of {kept.num_slots} {by_then} by then"
            yield RowFault(step.number, number, text, name, is_lost=True)

    def _faults_of_own(
        self, step: Step, number: int, name: str, row: int, made: range, kept: _Kept
    ) -> Iterator[RowFault]:
        """A row that is read in a call that makes others over it."""
        if len(made) > 1 and any(other % kept.num_slots == row % kept.num_slots for other in made):
            text = f"reads row {row} of '{name}', and makes another in its slot of {kept.num_slots}"
            yield RowFault(step.number, number, text, name, is_lost=True)


def _needed(step: Step, name: str, made: range, kept: _Kept) -> Iterable[int]:
    """The rows of a buffer that a call reads, each once."""
    windows = [] if step.rows is None else [w for w in step.rows.windows if w.buffer == name]
    if not windows or any(window.num_rows != kept.num_rows for window in windows):
        return range(kept.num_rows)
    return dict.fromkeys(row for window in windows for row in window.needed(made))
