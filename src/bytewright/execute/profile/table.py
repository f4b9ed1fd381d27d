"""A profile for people: a line for each step in the plan's order, one for the entry, and the total."""

from collections.abc import Iterable, Iterator, Sequence

from bytewright.execute.profile.result import BytesAre, Cost, Profile, StepCost, Unit
from bytewright.record.plan import Plan, PlannedStep

_MOST_OF_OPERATORS = 40


def kernel_text(plan: Plan, step: PlannedStep, device: str) -> str:
    """`conv2d_0`: a kernel without the model's name; of a device that hands it over, that."""
    kernel = step.kernel.removeprefix(f"{plan.model}_")
    return kernel if device == step.device else f"hand-over of {kernel}"


def profile_text(profile: Profile) -> str:
    """The table with what it is of above it, and below it what its figures mean."""
    return "\n".join([_title(profile), "", *_table(profile), "", *_notes(profile)])


def _title(profile: Profile) -> str:
    of = f"{profile.plan.model} for {profile.plan.hardware.name}"
    if profile.unit is Unit.INSTRUCTIONS:
        return f"{of}: instructions of inference {profile.num_repetitions} on {profile.board}"
    if profile.num_repetitions == 1:
        return f"{of}: microseconds of one inference on {profile.on}"
    return f"{of}: microseconds of the inference with the median time, of {profile.num_repetitions} on {profile.on}"


def _table(profile: Profile) -> Iterator[str]:
    plan, memories = profile.plan, _memories(profile)
    has_calls = any(line.num_calls != 1 for line in profile.steps)
    has_devices = len({line.device for line in profile.steps} | {plan.device.name}) > 1
    is_counted = profile.unit is Unit.INSTRUCTIONS
    has_medians = not is_counted and profile.num_repetitions > 1

    def figures(cost: Cost, total: Cost, median: int | None) -> list[str]:
        cells = [str(cost.amount) if is_counted else _us(cost.amount), _share(cost.amount, total.amount)]
        cells += [_us(median)] if has_medians and median is not None else [""] * has_medians
        for name, is_written in memories:
            cells.append(str((cost.written_bytes if is_written else cost.read_bytes).get(name, 0)))
        cycles, total_cycles = profile.cycles(cost), profile.cycles(total)
        return cells if cycles is None else [*cells, str(cycles), _share(cycles, total_cycles or 0)]

    def front(step: str, operators: str, kernel: str, device: str, calls: str) -> list[str]:
        return [step, operators, kernel, *([device] if has_devices else []), *([calls] if has_calls else [])]

    head = [*front(">step", "operators", "kernel", "device", ">calls")]
    head += [">instructions" if is_counted else ">us", ">%"]
    head += [">median us"] if has_medians else []
    head += [f">{name} {'written' if is_written else 'read'}" for name, is_written in memories]
    head += [">cycles", ">%"] if is_counted else []
    rows = [
        [*front(*_of_step(plan, line)), *figures(line.cost, profile.total(line.device), line.median)]
        for line in profile.steps
    ]
    for what in ("entry", "total"):
        for line in profile.devices:
            cost = line.entry if what == "entry" else line.total
            name = line.device or ("" if what == "total" else plan.device.name)
            median = cost.amount if what == "total" else line.median_of_entry
            rows.append([*front("", "", what, name, ""), *figures(cost, line.total, median)])
    yield from _aligned(head, rows)


def _of_step(plan: Plan, line: StepCost) -> tuple[str, str, str, str, str]:
    step = plan.steps[line.step]
    operators = " + ".join(step.operators) or "-"
    if len(operators) > _MOST_OF_OPERATORS:
        operators = f"{step.operators[0]} + {len(step.operators) - 1} more"
    kernel = kernel_text(plan, step, line.device)
    return str(line.step), operators, kernel, line.device, str(line.num_calls)


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


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds / 1000:.1f}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "0.0"


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Columns that are as wide as they have to be; those marked `>` are numbers. Above the totals is a line."""
    lines = [[cell.removeprefix(">") for cell in head], *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    is_first_total = True
    for line in lines:
        if line[2] == "total" and is_first_total:
            yield "-" * (sum(widths) + 2 * (len(widths) - 1))
            is_first_total = False
        cells = (
            cell.rjust(width) if name.startswith(">") else cell.ljust(width)
            for cell, width, name in zip(line, widths, head, strict=True)
        )
        yield "  ".join(cells).rstrip()


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
