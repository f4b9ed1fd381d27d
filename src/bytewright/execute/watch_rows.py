"""What a paranoid run watches in loops over rows: the rows that die, and those that a call may not change.

The calls of a plan's loops are gone through one by one (`record/row_calls.py`). A row is alive from the call that makes
it to the last one that reads it. Its bytes are poisoned before the next call, unless another row or buffer has them by
then; and a call may change nothing of the buffer that it makes rows of but those rows, and no row that is still read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bytewright.record.buffers import BufferRole, PlannedBuffer
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.record.row_calls import RowCall, RowRun, row_runs

_Span = tuple[int, int]  # bytes of a pool, half-open
_KEPT = (BufferRole.OUTPUT, BufferRole.STATE)  # somebody reads them after the steps


@dataclass(frozen=True, slots=True)
class WatchedRows:
    """Bytes of a pool at one call of a step; the fields are those of the table in paranoid.c.

    Attributes:
        step: The step.
        call: How many calls of it come before.
        pool: Index in the watch's pools.
        first: The first byte, and
        end: one past the last.
        is_still: Whether the call may not change them; else they are dead, and poisoned before it.
        buffer: Whose bytes they are,
        row: and of which row; None for those of no row that is alive.
    """

    step: int
    call: int
    pool: int
    first: int
    end: int
    is_still: bool
    buffer: str
    row: int | None = None


@dataclass(eq=False, slots=True)
class _Row:
    """A row of a buffer while it has its place: the calls that make it, -1 for one before, and the last that reads it.

    It may hold something before the first call, as the row of a buffer does of which other steps have written a part.
    A row of a ring that is made after another one was made there is another row.
    """

    buffer: str
    row: int
    span: _Span
    made: list[int]
    read: int
    is_there: bool


def watched_rows(plan: Plan, pools: Sequence[str]) -> tuple[WatchedRows, ...]:
    """The entries of all loops over rows, in the order of the calls; `pools` are those that are watched."""
    found: list[WatchedRows] = []
    for run in row_runs(plan):
        found.extend(_of_run(plan, run, pools))
    return tuple(found)


def _of_run(plan: Plan, run: RowRun, pools: Sequence[str]) -> Iterator[WatchedRows]:
    calls = run.calls
    if calls is None:
        return  # data decides which of them are made
    buffers = _by_rows(plan, run, pools)
    rows = _rows(plan, run, calls, buffers)
    others = list(_others(plan, run, buffers))
    made: dict[int, list[_Row]] = {}  # by call
    dead: dict[int, list[_Row]] = {}  # by the first call that comes after their last use
    for row in sorted(rows, key=lambda row: (row.buffer, row.row)):
        for number in row.made:
            made.setdefault(number, []).append(row)
        dead.setdefault(row.read + 1, []).append(row)
    alive = dict.fromkeys(row for row in rows if row.is_there)
    for number, call in enumerate(calls):
        for row in [row for row in alive if row.read < number]:
            del alive[row]
        poisoned = [(row.buffer, row.span) for row in dead.get(number, ())]
        if number == 0:
            poisoned = [(name, _span(buffer)) for name, buffer in buffers.items()]
        for name, span in poisoned:
            pool = buffers[name].place.name
            kept = [row.span for row in alive if buffers[row.buffer].place.name == pool]
            kept += [other for other_pool, other in others if other_pool == pool]
            for first, end in _without(span, kept):
                yield WatchedRows(call.step.index, call.number, pools.index(pool), first, end, False, name)
        yield from _still(call, number, buffers, alive, made.get(number, []), pools)
        alive.update(dict.fromkeys(made.get(number, ())))


def _by_rows(plan: Plan, run: RowRun, pools: Sequence[str]) -> dict[str, PlannedBuffer]:
    """The buffers of watched pools that the steps of a run touch by rows alone, each row in one place."""
    steps = plan.steps[run.steps[0] : run.steps[1] + 1]
    num_rows: dict[str, int] = {}
    for step in steps:
        if step.rows is not None:
            num_rows[step.rows.buffer] = step.rows.num_rows
            num_rows |= {window.buffer: window.num_rows for window in step.rows.windows}
    found: dict[str, PlannedBuffer] = {}
    for name, count in num_rows.items():
        buffer = plan.buffers[name]
        touching = [step for step in steps if name in step.touched]
        is_by_rows = all(
            step.rows is not None and name in (step.rows.buffer, *(w.buffer for w in step.rows.windows))
            for step in touching
        )
        slots = count if buffer.ring is None else buffer.ring.num_rows
        if is_by_rows and buffer.has_offset and buffer.place.name in pools and not buffer.size_bytes % slots:
            found[name] = buffer
    return found


def _span(buffer: PlannedBuffer) -> _Span:
    offset = buffer.place.offset or 0
    return offset, offset + buffer.size_bytes


def _others(plan: Plan, run: RowRun, buffers: Iterable[str]) -> Iterator[tuple[str, _Span]]:
    """The buffers besides that live while the steps run, with their pools."""
    begin, end = plan.steps[run.steps[0]].ticks[0], plan.steps[run.steps[1]].ticks[1]
    names = set(buffers)
    for buffer in plan.buffers.values():
        is_alive = buffer.live is not None and buffer.live[0] < end and begin < buffer.live[1]
        if buffer.has_offset and is_alive and buffer.name not in names:
            yield buffer.place.name, _span(buffer)


def _rows(plan: Plan, run: RowRun, calls: Sequence[RowCall], buffers: dict[str, PlannedBuffer]) -> list[_Row]:
    """Every row of these buffers that lives during the run."""
    never = 1 << 60
    made_here = {call.step.rows.buffer for call in calls if call.step.rows is not None and call.made}
    counts = _counts(plan.steps[run.steps[0] : run.steps[1] + 1])
    begin, end = plan.steps[run.steps[0]].ticks[0], plan.steps[run.steps[1]].ticks[1]
    found: list[_Row] = []
    there: dict[tuple[str, int], _Row] = {}  # what has a slot, by buffer and slot
    latest: dict[tuple[str, int], _Row] = {}  # by buffer and row
    slots: dict[str, int] = {}

    def place(name: str, row: int, call: int, *, is_there: bool) -> None:
        buffer, slot = buffers[name], row % slots[name]
        known = there.get((name, slot))
        if known is not None and known.row == row:
            known.made.append(call)
            known.read = max(known.read, call)
            return
        row_bytes = buffer.size_bytes // slots[name]
        at = (buffer.place.offset or 0) + slot * row_bytes
        there[name, slot] = latest[name, row] = _Row(name, row, (at, at + row_bytes), [call], call, is_there)
        found.append(there[name, slot])

    for name, buffer in buffers.items():
        slots[name] = counts[name] if buffer.ring is None else buffer.ring.num_rows
        is_state = buffer.role is BufferRole.STATE  # which a run before this one has left
        is_there = name not in made_here or is_state or (buffer.live is not None and buffer.live[0] < begin)
        for row in range(counts[name]) if is_there else ():
            place(name, row, -1, is_there=True)
    for number, call in enumerate(calls):
        rows = call.step.rows
        for name in () if rows is None else dict.fromkeys(w.buffer for w in rows.windows):
            for row in call.needed(name) or () if name in buffers else ():
                if (name, row) in latest:  # whoever has its slot by then
                    latest[name, row].read = number
        for row in call.made if rows is not None and rows.buffer in buffers else ():
            place(call.step.rows.buffer if call.step.rows else "", row, number, is_there=False)
    for row in latest.values():
        buffer = buffers[row.buffer]
        is_kept = buffer.role in _KEPT or (buffer.live is not None and buffer.live[1] > end)
        if is_kept and buffer.ring is None:
            row.read = never
    return found


def _counts(steps: Iterable[PlannedStep]) -> dict[str, int]:
    """How many rows each buffer has, as the first step says that goes through it by rows, called or not."""
    counts: dict[str, int] = {}
    for step in steps:
        if step.rows is not None:
            counts.setdefault(step.rows.buffer, step.rows.num_rows)
            for window in step.rows.windows:
                counts.setdefault(window.buffer, window.num_rows)
    return counts


def _still(
    call: RowCall,
    number: int,
    buffers: dict[str, PlannedBuffer],
    alive: Iterable[_Row],
    made: Sequence[_Row],
    pools: Sequence[str],
) -> Iterator[WatchedRows]:
    """What a call may not change of the buffer that it makes rows of, and of rows that others read after it."""
    rows = call.step.rows
    if rows is None or rows.buffer not in buffers:
        return
    buffer = buffers[rows.buffer]
    pool = pools.index(buffer.place.name)
    spans = [row.span for row in made if row.buffer == rows.buffer]
    taken = [
        _span(other) for name, other in buffers.items() if name != rows.buffer and name in call.step.writes
    ]
    for first, end in _without(_span(buffer), [*spans, *taken]):
        yield WatchedRows(call.step.index, call.number, pool, first, end, True, buffer.name)
    for row in alive:
        same_pool = buffers[row.buffer].place.name == buffer.place.name
        is_own = any(row.buffer == own.buffer and row.row == own.row for own in made)
        if same_pool and not is_own and row.read > number:
            for span in spans:
                first, end = max(span[0], row.span[0]), min(span[1], row.span[1])
                if first < end:
                    yield WatchedRows(
                        call.step.index, call.number, pool, first, end, True, row.buffer, row.row
                    )


def _without(span: _Span, others: Iterable[_Span]) -> list[_Span]:
    """What is left of some bytes when others are taken out."""
    left = [span]
    for begin, end in others:
        left = [
            piece
            for first, last in left
            for piece in ((first, min(last, begin)), (max(first, end), last))
            if piece[0] < piece[1]
        ]
    return left
