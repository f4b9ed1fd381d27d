"""What is said of segments that were taken: what is alive while they run, and what would be if each step ran alone."""

from collections.abc import Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.record.rows import PlannedSegment
from bytewright.remedy.trial import Trial
from bytewright.storage.rows.alive import Alive, alive_of
from bytewright.storage.rows.segment import Segment


def describe_segments(
    by_rows: Trial, fused: ir.PrimFunc, segments: Sequence[Segment], plain: Trial, plain_alive: Alive
) -> Trial:
    """The trial, with its segments.

    Args:
        by_rows: What came of the entry with segments.
        fused: That entry, before it was stored.
        segments: What is in it; steps have the same numbers with and without.
        plain: What came of the entry without segments,
        plain_alive: and what is alive in it.
    """
    peaks = alive_of(fused, by_rows.timeline, by_rows.workspace_problem).peaks
    described = tuple(
        PlannedSegment(
            (segment.first, segment.end - 1),
            segment.schedule.turns[1] - segment.schedule.turns[0],
            tuple(segment.rings),
            max(peaks[segment.first : segment.end]),
            max(plain_alive.peaks[segment.first : segment.end]),
        )
        for segment in segments
    )
    plain_bytes = plain.workspace_bytes if plain.workspace.has_plan else None
    return replace(by_rows, segments=described, plain_workspace_bytes=plain_bytes)
