"""What a profile says: what each step of a run costs, and what is left for the entry."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.execute.machine import Machine
from bytewright.execute.result import StandIn
from bytewright.record.plan import Plan
from bytewright.show.notebook import Shown


class Unit(StrEnum):
    """What costs are counted in."""

    INSTRUCTIONS = "instructions"
    NANOSECONDS = "nanoseconds"
    CYCLES = "cycles"

    @property
    def shown(self) -> str:
        """What people and programs are told instead: microseconds in place of nanoseconds."""
        return "microseconds" if self is Unit.NANOSECONDS else self.value

    @property
    def scale(self) -> int:
        """How many of these are one of those."""
        return 1000 if self is Unit.NANOSECONDS else 1


class BytesAre(StrEnum):
    """What the bytes of a profile are."""

    MEASURED = "measured"  # every load and store that was executed
    PLANNED = "planned"  # each buffer that a step is given, once


def _no_bytes() -> FrozenMapping[str, int]:
    return FrozenMapping({})


@dataclass(frozen=True, slots=True)
class Cost:
    """What something costs.

    Attributes:
        amount: In the profile's unit.
        read_bytes: By memory.
        written_bytes: The same.
    """

    amount: int = 0
    read_bytes: Mapping[str, int] = field(default_factory=_no_bytes)
    written_bytes: Mapping[str, int] = field(default_factory=_no_bytes)

    def __add__(self, other: "Cost") -> "Cost":
        return _combined(self, other, 1)

    def __sub__(self, other: "Cost") -> "Cost":
        return _combined(self, other, -1)


def _combined(first: Cost, second: Cost, sign: int) -> Cost:
    """The sum of two costs, or their difference, without memories that nothing is left of."""

    def of(mine: Mapping[str, int], others: Mapping[str, int]) -> FrozenMapping[str, int]:
        sums = {name: mine.get(name, 0) + sign * others.get(name, 0) for name in (*mine, *others)}
        return FrozenMapping({name: number for name, number in sums.items() if number})

    return Cost(
        first.amount + sign * second.amount,
        of(first.read_bytes, second.read_bytes),
        of(first.written_bytes, second.written_bytes),
    )


def total_of(costs: Iterable[Cost]) -> Cost:
    """All of them together."""
    return sum(costs, Cost())


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a step costs on one device, all its calls together.

    Attributes:
        step: Its index in the plan.
        device: That of the kernel; or the entry's, for what it does to hand the step over and to wait for it.
        num_calls: How often it was called: more than once in a loop, 0 in an arm that was not taken.
        cost: In the inference that is shown.
        median: Of the amounts in all repetitions; None where one was measured.
    """

    step: int
    device: str
    num_calls: int
    cost: Cost
    median: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceCost:
    """What is left of a device's work without the steps, and all of it.

    Attributes:
        device: Its name; None for all devices, where one clock stands for them.
        entry: What the entry does itself; of another device, what it does for a run besides its steps.
        total: All of it, as measured.
        median_of_entry: Of the entry's amounts in all repetitions; None where one was measured.
    """

    device: str | None
    entry: Cost
    total: Cost
    median_of_entry: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a device did at one time.

    Attributes:
        step: None for the entry.
        began_at: In the profile's unit, from the beginning of the inference; devices that wait stand still.
        cost: What it cost.
    """

    device: str
    step: int | None
    began_at: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Profile(Shown):
    """What one inference of a bundle cost.

    Attributes:
        plan: Of the bundle.
        on: Where it ran.
        board: The emulated board; None elsewhere.
        unit: Of all amounts.
        bytes_are: What bytes are.
        num_repetitions: How many inferences there were, the one that is shown among them.
        steps: In the plan's order, those of a device besides the entry's before what the entry has of them.
        devices: The entry's first.
        events: By device and time.
        stand_in: What differs from the target on the board; None where nothing does.
    """

    plan: Plan
    on: Machine
    board: str | None
    unit: Unit
    bytes_are: BytesAre
    num_repetitions: int
    steps: tuple[StepCost, ...]
    devices: tuple[DeviceCost, ...]
    events: tuple[Event, ...]
    stand_in: StandIn | None = None

    def __repr__(self) -> str:
        total = sum(device.total.amount for device in self.devices)
        return f"Profile({self.plan.model!r} for {self.plan.target}: {total} {self.unit} on {self.board or self.on})"

    def total(self, device: str) -> Cost:
        """All that a device did; of all devices, where one clock stands for them."""
        return next(found.total for found in self.devices if found.device in (device, None))

    def cycles(self, cost: Cost) -> int | None:
        """Those that a core counted; else the estimate for one whose instructions take a cycle each, without waiting.

        To that a byte adds what the target says that it costs in its memory, less 1: at a cost of 1 nothing waits. None
        where no instructions were counted either.
        """
        if self.unit is not Unit.INSTRUCTIONS:
            return cost.amount if self.unit is Unit.CYCLES else None
        reads, writes = cost.read_bytes, cost.written_bytes
        return cost.amount + sum(
            reads.get(memory.name, 0) * (memory.read_cost - 1)
            + writes.get(memory.name, 0) * (memory.write_cost - 1)
            for memory in self.plan.hardware.memories
        )
