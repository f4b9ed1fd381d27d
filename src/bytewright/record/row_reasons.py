"""Why a ring has so many rows, for people: read off the calls of the plan's loops."""

from collections.abc import Mapping

from bytewright.record.buffers import PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.row_calls import row_runs


def rows_held(plan: Plan) -> Mapping[str, Mapping[int, int]]:
    """For each ring, and each step that reads it: the most rows from the oldest that it reads to the newest made."""
    held: dict[str, dict[int, int]] = {}
    for run in row_runs(plan):
        newest: dict[str, int] = {}
        for call in run.calls or ():
            for name in call.step.reads:
                needed = call.needed(name)
                if plan.buffers[name].ring is not None and needed:
                    rows = max(newest.get(name, needed[-1]), needed[-1]) - needed[0] + 1
                    of_ring = held.setdefault(name, {})
                    of_ring[call.step.index] = max(of_ring.get(call.step.index, 0), rows)
            if call.step.rows is not None and call.made:
                newest[call.step.rows.buffer] = call.made[-1]
    return held


def ring_reason(plan: Plan, buffer: PlannedBuffer, held: Mapping[str, Mapping[int, int]]) -> str:
    """`step 3 needs 3 at once`; where a step is late: `step 4 needs 1 and comes 2 rows later`; empty for no ring."""
    readers = held.get(buffer.name)
    if buffer.ring is None or not readers:
        return ""
    most = max(readers.values())
    step = next(step for step, rows in readers.items() if rows == most)
    rows = plan.steps[step].rows
    windows = () if rows is None else rows.windows
    heights = ((w.last - w.first) // w.divisor + 1 for w in windows if w.buffer == buffer.name)
    height = next(heights, most)
    late = most - height
    if late <= 0:
        return f"step {step} needs {height} at once"
    return f"step {step} needs {height} at once, {late} row{'s' if late > 1 else ''} after the newest is made"
