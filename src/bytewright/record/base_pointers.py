"""Through which of its ports a device reaches what its command streams work on.

A driver sets once, for all jobs, which port each base pointer goes through. So no plan may have what one base pointer
is given behind one port in one job, and behind another in the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.record.devices import DeviceKind, PlannedDevice
from bytewright.record.plan import Plan

STREAM = -1
"""The number that stands for the pointer to the stream itself."""
CALLER = "what the application passes to a run"


@dataclass(frozen=True, slots=True)
class Given:
    """What a base pointer is given in one step.

    Attributes:
        memory: The memory that it lies in; None if the application says.
        port: By which the device reaches that; None if the target names none.
    """

    step: int
    buffer: str
    memory: str | None
    port: str | None


def base_pointers(plan: Plan, device: PlannedDevice) -> dict[int, list[Given]]:
    """All that each base pointer is given, by its number. Where a stream uses none, it stands there itself."""
    found: dict[int, list[Given]] = {}
    for step in plan.steps:
        if step.device != device.name:
            continue
        for number, span in enumerate(step.spans, STREAM):
            if number == STREAM or span.buffer != step.spans[0].buffer:
                memory, port = _memory(plan, device, span.buffer)
                found.setdefault(number, []).append(Given(step.index, span.buffer, memory, port))
    return dict(sorted(found.items()))


def _memory(plan: Plan, device: PlannedDevice, buffer: str) -> tuple[str | None, str | None]:
    known, hardware = plan.buffers.get(buffer), plan.hardware.find_device(device.name)
    pool = None if known is None else plan.pools.get(known.place.name)
    if pool is None or hardware is None:  # the application's, or no sound plan
        return None, None
    reach = hardware.find_reach(pool.memory)
    return pool.memory, None if reach is None else reach.port


def contradicting_ports(plan: Plan) -> Iterator[tuple[str, Given, Given]]:
    """Base pointers that need two ports: in words, with the first step of each."""
    for device in plan.devices.values():
        if device.kind is not DeviceKind.STREAM:
            continue
        for number, given in base_pointers(plan, device).items():
            first: dict[str, Given] = {}
            for each in given:
                if each.port is not None:
                    first.setdefault(each.port, each)
            if len(first) > 1:
                one, other, *_ = first.values()
                what = "its streams" if number == STREAM else f"region {number} of its streams"
                yield f"device '{device.name}' reaches {what} through one port", one, other


def require_ports(plan: Plan) -> None:
    """Refuses a plan for which no setting of a driver is right.

    Raises:
        CompileError: BW746, for each base pointer.
    """
    diagnostics: list[Diagnostic] = []
    for what, one, other in contradicting_ports(plan):
        places = ", ".join(
            f"'{each.buffer}' of step {each.step} in '{each.memory}' behind '{each.port}'"
            for each in (one, other)
        )
        help_text = f"put both into one memory: --pin '{other.buffer}={plan.buffers[one.buffer].place.name}'"
        diagnostics.append(Diagnostic("BW746", f"{what}, and the plan needs two: {places}", help=help_text))
    if diagnostics:
        raise CompileError(diagnostics)
