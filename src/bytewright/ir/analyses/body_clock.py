"""When a kernel needs what it is given: the ticks of its body, with the bodies of its callees in their places.

A statement that touches memory is a tick, and what it reads and writes coexists in it. A callee's ticks stand where
it is called, to any depth. What a loop uses is needed for the whole loop, because another turn may come round; scratch
that the loop calls private is not, because each turn begins without it. Both branches of a condition take time, one
after the other. A parameter is needed from the first to the last tick that touches it: before the first one nothing
of it can be lost that the kernel needs, and what its caller still needs afterwards is the caller's own touch. So
partial writes, and writes in one branch, need no rule of their own.

Ticks that tell nothing apart are left out: there is one for each set of parameters that are needed at once, and a
kernel of one loop nest has a single one. What cannot be looked into needs all it is given throughout: functions that
the module does not hold or only declares, jobs, and kernels of devices that run no C, where the order of the
statements promises nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.walk import loaded_buffers, regions, stored_buffers
from bytewright.target.model import Target

Interval = tuple[int, int]  # half-open


class Needs(dict[str, Interval]):
    """When each buffer is needed, by name: from the first tick that touches it to the last."""

    def touch(self, name: str, interval: Interval) -> None:
        """Ticks in which the buffer is touched."""
        known = self.get(name, interval)
        self[name] = (min(known[0], interval[0]), max(known[1], interval[1]))

    def turn(self, loop: Interval, own: Collection[str]) -> None:
        """What a loop uses is needed for all of it, but for what each turn has for its own."""
        for name, (_, upper) in self.items():
            if upper > loop[0] and name not in own:
                self.touch(name, loop)


@dataclass(frozen=True, slots=True)
class BodyClock:
    """The ticks of one kernel's body.

    Attributes:
        num_ticks: At least one.
        intervals: For each parameter when it is needed; None for scalars, and for what the body never touches.
    """

    num_ticks: int
    intervals: tuple[Interval | None, ...]


def body_clocks(module: ir.Module, target: Target) -> dict[str, BodyClock]:
    """The clocks of all kernels of a module, by name."""
    clocks: dict[str, BodyClock] = {}
    for kernel in module.kernels:  # callees stand before their callers
        clocks[kernel.name] = body_clock(kernel, target, clocks)
    return clocks


def body_clock(kernel: ir.PrimFunc, target: Target, clocks: Mapping[str, BodyClock]) -> BodyClock:
    """The clock of one kernel, from those of its callees."""
    device = target.find_device(kernel.device)
    names = [parameter.name for parameter in kernel.buffer_parameters]
    num_ticks, intervals = 1, dict.fromkeys(names, (0, 1))
    if device is not None and device.runs_c and kernel.external is None and kernel.job is None:
        reader = _Ticks(clocks)
        reader.run(kernel.body)
        needed = {name: reader.needs[name] for name in names if name in reader.needs}
        num_ticks, intervals = _condensed(needed)
    return BodyClock(num_ticks, tuple(intervals.get(parameter.name) for parameter in kernel.parameters))


def are_apart(first: Interval, second: Interval) -> bool:
    """Whether no tick is in both."""
    return first[1] <= second[0] or second[1] <= first[0]


def _condensed(intervals: Mapping[str, Interval]) -> tuple[int, dict[str, Interval]]:
    """The same order in the fewest ticks: a new one begins only where something begins after something has ended."""
    ends, begins = 0, 1  # what ends at a tick has gone when something begins there
    events = sorted(
        [(upper, ends, name) for name, (_, upper) in intervals.items()]
        + [(lower, begins, name) for name, (lower, _) in intervals.items()]
    )
    tick, has_ended = 0, False
    lowers: dict[str, int] = {}
    found: dict[str, Interval] = {}
    for _, kind, name in events:
        if kind == ends:
            has_ended = True
            found[name] = (lowers[name], tick + 1)
        else:
            tick += has_ended
            has_ended = False
            lowers[name] = tick
    return tick + 1, found


@dataclass(slots=True)
class _Ticks(Interpreter):
    """Numbers the statements of one body; names are those of its buffers, whatever they are."""

    clocks: Mapping[str, BodyClock]
    tick: int = 0
    needs: Needs = field(default_factory=Needs)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # To loops that were read: nothing outside of them uses it.
    private: set[str] = field(default_factory=set[str])

    def evaluate(self, statement: ir.Statement) -> None:
        """One tick that touches what the statement loads and stores; none if it does neither."""
        touched = (*loaded_buffers(statement), *stored_buffers(statement))
        for buffer in touched:
            self._touch(buffer.name, self.tick, self.tick + 1)
        self.tick += bool(touched)

    def turns(self, loop: ir.For) -> Iterator[None]:
        """The body once; in C, the end is computed again before each turn."""
        first = self.tick - bool(loaded_buffers(loop))
        yield
        self.private.update(buffer.name for buffer in loop.private)
        self.needs.turn((first, self.tick), self.private)

    def show(self, view: ir.View) -> None:
        """A view stands for what it shows."""
        names = (name for region in regions(view) for name in self._roots(region.buffer.name))
        self.shown[view.buffer.name] = tuple(dict.fromkeys(names))

    def execute(self, call: ir.InstructionCall) -> None:
        """One tick, of an instruction that touches memory."""
        if call.touches_memory:
            self.evaluate(call)

    def call(self, call: ir.Call) -> None:
        """The ticks of the callee."""
        clock = self.clocks.get(call.callee)
        for index, argument in enumerate(call.arguments):
            if not isinstance(argument, ir.Region):
                continue
            interval = (0, 1) if clock is None else clock.intervals[index]
            if interval is not None:
                self._touch(argument.buffer.name, self.tick + interval[0], self.tick + interval[1])
        self.tick += 1 if clock is None else clock.num_ticks

    def _touch(self, name: str, lower: int, upper: int) -> None:
        for root in self._roots(name):
            self.needs.touch(root, (lower, upper))

    def _roots(self, name: str) -> tuple[str, ...]:
        """What a name stands for: what a view shows, or the buffer itself."""
        return self.shown.get(name, (name,))
