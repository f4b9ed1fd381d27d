"""Whether steps that run row by row have each row when they need it: the plan's loops gone through, call by call.

Nothing here knows how the schedule was made. A ring is as large as its rows; each row of a segment's tensor is made
once; a row that is read was made before, and its slot has not been given to another row since.
"""

from collections.abc import Iterator
from math import prod

from bytewright.ir.analyses.row_replay import replay
from bytewright.record.buffers import BufferRole, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.record.row_calls import row_nodes
from bytewright.record.rows import PlannedRing


def faults_of_rows(plan: Plan) -> Iterator[str]:
    """Rings, segments and rows that are none, and calls that have not the rows that they need."""
    faults = [*_faults_of_rings(plan), *_faults_of_steps(plan), *_faults_of_segments(plan)]
    yield from faults
    if not faults:
        yield from _faults_of_calls(plan)


def _faults_of_rings(plan: Plan) -> Iterator[str]:
    """A ring is a tensor of the entry's own, of rows that are each as large, and steps say which of them they need."""
    for buffer in plan.buffers.values():
        ring, shape = buffer.ring, buffer.shape
        if ring is None:
            continue
        if buffer.role is not BufferRole.TENSOR:
            yield f"{buffer.role} '{buffer.name}' is a ring, and others need all of its rows"
        if shape is None or buffer.dtype is None or not _is_axis(ring, shape):
            yield f"ring '{buffer.name}' has {ring.tensor_rows} rows along axis {ring.axis}, its shape is {shape}"
            continue
        whole_bytes = prod(shape) * buffer.dtype.size_bytes
        if ring.tensor_bytes != whole_bytes:
            yield f"ring '{buffer.name}' is said to be of {ring.tensor_bytes} B, its tensor has {whole_bytes} B"
        if not 1 <= ring.num_rows <= ring.tensor_rows:
            yield f"ring '{buffer.name}' keeps {ring.num_rows} of {ring.tensor_rows} rows"
        elif buffer.size_bytes * ring.tensor_rows != whole_bytes * ring.num_rows:
            row_bytes = whole_bytes // ring.tensor_rows
            yield f"ring '{buffer.name}' of {ring.num_rows} rows of {row_bytes} B has {buffer.size_bytes} B"


def _is_axis(ring: PlannedRing, shape: tuple[int, ...]) -> bool:
    """Whether rows along it lie one after the other."""
    return (
        ring.axis < len(shape) and shape[ring.axis] == ring.tensor_rows > 0 and prod(shape[: ring.axis]) == 1
    )


def _faults_of_steps(plan: Plan) -> Iterator[str]:
    """What a step says of rows is of buffers that it touches so; of a ring, every step that touches it says it."""
    for step in plan.steps:
        rows = step.rows
        windows = () if rows is None else rows.windows
        stated = [] if rows is None else [(rows.buffer, rows.num_rows, step.writes)]
        stated += [(window.buffer, window.num_rows, step.reads) for window in windows]
        for name, num_rows, touched in stated:
            if name not in touched:
                yield f"step {step.index} is said to go through '{name}' by rows, and does not touch it so"
            elif num_rows not in _possible_rows(plan.buffers[name]):
                yield f"step {step.index}: '{name}' does not have {num_rows} rows"
        yield from (
            f"step {step.index}: row r of '{rows.buffer}' is said to need rows {window.stride} * r + {window.first} to "
            f"{window.stride} * r + {window.last}, divided by {window.divisor}, of '{window.buffer}'"
            for window in windows
            if rows is not None and (min(window.stride, window.divisor) < 1 or window.last < window.first)
        )
        known = [name for name, *_ in stated]
        for name in step.touched:
            if plan.buffers[name].ring is not None and name not in known:
                yield f"step {step.index} touches ring '{name}', and does not say which of its rows"


def _possible_rows(buffer: PlannedBuffer) -> tuple[int, ...]:
    """The numbers of rows that a buffer may be said to have: extents with nothing before them."""
    if buffer.ring is not None:
        return (buffer.ring.tensor_rows,)
    shape = buffer.shape or ()
    return tuple(extent for axis, extent in enumerate(shape) if prod(shape[:axis]) == 1 and extent > 0)


def _faults_of_segments(plan: Plan) -> Iterator[str]:
    """A segment is a loop, with all that it says of its rings; rings stand in one."""
    loops = {loop.steps: loop for loop in plan.loops}  # of two of the same steps the outer one is last
    for segment in plan.segments:
        first, last = segment.steps
        loop = loops.get(segment.steps)
        if loop is None or (loop.begin, loop.end) != (0, segment.num_turns):
            yield f"a segment of steps {first} to {last} has {segment.num_turns} turns, and there is no such loop"
            continue
        steps = plan.steps[first : last + 1]
        made = {step.rows.buffer for step in steps if step.rows is not None}
        kept = {buffer.name for buffer in plan.buffers.values() if buffer.ring is not None}
        rings = tuple(name for name in segment.rings if name in made & kept)
        if rings != segment.rings:
            wrong = [name for name in segment.rings if name not in rings]
            yield f"a segment of steps {first} to {last} has no ring {', '.join(map(repr, wrong))}"
        if segment.alive_bytes > plan.workspace_bytes:
            yield (
                f"a segment of steps {first} to {last} is said to have {segment.alive_bytes} B alive, the workspace "
                f"has {plan.workspace_bytes} B"
            )
    inside = {
        n for s in plan.segments for step in plan.steps[s.steps[0] : s.steps[1] + 1] for n in step.touched
    }
    listed = [name for segment in plan.segments for name in segment.rings]
    rings = [b.name for b in plan.buffers.values() if b.ring is not None and b.name in inside]
    if sorted(listed) != sorted(rings):
        yield f"the segments have {len(listed)} rings, the plan {len(rings)}"


def _faults_of_calls(plan: Plan) -> Iterator[str]:
    """The first fault of each step. Rows of a segment are made once; of what is by hand, as often as it says."""
    slots = {buffer.name: buffer.ring.num_rows for buffer in plan.buffers.values() if buffer.ring is not None}
    outputs = {tensor.buffer for tensor in plan.outputs}
    inside = [step for s in plan.segments for step in plan.steps[s.steps[0] : s.steps[1] + 1]]
    once = {step.rows.buffer for step in inside if step.rows is not None}
    states = {tensor.buffer for tensor in plan.states}
    for fault in replay(row_nodes(plan), slots, outputs, once, states):
        if fault.last is not None:
            yield f"{fault.text}: a number of them is not known"
        elif fault.call is None:
            yield f"step {fault.step} {fault.text}"
        else:
            yield f"step {fault.step}, call {fault.call} {fault.text}"
