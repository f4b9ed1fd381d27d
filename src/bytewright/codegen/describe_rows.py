"""Comments of the run function about steps that run together row by row: what is kept of each tensor, and why."""

from collections.abc import Mapping

from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.row_reasons import ring_reason, rows_held
from bytewright.record.rows import PlannedSegment


def describe_ring(buffer: PlannedBuffer) -> str:
    """`ring of 3 rows `; nothing for a buffer that is whole."""
    if buffer.ring is None:
        return ""
    return f"ring of {buffer.ring.num_rows} row{'s' if buffer.ring.num_rows > 1 else ''} "


def describe_segments(plan: Plan) -> dict[int, str]:
    """The comment above the loop of each segment, one line for each ring, by the segment's first step."""
    held = rows_held(plan) if plan.segments else {}
    return {segment.steps[0]: _described(plan, segment, held) for segment in plan.segments}


def _described(plan: Plan, segment: PlannedSegment, held: Mapping[str, Mapping[int, int]]) -> str:
    first, last = segment.steps
    lines = [
        f"Steps {first} to {last} run together, row by row: each call makes one row, or none where its tensor has no "
        f"such row. So {segment.alive_bytes} B are alive here, and {segment.plain_alive_bytes} B if all tensors were "
        "whole. Row r of a ring lies in slot r % rows. Kept are of"
    ]
    for name in segment.rings:
        buffer = plan.buffers[name]
        if buffer.ring is not None:
            reason = ring_reason(plan, buffer, held)
            lines.append(
                f"  {name}: {buffer.ring.num_rows} of {buffer.ring.tensor_rows} rows"
                f"{f', as {reason}' if reason else ''}"
            )
    return "\n".join(lines)
