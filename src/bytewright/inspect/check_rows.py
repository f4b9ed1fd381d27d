"""Whether steps that run row by row have each row when they need it: the plan's loops gone through, call by call.

Nothing here knows how the schedule was made. A ring is as large as its rows; each row of a tensor is made once; a row
that is read was made before, and its slot has not been given to another row since.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from bytewright.record.plan import BufferRole, Plan, PlannedBuffer, PlannedStep
from bytewright.record.row_calls import RowCall, RowRun, row_runs
from bytewright.record.rows import PlannedRing


def faults_of_rows(plan: Plan) -> Iterator[str]:
    """Rings, segments and rows that are none, and calls that have not the rows that they need."""
    faults = [*_faults_of_rings(plan), *_faults_of_steps(plan), *_faults_of_segments(plan)]
    yield from faults
    if not faults:
        for run in row_runs(plan):
            yield from _faults_of_run(plan, run)


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
            if plan.buffers[name].ring is not None and known.count(name) != 1:
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
    if plan.segments:
        listed = [name for segment in plan.segments for name in segment.rings]
        rings = [buffer.name for buffer in plan.buffers.values() if buffer.ring is not None]
        if sorted(listed) != sorted(rings):
            yield f"the segments have {len(listed)} rings, the plan {len(rings)}"


@dataclass(slots=True)
class _Rows:
    """The rows of a buffer while its steps run.

    Attributes:
        num_slots: As many as it keeps.
        made: Rows that were made, all of them before the loop for what it does not make.
        slots: Which row was made last in each slot.
    """

    num_rows: int
    num_slots: int
    made: set[int] = field(default_factory=set[int])
    slots: dict[int, int] = field(default_factory=dict[int, int])


def _faults_of_run(plan: Plan, run: RowRun) -> Iterator[str]:
    """The first fault of each step."""
    first, last = run.steps
    if run.calls is None:
        yield f"which rows the loops of steps {first} to {last} make cannot be followed: a number of them is not known"
        return
    steps = plan.steps[first : last + 1]
    makers = {step.rows.buffer: step for step in reversed(steps) if step.rows is not None}
    state = {name: _rows_of(plan.buffers[name], step) for name, step in makers.items()}
    faulty: set[int] = set()
    for call in run.calls:
        if call.step.index not in faulty:
            for fault in _faults_of_call(call, state):
                faulty.add(call.step.index)
                yield fault
                break
        _make(call, state)
    for name, rows in state.items():
        missing = sorted(set(range(rows.num_rows)) - rows.made)
        if missing and makers[name].index not in faulty:
            yield f"step {makers[name].index} never makes row {missing[0]} of '{name}'"


def _rows_of(buffer: PlannedBuffer, maker: PlannedStep) -> _Rows:
    num_rows = 0 if maker.rows is None else maker.rows.num_rows
    return _Rows(num_rows, num_rows if buffer.ring is None else buffer.ring.num_rows)


def _faults_of_call(call: RowCall, state: dict[str, _Rows]) -> Iterator[str]:
    step = call.step
    front = f"step {step.index}, call {call.number}"
    own = None if step.rows is None else state[step.rows.buffer]
    made = "" if step.rows is None else step.rows.buffer
    if own is not None and len(call.made) > own.num_slots:
        yield f"{front} makes {len(call.made)} rows of '{made}', which keeps {own.num_slots}"
    for row in call.made:
        if own is not None and row in own.made:
            yield f"{front} makes row {row} of '{made}' again"
    for name in step.reads:
        rows = state.get(name)
        if rows is None:
            continue  # made before the loop, and whole
        needed = call.needed(name)
        for row in range(rows.num_rows) if needed is None else needed:
            if row not in rows.made:
                yield f"{front} reads row {row} of '{name}', which is not made yet"
            elif rows.slots[row % rows.num_slots] != row:
                taken = rows.slots[row % rows.num_slots]
                yield f"{front} reads row {row} of '{name}', whose slot of {rows.num_slots} has row {taken} by then"


def _make(call: RowCall, state: dict[str, _Rows]) -> None:
    if call.step.rows is None:
        return
    rows = state[call.step.rows.buffer]
    for row in call.made:
        rows.made.add(row)
        rows.slots[row % rows.num_slots] = row
