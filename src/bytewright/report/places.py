"""Where buffers lie and when they live, in words."""

from typing import Any

from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.codec import encode
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan


def largest_first(plan: Plan) -> list[PlannedBuffer]:
    """All buffers, largest first, and by name where sizes are equal."""
    return sorted(plan.buffers.values(), key=lambda buffer: (-buffer.size_bytes, buffer.name))


def written_by(plan: Plan, step: PlannedStep) -> list[PlannedBuffer]:
    """The buffers that a step writes."""
    return [plan.buffers[name] for name in step.writes if name in plan.buffers]


def place_text(buffer: PlannedBuffer) -> str:
    """`dtcm+8000`, `stack of cpu`, `arena of dtcm` or `caller's input_1`."""
    place = buffer.place
    match place.kind:
        case PlaceKind.STACK:
            return f"stack of {place.name}"
        case PlaceKind.CALLER:
            return f"caller's {place.name}"
        case PlaceKind.ARENA:
            return f"arena of {place.name}"
        case _:
            return place.name if place.offset is None else f"{place.name}+{place.offset}"


def facts(record: object, *names: str) -> dict[str, Any]:
    """Some of the members that plan.json has of a record."""
    document = encode(record)
    return {name: document[name] for name in names}
