"""What a profile says: a line for each step in the plan's order, one for the entry, and the total."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bytewright.execute.profile.pictures import cost_charts
from bytewright.execute.profile.result import BytesAre, Cost, DeviceCost, Profile, StepCost, Unit
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.show.view import (
    ABSENT,
    Fact,
    Facts,
    Field,
    Table,
    View,
    body_of,
    freeze,
    keys,
    table_of,
)

_MOST_OF_OPERATORS = 40


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the table.

    Attributes:
        device: None where one clock stands for all.
        cost: Of the line.
        total: What shares are of.
        median: Of the amounts in all repetitions.
        step: None for what is left of a device, and for all of it.
        what: The kernel; or "entry", or "total".
    """

    device: str | None
    cost: Cost
    total: Cost
    median: int | None
    what: str
    step: StepCost | None = None


def kernel_text(plan: Plan, step: PlannedStep, device: str) -> str:
    """`conv2d_0`: a kernel without the model's name; of a device that hands it over, that."""
    kernel = step.kernel.removeprefix(f"{plan.model}_")
    return kernel if device == step.device else f"hand-over of {kernel}"


def profile_view(profile: Profile) -> View:
    """The table, what it is of and what its figures mean; docs/profile.md says what each key means."""
    memories = profile.plan.hardware.memories
    costs = table_of(None, "memories", memories, *keys(("name", "read_cost", "write_cost")))
    head = Fact(
        data=freeze(
            {
                "model": profile.plan.model,
                "target": profile.plan.hardware.name,
                "on": str(profile.on),
                "board": profile.board,
                "stand_in": None if profile.stand_in is None else profile.stand_in.document,
                "unit": profile.unit.shown,
                "bytes": profile.bytes_are.value,
                "repetitions": profile.num_repetitions,
            }
        )
    )
    notes = tuple(Fact((note,)) for note in _notes(profile))
    sections = (Facts((head,)), *cost_charts(profile), _costs(profile), costs, Facts(notes))
    return View(_title(profile), sections, is_listing=True)


def _title(profile: Profile) -> str:
    of = f"{profile.plan.model} for {profile.plan.hardware.name}"
    if profile.unit is Unit.INSTRUCTIONS:
        board = profile.board if profile.stand_in is None else profile.stand_in.text
        return f"{of}: instructions of inference {profile.num_repetitions} on {board}"
    if profile.num_repetitions == 1:
        return f"{of}: {profile.unit.shown} of one inference on {profile.on}"
    which = "the inference with the median time"
    return f"{of}: {profile.unit.shown} of {which}, of {profile.num_repetitions} on {profile.on}"


def _costs(profile: Profile) -> Table:
    """Steps, what is left of each device, and the total."""
    plan = profile.plan
    steps = [
        _Line(
            line.device,
            line.cost,
            profile.total(line.device),
            line.median,
            kernel_text(plan, plan.steps[line.step], line.device),
            line,
        )
        for line in profile.steps
    ]

    def rest(what: str, device: DeviceCost) -> _Line:
        if what == "entry":
            return _Line(device.device, device.entry, device.total, device.median_of_entry, what)
        return _Line(device.device, device.total, device.total, device.total.amount, what)

    cells = [*_of_step(profile), *_of_cost(profile)]
    bodies = [body_of("steps", steps, cells)]
    bodies += [
        body_of(what, [rest(what, device) for device in profile.devices], cells)
        for what in ("entry", "total")
    ]
    return Table("Costs", tuple(field.column for field in cells), tuple(bodies))


def _of_step(profile: Profile) -> Iterator[Field[_Line]]:
    """Which step a line is of; what is left of a device is of none."""
    plan = profile.plan
    has_calls = any(line.num_calls != 1 for line in profile.steps)
    has_devices = len({line.device for line in profile.steps} | {plan.device.name}) > 1

    def planned(line: _Line, name: str) -> Any:
        return ABSENT if line.step is None else getattr(plan.steps[line.step.step], name)

    def operators(line: _Line) -> object:
        found = planned(line, "operators")
        if found is ABSENT:
            return ABSENT
        text = " + ".join(found) or "-"
        return text if len(text) <= _MOST_OF_OPERATORS else f"{found[0]} + {len(found) - 1} more"

    def device(line: _Line) -> str:
        return line.device or ("" if line.what == "total" else plan.device.name)

    yield Field("step", "step", lambda line: line.step.step if line.step else ABSENT, is_number=True)
    yield Field("operators", None, operators)
    yield Field("kernel", None, lambda line: line.what)
    yield Field("device" if has_devices else None, None, device)
    yield Field(None, "device", lambda line: line.device)
    yield from keys(("kernel", "operators"), planned)
    yield Field(
        None, "is_hand_over", lambda line: line.device != planned(line, "device") if line.step else ABSENT
    )
    calls = "calls" if has_calls else None
    yield Field(calls, "calls", lambda line: line.step.num_calls if line.step else ABSENT, is_number=True)
    yield Field(None, "when", lambda line: plan.surroundings(line.step.step) if line.step else ABSENT)


def _of_cost(profile: Profile) -> Iterator[Field[_Line]]:
    """What a line costs."""
    unit = profile.unit
    is_counted = unit is Unit.INSTRUCTIONS
    short = "us" if unit is Unit.NANOSECONDS else unit.shown
    has_medians = not is_counted and profile.num_repetitions > 1

    def cycles(line: _Line) -> int | None:
        return profile.cycles(line.cost)

    def amount(number: int | None) -> object:
        return _us(number) if unit is Unit.NANOSECONDS else "" if number is None else number

    yield Field(None, "instructions", lambda line: line.cost.amount if is_counted else None)
    yield Field(None, "microseconds", lambda line: line.cost.amount / 1000 if short == "us" else None)
    yield Field(short, None, lambda line: amount(line.cost.amount), is_number=True)
    yield Field("%", None, lambda line: _percent(line.cost.amount, line.total.amount), is_number=True)
    yield Field(None, "share", lambda line: _share(line.cost.amount, line.total.amount))
    median = f"median {short}" if has_medians else None
    yield Field(median, None, lambda line: amount(line.median), is_number=True)
    yield Field(None, "median_microseconds", lambda line: _median(line, unit, Unit.NANOSECONDS))
    yield Field(None, "median_cycles", lambda line: _median(line, unit, Unit.CYCLES))
    for name, is_written in _memories(profile):
        yield Field(
            f"{name} {'written' if is_written else 'read'}",
            None,
            lambda line, name=name, is_written=is_written: (
                line.cost.written_bytes if is_written else line.cost.read_bytes
            ).get(name, 0),
            is_number=True,
        )
    yield Field(None, "memories", lambda line: _by_memory(line.cost))
    yield Field("cycles" if is_counted else None, "cycles", cycles, is_number=True)
    yield Field(
        "%" if is_counted else None,
        None,
        lambda line: _percent(cycles(line) or 0, profile.cycles(line.total) or 0),
        is_number=True,
    )


def _memories(profile: Profile) -> list[tuple[str, bool]]:
    """Memories of which anything is read, and of which anything is written: those of the target first."""
    totals = [line.total for line in profile.devices]
    touched = {name for cost in totals for name in (*cost.read_bytes, *cost.written_bytes)}
    known = [memory.name for memory in profile.plan.hardware.memories]
    names = [*(name for name in known if name in touched), *sorted(touched - set(known))]
    return [
        (name, is_written)
        for name in names
        for is_written in (False, True)
        if any(name in (cost.written_bytes if is_written else cost.read_bytes) for cost in totals)
    ]


def _by_memory(cost: Cost) -> list[dict[str, object]]:
    return [
        {
            "name": name,
            "read_bytes": cost.read_bytes.get(name, 0),
            "written_bytes": cost.written_bytes.get(name, 0),
        }
        for name in sorted({*cost.read_bytes, *cost.written_bytes})
    ]


def _median(line: _Line, unit: Unit, shown: Unit) -> object:
    """The median of a profile in the unit that is shown."""
    if line.what == "total" and line.step is None:
        return ABSENT
    if line.median is None or unit is not shown:
        return None
    return line.median / unit.scale if unit.scale > 1 else line.median


def _us(nanoseconds: int | None) -> str:
    return "" if nanoseconds is None else f"{nanoseconds / 1000:.1f}"


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"


def _notes(profile: Profile) -> Iterator[str]:
    yield "entry: what the run does besides its steps"
    if profile.bytes_are is BytesAre.MEASURED:
        yield "bytes: loaded and stored, each time; fetches of instructions are not among them"
    else:
        yield "bytes: those of the buffers that a step is given, each once"
    if profile.unit is Unit.INSTRUCTIONS:
        costly = [m for m in profile.plan.hardware.memories if (m.read_cost, m.write_cost) != (1, 1)]
        prices = ", ".join(f"{m.name} {m.read_cost - 1}/{m.write_cost - 1}" for m in costly)
        yield (
            "cycles: an estimate, instructions and what the target's costs add for a byte read/written: "
            f"{prices or 'nothing'}"
        )
    for segment in profile.plan.segments:
        first, last = segment.steps
        yield f"steps {first} to {last} run row by row: a line is all calls of a step"
