"""A profile from the times between the kernels, with the bytes of the plan."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.execute.profile.result import (
    BytesAre,
    Cost,
    DeviceCost,
    Event,
    Profile,
    StepCost,
    Unit,
    total_of,
)
from bytewright.execute.result import BatchResult, TimedRun
from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan

# What the application brings lies wherever it has it.
CALLER = "(caller)"


def profile_of_clock(plan: Plan, result: BatchResult, unit: Unit) -> Profile:
    """The profile of the run with the median time, of two the shorter one, by a clock that counts in this unit."""
    runs = sorted(result.timed_runs, key=lambda run: run.ended_at - run.began_at)
    shown = runs[(len(runs) - 1) // 2]
    times = [_times(plan, run) for run in runs]
    medians = {step.index: _median(found[step.index] for found in times) for step in plan.steps}
    of_entry = _median(
        run.ended_at - run.began_at - found.total() for run, found in zip(runs, times, strict=True)
    )
    num_calls = Counter(step for step, _ in shown.marks)
    steps = tuple(
        StepCost(
            step.index,
            step.device,
            num_calls[step.index],
            Cost(_times(plan, shown)[step.index], *_bytes_of(plan, step, num_calls[step.index])),
            medians[step.index],
        )
        for step in plan.steps
    )
    of_steps = total_of(step.cost for step in steps)
    total = Cost(shown.ended_at - shown.began_at, of_steps.read_bytes, of_steps.written_bytes)
    return Profile(
        plan=plan,
        on=result.on,
        board=None,
        unit=unit,
        bytes_are=BytesAre.PLANNED,
        num_repetitions=len(runs),
        steps=steps,
        devices=(DeviceCost(None, total - of_steps, total, of_entry),),
        events=tuple(_events(plan, shown, steps)),
    )


def _median(times: Iterable[int]) -> int:
    return round(statistics.median(times))


def _intervals(plan: Plan, run: TimedRun) -> Iterator[tuple[int | None, int, int]]:
    """What ran when: a step or None, and when it began and ended, from the beginning of the run."""
    marks = [(None, run.began_at), *run.marks, (None, run.ended_at)]
    for (step, begin), (_, end) in pairwise(marks):
        is_step = step is not None and step < len(plan.steps)
        if is_step or begin < end:
            yield step if is_step else None, begin - run.began_at, end - run.began_at


def _times(plan: Plan, run: TimedRun) -> Counter[int]:
    """The time of each step."""
    times: Counter[int] = Counter()
    for step, begin, end in _intervals(plan, run):
        if step is not None:
            times[step] += end - begin
    return times


def _events(plan: Plan, run: TimedRun, steps: tuple[StepCost, ...]) -> Iterator[Event]:
    """The bytes of a step are with the first of its calls."""
    left = {step.step: step.cost for step in steps}
    for step, begin, end in _intervals(plan, run):
        cost = Cost() if step is None else left.pop(step, Cost())
        device = plan.device.name if step is None else plan.steps[step].device
        yield Event(device, step, begin, Cost(end - begin, cost.read_bytes, cost.written_bytes))


def _bytes_of(
    plan: Plan, step: PlannedStep, num_calls: int
) -> tuple[FrozenMapping[str, int], FrozenMapping[str, int]]:
    """Bytes by memory that a step reads and writes if it touches each byte of its buffers once.

    A segment by rows has each row once for all calls of a step, any other loop all of the buffers in each turn.
    """
    turns = min(num_calls, 1) if plan.is_by_rows(step.index) else num_calls

    def by_memory(names: Iterable[str]) -> FrozenMapping[str, int]:
        found: Counter[str] = Counter()
        for buffer in (plan.buffers[name] for name in names):
            memory = _memory_of(plan, buffer)
            if memory is not None:
                whole = buffer.size_bytes if buffer.ring is None else buffer.ring.tensor_bytes
                found[memory] += turns * whole
        return FrozenMapping({name: number for name, number in found.items() if number})

    return by_memory((*step.reads, *step.scratch)), by_memory((*step.writes, *step.scratch))


def _memory_of(plan: Plan, buffer: PlannedBuffer) -> str | None:
    """The memory that a buffer lies in."""
    if buffer.place.kind is PlaceKind.CALLER:
        return CALLER
    pool = plan.pools.get(buffer.place.name)
    return None if pool is None else pool.memory
