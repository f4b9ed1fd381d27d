"""What a paranoid run watches in loops over rows: the rows that die, and those that a call may not change.

The calls of a plan's loops are gone through one by one (`record/row_calls.py`). A row is alive from the call that makes
it to the last one that reads it. Its bytes are poisoned before the next call, unless another row or buffer has them by
then; and a call may change nothing of the buffer that it makes rows of but those rows, and no row that is still read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bytewright.record.plan import BufferRole, Plan, PlannedBuffer
from bytewright.record.row_calls import RowCall, RowRun, row_runs

_Span = tuple[int, int]  # bytes of a pool, half-open


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


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a buffer: the call that makes it, -1 for one before, and the last that reads it.

    It may hold something before the first call, as the row of a buffer does of which other steps have written a part.
    """

    buffer: str
    row: int
    span: _Span
    made: int
    read: int
    is_there: bool


def watched_rows(plan: Plan, pools: Sequence[str]) -> tuple[WatchedRows, ...]:
    """The entries of all loops over rows, in the order of the calls; `pools` are those that are watched."""
    found: list[WatchedRows] = []
    for run in row_runs(plan):
        found.extend(_of_run(plan, run, pools))
    return tuple(found)


def _of_run(plan: Plan, run: RowRun, pools: Sequence[str]) -> Iterator[WatchedRows]:
    calls = run.calls or ()
    buffers = _by_rows(plan, run, pools)
    rows = list(_rows(plan, run, buffers))
    others = list(_others(plan, run, buffers))
    made: dict[int, list[_Row]] = {}  # by call
    dead: dict[int, list[_Row]] = {}  # by the first call that comes after their last use
    for row in sorted(rows, key=lambda row: (row.buffer, row.row)):
        made.setdefault(row.made, []).append(row)
        dead.setdefault(max(row.read, row.made) + 1, []).append(row)
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


def _rows(plan: Plan, run: RowRun, buffers: dict[str, PlannedBuffer]) -> Iterator[_Row]:
    """Every row of these buffers that lives during the run."""
    calls, never = run.calls or (), 1 << 60
    made: dict[tuple[str, int], int] = {}
    read: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for number, call in enumerate(calls):
        rows = call.step.rows
        if rows is None:
            continue
        counts[rows.buffer] = rows.num_rows
        made |= {(rows.buffer, row): number for row in call.made}
        for window in rows.windows:
            counts.setdefault(window.buffer, window.num_rows)
            read |= {(window.buffer, row): number for row in call.needed(window.buffer) or ()}
    made_here = {name for name, _ in made}
    begin, end = plan.steps[run.steps[0]].ticks[0], plan.steps[run.steps[1]].ticks[1]
    for name, buffer in buffers.items():
        count = counts[name]
        slots = count if buffer.ring is None else buffer.ring.num_rows
        row_bytes = buffer.size_bytes // slots
        is_kept = buffer.role is BufferRole.OUTPUT or (buffer.live is not None and buffer.live[1] > end)
        is_there = name not in made_here or (buffer.live is not None and buffer.live[0] < begin)
        for row in range(count):
            at = (buffer.place.offset or 0) + row % slots * row_bytes
            first = made.get((name, row), -1) if name in made_here else -1
            last = never if is_kept and buffer.ring is None else read.get((name, row), first)
            yield _Row(name, row, (at, at + row_bytes), first, last, is_there or first < 0)


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
