"""The clock: program points of the entries, with calls inlined, and the lifetime of every buffer on it.

Entries follow each other on it, so what one has of its own is dead in all others: they share bytes of the workspace as
the steps of one do.

A call occupies a tick for reading, those of its body, and one for writing. Within the body each argument is needed
from its first to its last use there (`body_clock.py`), whatever it is to the kernel; so an input may die, and scratch
take its bytes, in the middle of a call. A buffer lives from the first tick that needs it to the last. One that a loop
uses but that was born outside lives for the whole loop. An arena, and what is requested from it, lives for the whole
bodies of the calls that request from it, and the arena from the first to the last of them.
A truth value that the entry branches on is read in a tick of its own, before both sides, which follow each other.
Inputs live from the start of their entry, because the application has already written them, and outputs to its end.
States live throughout: what a run leaves there is what the next one finds, whichever entry it is of.
Lifetimes are half-open. Beside them stands which devices touch each buffer (`touch.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses.affine import Definitions
from bytewright.ir.analyses.body_clock import BodyClock, Interval, Needs, body_clocks
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.analyses.number_texts import NumberTexts
from bytewright.ir.analyses.touch import Touch, Touches, TouchTable, branches_on, touch_table, united
from bytewright.ir.prim import stores
from bytewright.ir.walk import condition_buffer, loaded_buffers
from bytewright.target.model import Target


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the entry.

    Attributes:
        ticks: Half-open interval on the clock.
        needed: The entry's buffers that the call is given, each with the ticks in which it needs them.
    """

    index: int
    ticks: tuple[int, int]
    call: ir.Call
    device: str
    needed: tuple[tuple[str, Interval], ...]

    @property
    def touched(self) -> tuple[str, ...]:
        """Names of the entry's buffers that the call is given."""
        return tuple(name for name, _ in self.needed)


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer of the entry with its lifetime and the devices that touch it."""

    buffer: ir.Buffer
    allocation: ir.Allocate | None
    lower: int
    upper: int
    touches: Touches

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that touch it, sorted."""
        return tuple(sorted(touch.device for touch in self.touches))


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps of the entry that come again.

    Attributes:
        steps: The first of them and the last.
        inside: Names of buffers that are born in it, and carry nothing from turn to turn.
        variable: What counts its turns; None in a plan of before that was said,
        begin: from this number,
        end: to the one before this. Each may change, as `NumberTexts` writes it.
    """

    steps: tuple[int, int]
    inside: tuple[str, ...]
    variable: str | None = None
    begin: int | str | None = None
    end: int | str | None = None

    def has_step(self, index: int) -> bool:
        """Whether a step is among them."""
        return self.steps[0] <= index <= self.steps[1]


def outer_first(loops: Sequence[Loop]) -> list[Loop]:
    """The loops of a timeline in the order in which they begin; it has those inside of one before that."""
    last_first = loops[::-1]  # of two with the same steps the outer one comes first now, and stays there
    return sorted(last_first, key=lambda loop: (loop.steps[0], -loop.steps[1]))


@dataclass(frozen=True, slots=True)
class Condition:
    """A branch of the entry on a truth value in a buffer, which is read in a tick of its own, before both sides.

    Attributes:
        loop: The first and the last step of the innermost loop that it is in; None outside of loops.
    """

    buffer: str
    tick: int
    device: str
    loop: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the entry, on a truth value in a buffer or on numbers.

    Attributes:
        buffer: That of the truth value; None for a branch on numbers.
        compared: What those are, as `batch < 3`; None for anything else than two sums.
        then: The steps of the first arm, half-open.
        otherwise: Those of the second, which follow them.
        num_loops: How many loops it is in.
    """

    buffer: str | None
    compared: str | None
    then: tuple[int, int]
    otherwise: tuple[int, int]
    num_loops: int

    @property
    def text(self) -> str:
        """What it is on, for people."""
        return self.buffer or (f"({self.compared})" if self.compared else "(numbers)")


@dataclass(frozen=True, slots=True)
class Span:
    """Where an entry stands.

    Attributes:
        steps: Its steps, half-open.
        ticks: Its ticks, half-open; an entry without steps has one, in which the application has its tensors.
    """

    steps: tuple[int, int]
    ticks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Timeline:
    """All steps, and all buffers of the entries that are used, in order of allocation; parameters first.

    An arena and what is requested from it are both among them, and a step touches both.
    """

    steps: tuple[Step, ...]
    buffers: tuple[LiveBuffer, ...]
    loops: tuple[Loop, ...] = ()
    conditions: tuple[Condition, ...] = ()
    branches: tuple[Branch, ...] = ()
    spans: tuple[Span, ...] = ()

    @property
    def num_ticks(self) -> int:
        """The end of the clock."""
        return self.spans[-1].ticks[1] if self.spans else 0

    def entry_of(self, step: int) -> int:
        """The number of the entry that a step is of."""
        return next(n for n, span in enumerate(self.spans) if step < span.steps[1])

    def steps_touching(self) -> dict[str, tuple[int, int]]:
        """First and last step that touch each buffer that a step touches."""
        found: dict[str, tuple[int, int]] = {}
        for step in self.steps:
            for name in step.touched:
                found[name] = (found[name][0] if name in found else step.index, step.index)
        return found

    def steps_alive(self, name: str) -> tuple[int, int]:
        """First and last step that a buffer lives in."""
        live = next(live for live in self.buffers if live.buffer.name == name)
        alive = [s.index for s in self.steps if s.ticks[0] < live.upper and live.lower < s.ticks[1]]
        return (alive[0], alive[-1]) if alive else (0, 0)


def read_clock(module: ir.Module, target: Target) -> Timeline:
    """Numbers the program points of all entries, one after the other; devices are the target's."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    table = touch_table(module, target)
    reader = _Reader(kernels, body_clocks(module, target), module.entries[0], table)
    definitions: dict[str, ir.BufferParameter | ir.Allocate] = {}
    for entry in module.entries:
        for definition in reader.read(entry):
            if definitions.setdefault(definition.buffer.name, definition) is not definition:
                _require_state(definition, entry)
    reader.keep_states(definitions.values())
    live = [
        LiveBuffer(
            definition.buffer,
            definition if isinstance(definition, ir.Allocate) else None,
            *reader.lifetimes[name],
            reader.touches[name],
        )
        for name, definition in definitions.items()
        if name in reader.lifetimes
    ]
    loops, conditions, branches = tuple(reader.loops), tuple(reader.conditions), tuple(reader.branches)
    return Timeline(tuple(reader.steps), tuple(live), loops, conditions, branches, tuple(reader.spans))


def buffers_by_entry(module: ir.Module, target: Target) -> list[tuple[LiveBuffer, ...]]:
    """The buffers of each entry on a clock of its own; a state with all that touch it in any entry."""
    clocks = [read_clock(replace(module, entries=(entry,)), target).buffers for entry in module.entries]
    touching: dict[str, Touches] = {}
    for live in (live for clock in clocks for live in clock if _is_state(live)):
        touching[live.buffer.name] = united(touching.get(live.buffer.name, ()), live.touches)
    return [
        tuple(
            replace(live, touches=touching[live.buffer.name]) if _is_state(live) else live for live in clock
        )
        for clock in clocks
    ]


def _is_state(live: LiveBuffer) -> bool:
    return live.allocation is not None and ir.border_of(live.allocation) is ir.Border.STATE


def _require_state(definition: ir.BufferParameter | ir.Allocate, entry: ir.PrimFunc) -> None:
    """Two entries have no buffer of one name, but for states (`own_names`)."""
    if ir.border_of(definition) is not ir.Border.STATE:
        raise InternalError(f"'{definition.buffer.name}' of '{entry.name}' has the name of another's buffer")


@dataclass(slots=True)
class _Reader(Interpreter):
    kernels: dict[str, ir.PrimFunc]
    clocks: dict[str, BodyClock]
    entry: ir.PrimFunc
    table: TouchTable
    tick: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    loops: list[Loop] = field(default_factory=list[Loop])
    conditions: list[Condition] = field(default_factory=list[Condition])
    branches: list[Branch] = field(default_factory=list[Branch])
    numbers: Definitions = field(default_factory=Definitions)
    num_loops: int = 0  # around the statement
    allocations: list[ir.Allocate] = field(default_factory=list[ir.Allocate])
    arena_of: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    lifetimes: Needs = field(default_factory=Needs)
    touches: dict[str, Touches] = field(default_factory=dict[str, Touches])
    spans: list[Span] = field(default_factory=list[Span])

    def read(self, entry: ir.PrimFunc) -> tuple[ir.BufferParameter | ir.Allocate, ...]:
        """What an entry defines; its ticks follow those of the entries before."""
        self.entry, self.allocations, self.numbers = entry, [], Definitions()
        begin, first = self.tick, len(self.steps)
        self.run(entry.body)
        self.tick = max(self.tick, begin + 1)
        self.spans.append(Span((first, len(self.steps)), (begin, self.tick)))
        definitions = (*entry.buffer_parameters, *self.allocations)
        for definition in definitions:
            self.extend(definition, begin)
        return definitions

    def turns(self, loop: ir.For) -> Iterator[None]:
        """The body once; what was born outside lives for all of it."""
        first, num_allocations, num_steps = self.tick, len(self.allocations), len(self.steps)
        num_conditions = len(self.conditions)
        self.num_loops += 1
        yield
        self.num_loops -= 1
        inside = tuple(allocation.buffer.name for allocation in self.allocations[num_allocations:])
        if len(self.steps) > num_steps:
            steps = (num_steps, len(self.steps) - 1)
            begin, end = map(NumberTexts(self.numbers).text, (loop.begin, loop.end))
            self.loops.append(Loop(steps, inside, loop.variable.name, begin, end))
            for number in range(num_conditions, len(self.conditions)):
                if self.conditions[number].loop is None:  # of no loop inside this one
                    self.conditions[number] = replace(self.conditions[number], loop=steps)
        if loop.kind is ir.LoopKind.PARALLEL and inside:
            raise InternalError(f"buffers are allocated inside the parallel loop '{loop.variable.name}'")
        self.lifetimes.turn((first, self.tick), set(inside))

    def define(self, let: ir.Let) -> None:
        """Loops and branches are told in numbers that names stand for."""
        self.numbers.define(let.variable, let.value)

    def allocate(self, allocate: ir.Allocate) -> None:
        """A buffer is told; who touches it touches its arena."""
        self.allocations.append(allocate)
        if allocate.storage.arena is not None:
            self.arena_of[allocate.buffer.name] = (allocate.storage.arena,)

    def evaluate(self, statement: ir.Statement) -> None:
        if isinstance(statement, ir.View) or stores(statement):
            raise InternalError("the entry touches memory outside of a call")

    def arms(self, branch: ir.If) -> Iterator[ir.Seq]:
        """Both arms, one after the other, behind what is read to choose."""
        self._condition(branch)
        first, number, buffer = len(self.steps), len(self.branches), condition_buffer(branch)
        compared = NumberTexts(self.numbers).compared(branch.condition) if buffer is None else None
        name, none = None if buffer is None else buffer.name, (first, first)
        found = Branch(name, compared, none, none, self.num_loops)
        self.branches.append(found)  # in front of those inside
        yield branch.then
        second = len(self.steps)
        if branch.otherwise is not None:
            yield branch.otherwise
        end = len(self.steps)
        if buffer is None and end == first:
            del self.branches[number]  # it chooses between nothing and nothing
        else:
            self.branches[number] = replace(found, then=(first, second), otherwise=(second, end))

    def _condition(self, branch: ir.If) -> None:
        buffer = condition_buffer(branch)
        if buffer is None:
            if loaded_buffers(branch):
                raise InternalError("the entry reads more than a truth value")
            return
        self.lifetimes.touch(buffer.name, (self.tick, self.tick + 1))
        known = self.touches.get(buffer.name, ())
        self.touches[buffer.name] = united(known, (branches_on(self.entry),))
        self.conditions.append(Condition(buffer.name, self.tick, self.entry.device))
        self.tick += 1

    def call(self, call: ir.Call) -> None:
        """One step, with the ticks of the callee in it."""
        kernel, clock = self.kernels.get(call.callee), self.clocks.get(call.callee)
        num_ticks = 1 if clock is None else clock.num_ticks
        ticks = (self.tick, self.tick + 1 + num_ticks + 1)
        needed = Needs()
        for index, argument in enumerate(call.arguments):
            if not isinstance(argument, ir.Region):
                continue
            name = argument.buffer.name
            interval = ticks if clock is None else _in_call(clock.intervals[index], ticks)
            touches = self.table.of_argument(call, index)
            arenas = self.arena_of.get(name, ())
            for reached in (name, *arenas):
                if arenas:  # held throughout, whenever it is used
                    interval = (ticks[0] + 1, ticks[1] - 1)
                needed.touch(reached, interval)
                self.touches[reached] = united(self.touches.get(reached, ()), touches)
        for name, interval in needed.items():
            self.lifetimes.touch(name, interval)
        device = kernel.device if kernel else self.entry.device
        self.steps.append(Step(len(self.steps), ticks, call, device, tuple(needed.items())))
        self.tick = ticks[1]

    def extend(self, definition: ir.BufferParameter | ir.Allocate, begin: int) -> None:
        """Keeps inputs, outputs and states alive for the application, which touches them on the entry's device.

        Those in a workspace have their bytes even if no step touches them.
        """
        name, border = definition.buffer.name, ir.border_of(definition)
        if border is None or (isinstance(definition, ir.BufferParameter) and name not in self.lifetimes):
            return
        if border is not ir.Border.OUTPUT:
            self.lifetimes.touch(name, (begin, begin + 1))
        if border is not ir.Border.INPUT:
            self.lifetimes.touch(name, (self.tick - 1, self.tick))
        device = self.entry.device
        own = Touch(device, f"the application touches it on device '{device}'")
        self.touches[name] = united(self.touches.get(name, ()), (own,))

    def keep_states(self, definitions: Iterable[ir.BufferParameter | ir.Allocate]) -> None:
        """Lets states live from the first tick to the last, whichever entries touch them."""
        for definition in definitions:
            if ir.border_of(definition) is ir.Border.STATE:
                self.lifetimes.touch(definition.buffer.name, (0, self.tick))


def _in_call(interval: Interval | None, ticks: Interval) -> Interval:
    """When an argument is needed; what the body never touches still has an address, and bytes while it is read."""
    first = ticks[0]
    return (first, first + 1) if interval is None else (first + 1 + interval[0], first + 1 + interval[1])
