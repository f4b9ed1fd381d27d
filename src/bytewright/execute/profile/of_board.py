"""A profile from what the instruction counter wrote of steps."""

from collections import Counter
from collections.abc import Iterable, Sequence

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
from bytewright.execute.result import BatchResult, DeviceWork, StepWork
from bytewright.record.plan import Plan


def profile_of_board(plan: Plan, result: BatchResult) -> Profile:
    """The profile of the last inference that a board executed."""
    return Profile(
        plan=plan,
        on=result.on,
        board=result.board,
        stand_in=result.stand_in,
        unit=Unit.INSTRUCTIONS,
        bytes_are=BytesAre.MEASURED,
        num_repetitions=len(result.instructions),
        steps=tuple(_steps(plan, result.work)),
        devices=tuple(map(_device, result.work)),
        events=tuple(_events(result.work)),
    )


def _cost(work: StepWork | DeviceWork) -> Cost:
    loaded, stored = FrozenMapping(dict(work.loaded_bytes)), FrozenMapping(dict(work.stored_bytes))
    return Cost(work.instructions, loaded, stored)


def _device(work: DeviceWork) -> DeviceCost:
    """Whatever was not done for a step was done for the entry."""
    total = _cost(work)
    return DeviceCost(
        work.device, total - total_of(_cost(call) for call in work.calls if call.step is not None), total
    )


def _steps(plan: Plan, works: Sequence[DeviceWork]) -> Iterable[StepCost]:
    costs: dict[tuple[int, str], Cost] = {}
    called: dict[tuple[int, str], Counter[int]] = {}
    for work in works:
        for call in work.calls:
            if call.step is not None:
                key = (call.step, work.device)
                costs[key] = costs.get(key, Cost()) + _cost(call)
                called.setdefault(key, Counter())[call.address] += 1
    entry = plan.device.name
    for step in plan.steps:
        for device in dict.fromkeys((step.device, entry)):
            key = (step.index, device)
            if key in costs or device == step.device:
                # A step may call more than its kernel: what obtains its scratch, a driver's hooks.
                num_calls = max(called.get(key, Counter()).values(), default=0)
                yield StepCost(step.index, device, num_calls, costs.get(key, Cost()))


def _events(works: Sequence[DeviceWork]) -> list[Event]:
    """By device. Where another device works longer than the entry's waits, the entry's stands still."""
    own, *others = works
    jobs = sorted(
        ((job.began_at, work.device, job) for work in others for job in work.calls),
        key=lambda found: found[0],
    )
    events: dict[str, list[Event]] = {work.device: [] for work in works}
    ends: Counter[str] = Counter()
    shift = 0
    for step, began_at, cost in _of_entry(own):
        events[own.device].append(Event(own.device, step, began_at + shift, cost))
        end = began_at + cost.amount + shift
        while jobs and jobs[0][0] < began_at + cost.amount:
            at, device, job = jobs.pop(0)
            begin = max(at + shift, ends[device])
            events[device].append(Event(device, job.step, begin, _cost(job)))
            ends[device] = begin + job.instructions
        shift += max(0, max(ends.values(), default=0) - end)
    return [event for of_device in events.values() for event in of_device]


def _of_entry(work: DeviceWork) -> Iterable[tuple[int | None, int, Cost]]:
    """The calls of the entry's device with what lies between them: step, when it began, cost.

    Bytes of the entry are known as a sum, which is with the first of its pieces.
    """
    left = _device(work).entry
    end = 0
    for call in work.calls:
        if call.step is None:
            continue
        if call.began_at > end:
            yield None, end, Cost(call.began_at - end, left.read_bytes, left.written_bytes)
            left = Cost()
        yield call.step, call.began_at, _cost(call)
        end = call.began_at + call.instructions
    if work.instructions > end:
        yield None, end, Cost(work.instructions - end, left.read_bytes, left.written_bytes)
