"""What is said of segments that were taken: what is alive while they run, and what would be if each step ran alone."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.compiler.trial import Trial
from bytewright.record.rows import PlannedSegment
from bytewright.storage.rows.alive import Alive, alive_of
from bytewright.storage.rows.segment import Segment


def describe_segments(
    by_rows: Trial, fused: ir.Module, segments: Sequence[Segment], plain: Alive
) -> tuple[PlannedSegment, ...]:
    """The segments as the plan has them.

    Args:
        by_rows: What came of the module with segments.
        fused: That module, before it was stored.
        segments: What is in it; steps have the same numbers with and without.
        plain: What is alive without segments.
    """
    peaks = alive_of(fused, by_rows.stored.timeline, by_rows.stored.workspace).peaks
    return tuple(
        PlannedSegment(
            (segment.first, segment.end - 1),
            segment.schedule.turns[1] - segment.schedule.turns[0],
            tuple(segment.rings),
            max(peaks[segment.first : segment.end]),
            max(plain.peaks[segment.first : segment.end]),
        )
        for segment in segments
    )
