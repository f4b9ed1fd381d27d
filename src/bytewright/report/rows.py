"""Segments and rings for people: what was saved, why a ring has so many rows, and why a tensor is none."""

from math import prod

from bytewright.record.buffers import BufferRole, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.row_calls import row_runs
from bytewright.record.row_reasons import ring_reason, rows_held
from bytewright.record.rows import PlannedSegment


def calls_of(plan: Plan, segment: PlannedSegment) -> int:
    """How many calls of kernels a segment makes, in the place of one for each step."""
    first, last = segment.steps
    return sum(first <= call.step.index <= last for run in row_runs(plan) for call in run.calls or ())


def rows_text(buffer: PlannedBuffer) -> str:
    """`3 of 48`: the rows that a ring keeps; nothing for a buffer that is whole."""
    return "" if buffer.ring is None else f"{buffer.ring.num_rows} of {buffer.ring.tensor_rows}"


def row_reasons(plan: Plan, buffer: PlannedBuffer) -> list[str]:
    """Why a buffer is a ring, or why not; nothing where the plan has no segments, or the buffer is no tensor."""
    if not plan.segments or buffer.role not in (BufferRole.TENSOR, BufferRole.OUTPUT):
        return []
    if buffer.ring is not None:
        ring, reason = buffer.ring, ring_reason(plan, buffer, rows_held(plan))
        because = f": {reason}" if reason else ""
        return [f"{rows_text(buffer)} rows, {ring.tensor_bytes} B if it were whole{because}"]
    return [f"whole: {_why_whole(plan, buffer)}"]


def _why_whole(plan: Plan, buffer: PlannedBuffer) -> str:
    if buffer.role is BufferRole.OUTPUT:
        return "the application reads all of it"
    shape = buffer.shape or ()
    if not any(
        extent > 1 and prod(shape[:axis]) == 1 < prod(shape[axis + 1 :]) for axis, extent in enumerate(shape)
    ):
        return "it has no rows"
    makers = [step for step in plan.steps if buffer.name in step.writes]
    readers = [step.index for step in plan.steps if buffer.name in step.reads]
    around = [s for s in plan.segments if makers and s.has_step(makers[0].index)]
    if not around:
        return "the step that makes it is in no segment"
    first, last = around[0].steps
    outside = [number for number in readers if not first <= number <= last]
    if outside:
        return f"step {outside[0]} reads it, outside of the segment of steps {first} to {last} that makes it"
    return "its segment needs all of its rows at once"
