"""A profile as a trace that chrome://tracing and Perfetto show: a lane for each device.

The format is the Trace Event Format of Chromium: complete events ("ph": "X") with `ts` and `dur`, and metadata events
("ph": "M") that name the lanes. Its unit of time is a microsecond; on a board an
instruction or a cycle stands for one.
"""

from typing import Any

from bytewright.execute.profile.result import Event, Profile
from bytewright.execute.profile.view import kernel_text

_PROCESS = 1


def trace_document(profile: Profile) -> dict[str, Any]:
    """The trace."""
    lanes = {
        device: number for number, device in enumerate(dict.fromkeys(e.device for e in profile.events), 1)
    }
    place = profile.board or profile.on
    events = [_name("process_name", 0, f"{profile.plan.model} for {profile.plan.hardware.name} on {place}")]
    events += [_name("thread_name", number, device) for device, number in lanes.items()]
    events += [_event(profile, event, lanes[event.device]) for event in profile.events]
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"unit": profile.unit.shown}}


def _name(kind: str, lane: int, text: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": lane, "args": {"name": text}}


def _event(profile: Profile, event: Event, lane: int) -> dict[str, Any]:
    scale = profile.unit.scale
    arguments: dict[str, Any] = {}
    name = "entry"
    if event.step is not None:
        step = profile.plan.steps[event.step]
        name = kernel_text(profile.plan, step, event.device)
        arguments = {"step": event.step, "operators": " + ".join(step.operators)}
    for what, num_bytes in (("read", event.cost.read_bytes), ("written", event.cost.written_bytes)):
        arguments |= {f"{memory} B {what}": number for memory, number in sorted(num_bytes.items())}
    cycles = profile.cycles(event.cost)
    if cycles is not None:
        arguments["cycles"] = cycles
    times = {"ts": event.began_at, "dur": event.cost.amount}
    return {
        "name": name,
        "cat": "entry" if event.step is None else "step",
        "ph": "X",
        **(times if scale == 1 else {key: number / scale for key, number in times.items()}),
        "pid": _PROCESS,
        "tid": lane,
        "args": arguments,
    }
