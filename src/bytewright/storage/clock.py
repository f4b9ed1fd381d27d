"""The clock: program points of the entry, with calls inlined, and the lifetime of every buffer on it.

A call occupies three ticks: read, body, write. Its inputs die after the body, its results are born in the body, its
scratch lives in the body alone. A buffer that a loop uses but that was born outside lives for the whole loop.
An arena lives in the bodies of the calls that request from it, and from the first to the last of them.
Inputs of the model live from the start, because the application has already written them, and outputs to the end.
Lifetimes are half-open. Beside them stands which devices touch each buffer (`touch.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bytewright.diagnostics import InternalError
from bytewright.ir.border import Border, border_of
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import (
    Access,
    Allocate,
    BufferParameter,
    Call,
    For,
    If,
    Let,
    LoopKind,
    PrimFunc,
    Region,
    Role,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.storage.touch import Touch, Touches, TouchTable, touch_table, united
from bytewright.target.model import Target

TICKS_PER_CALL = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the entry.

    Attributes:
        ticks: Half-open interval on the clock.
        touched: Names of the entry's buffers that the call touches.
    """

    index: int
    ticks: tuple[int, int]
    call: Call
    device: str
    touched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiveBuffer:
    """A buffer of the entry with its lifetime and the devices that touch it."""

    buffer: Buffer
    allocation: Allocate | None
    lower: int
    upper: int
    touches: Touches

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices that touch it, sorted."""
        return tuple(sorted(touch.device for touch in self.touches))


@dataclass(frozen=True, slots=True)
class Timeline:
    """All steps, and all buffers of the entry that are used, in order of allocation; parameters first.

    An arena and what is requested from it are both among them, and a step touches both.
    """

    steps: tuple[Step, ...]
    buffers: tuple[LiveBuffer, ...]

    @property
    def num_ticks(self) -> int:
        """The end of the clock."""
        return self.steps[-1].ticks[1] if self.steps else 0

    def steps_of(self, name: str) -> tuple[int, int]:
        """First and last step that touch a buffer; those that it lives in, if none does."""
        touching = [step.index for step in self.steps if name in step.touched]
        return (touching[0], touching[-1]) if touching else self.steps_alive(name)

    def steps_alive(self, name: str) -> tuple[int, int]:
        """First and last step that a buffer lives in."""
        live = next(live for live in self.buffers if live.buffer.name == name)
        alive = [s.index for s in self.steps if s.ticks[0] < live.upper and live.lower < s.ticks[1]]
        return (alive[0], alive[-1]) if alive else (0, 0)


def read_clock(module: Module, target: Target) -> Timeline:
    """Numbers the program points of the module's entry; the target says which devices there are."""
    entry = module.main
    kernels = {kernel.name: kernel for kernel in module.kernels}
    reader = _Reader(kernels, entry.device, touch_table(module, target))
    reader.sequence(entry.body)
    parameters = entry.buffer_parameters
    allocations = {allocation.buffer.name: allocation for allocation in reader.allocations}
    buffers = [definition.buffer for definition in (*parameters, *reader.allocations)]
    for definition in (*parameters, *reader.allocations):
        reader.extend(definition)
    live = [
        LiveBuffer(
            buffer,
            allocations.get(buffer.name),
            *reader.lifetimes[buffer.name],
            reader.touches[buffer.name],
        )
        for buffer in buffers
        if buffer.name in reader.lifetimes
    ]
    return Timeline(tuple(reader.steps), tuple(live))


@dataclass(slots=True)
class _Reader:
    kernels: dict[str, PrimFunc]
    device: str
    table: TouchTable
    tick: int = 0
    steps: list[Step] = field(default_factory=list[Step])
    allocations: list[Allocate] = field(default_factory=list[Allocate])
    arena_of: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    lifetimes: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    touches: dict[str, Touches] = field(default_factory=dict[str, Touches])

    def sequence(self, sequence: Seq) -> None:
        for statement in sequence.statements:
            self._statement(statement)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case Seq():
                self.sequence(statement)
            case Allocate():
                self.allocations.append(statement)
                if statement.arena is not None:  # who touches the one touches the other
                    self.arena_of[statement.buffer.name] = (statement.arena,)
            case Call():
                self._call(statement)
            case For():
                self._loop(statement)
            case If():
                self.sequence(statement.then)
                if statement.otherwise is not None:
                    self.sequence(statement.otherwise)
            case Let():
                pass
            case Store() | View():
                raise InternalError("the entry touches memory outside of a call")

    def _loop(self, loop: For) -> None:
        first, num_allocations = self.tick, len(self.allocations)
        self.sequence(loop.body)
        born_inside = {allocation.buffer.name for allocation in self.allocations[num_allocations:]}
        if loop.kind is LoopKind.PARALLEL and born_inside:
            raise InternalError(f"buffers are allocated inside the parallel loop '{loop.variable.name}'")
        for name, (lower, upper) in self.lifetimes.items():
            if name not in born_inside and upper > first:
                self.lifetimes[name] = (min(lower, first), max(upper, self.tick))

    def _call(self, call: Call) -> None:
        kernel = self.kernels.get(call.callee)
        parameters = kernel.parameters if kernel else ()
        touched: list[str] = []
        for index, argument in enumerate(call.arguments):
            if not isinstance(argument, Region):
                continue
            parameter = parameters[index] if index < len(parameters) else None
            name = argument.buffer.name
            lower, upper = _interval(parameter if isinstance(parameter, BufferParameter) else None)
            touches = self.table.of_argument(call, index)
            for reached in (name, *self.arena_of.get(name, ())):
                self._touch(reached, self.tick + lower, self.tick + upper)
                self.touches[reached] = united(self.touches.get(reached, ()), touches)
                touched.append(reached)
        ticks = (self.tick, self.tick + TICKS_PER_CALL)
        device = kernel.device if kernel else self.device
        self.steps.append(Step(len(self.steps), ticks, call, device, tuple(dict.fromkeys(touched))))
        self.tick = ticks[1]

    def extend(self, definition: BufferParameter | Allocate) -> None:
        """Keeps inputs and outputs alive for the application, which touches them on the entry's device.

        Those in a workspace have their bytes even if no step touches them.
        """
        name, border = definition.buffer.name, border_of(definition)
        if border is None or (isinstance(definition, BufferParameter) and name not in self.lifetimes):
            return
        start, end = (0, 1) if border is Border.INPUT else (max(self.tick - 1, 0), max(self.tick, 1))
        self._touch(name, start, end)
        own = Touch(self.device, f"the application touches it on device '{self.device}'")
        self.touches[name] = united(self.touches.get(name, ()), (own,))

    def _touch(self, name: str, lower: int, upper: int) -> None:
        known = self.lifetimes.get(name, (lower, upper))
        self.lifetimes[name] = (min(known[0], lower), max(known[1], upper))


def _interval(parameter: BufferParameter | None) -> tuple[int, int]:
    """When, within the three ticks of a call, an argument is alive; unknown parameters live throughout."""
    if parameter is None:
        return 0, TICKS_PER_CALL
    if parameter.role is Role.SCRATCH:
        return 1, 2
    match parameter.access:
        case Access.READ:
            return 0, 2
        case Access.WRITE:
            return 1, TICKS_PER_CALL
        case Access.READ_WRITE:
            return 0, TICKS_PER_CALL
