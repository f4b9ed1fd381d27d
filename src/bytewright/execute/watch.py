"""What a paranoid run watches: for each step of a plan, the bytes that are dead before it and those it may not change.

Both follow from the lifetimes and offsets in plan.json alone, never from the generated C, which is what is being
watched. A byte may change in a step if a buffer that the step writes has it, and no other buffer that lives while
that one does: in a plan that verifies the second half says nothing, and in one that does not it finds the overlap.
A buffer that dies in the middle of a step may lose its bytes there, but only to one that the step writes; so may one
that an output overlaps no nearer than its contract in plan.json: no look between the steps can judge its kernel.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from bytewright.execute.watch_rows import WatchedRows, watched_rows
from bytewright.record.buffers import BufferRole, PlannedBuffer, PlannedPool
from bytewright.record.entries import PlannedEntry, PlannedStep
from bytewright.record.names import Names
from bytewright.record.plan import Plan


@dataclass(frozen=True, slots=True)
class WatchedPool:
    """A workspace pool that the model uses; guards are those of the harness, none if the bundle has the array."""

    pool: PlannedPool
    guard_bytes: int


@dataclass(frozen=True, slots=True)
class WatchedRange:
    """Bytes of one pool, counted from its start, at one step.

    Attributes:
        step: The step that may not change them; or, for dead bytes, the step before which they are poisoned.
        pool: Index in the watch's pools.
        first: The first byte; negative in the guard before the pool.
        end: One past the last byte.
        buffer: The buffer that lives there; None for dead bytes and guards.
        row: Which of its rows, if it is one alone.
    """

    step: int
    pool: int
    first: int
    end: int
    buffer: str | None = None
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """The tables of a paranoid run.

    Attributes:
        guard_bytes: What lies before and after each pool at least.
        dead: What is poisoned before each step, and after the last.
        still: What each step may not change.
        rows: The same of loops over rows, call by call.
    """

    plan: Plan
    guard_bytes: int
    pools: tuple[WatchedPool, ...]
    dead: tuple[WatchedRange, ...]
    still: tuple[WatchedRange, ...]
    rows: tuple[WatchedRows, ...] = ()

    @property
    def row_ends(self) -> tuple[int, ...]:
        """For each entry, how many of the ranges of rows are of it or an entry before it."""
        steps = [rows.step for rows in self.rows]
        return tuple(sum(step < entry.steps[1] for step in steps) for entry in self.plan.entries)


def watch_plan(plan: Plan, guard_bytes: int) -> Watch:
    """The tables for a plan, with guards that are a power of two or as large as a pool's alignment."""
    pools = tuple(
        WatchedPool(pool, max(guard_bytes, pool.alignment) if pool.is_caller else 0)
        for pool in plan.workspaces
    )
    dead: list[WatchedRange] = []
    still: list[WatchedRange] = []
    for index, watched in enumerate(pools):
        buffers = [b for b in plan.buffers_in(watched.pool.name) if b.live is not None]
        # What is carried into the next turn is alive before it, too.
        again = {loop.steps[0] for loop in plan.loops}
        for entry, end in zip(plan.entries, plan.ends, strict=True):
            steps, own = (
                plan.steps[slice(*entry.steps)],
                [b for b in buffers if _overlaps(_live(b), entry.ticks)],
            )
            boundaries = [*((step.index, step.ticks[0]) for step in steps), (end, entry.ticks[1])]
            for number, tick in boundaries:
                alive = [
                    b for b in own if _lower(b, entry) < tick + (number in again) and tick < _upper(b, entry)
                ]
                dead += [
                    WatchedRange(number, index, first, last)
                    for first, last, owners in _pieces(watched.pool, alive)
                    if not owners
                ]
        for step in plan.steps:
            still += _still(step, index, watched, buffers, _agreed(step, plan))
    rows = watched_rows(plan, [watched.pool.name for watched in pools])
    return Watch(plan, guard_bytes, pools, tuple(dead), tuple(still), rows)


def _lower(buffer: PlannedBuffer, entry: PlannedEntry) -> int:
    """An input is alive before the first step: the caller has written it. So is a state, which the last run left."""
    is_there = buffer.role in (BufferRole.INPUT, BufferRole.STATE)
    return entry.ticks[0] - 1 if is_there else _live(buffer)[0]


def _upper(buffer: PlannedBuffer, entry: PlannedEntry) -> int:
    """An output is alive after the last step: the caller will read it. So is a state, which the next run reads."""
    is_kept = buffer.role in (BufferRole.OUTPUT, BufferRole.STATE)
    return entry.ticks[1] + 1 if is_kept else _live(buffer)[1]


def _live(buffer: PlannedBuffer) -> tuple[int, int]:
    return buffer.live or (0, 0)


def _still(
    step: PlannedStep,
    index: int,
    watched: WatchedPool,
    buffers: Sequence[PlannedBuffer],
    agreed: Collection[tuple[str, str]],
) -> Iterator[WatchedRange]:
    """What a step may not change in a pool, with the buffer that would suffer; guards included."""
    size, guard = watched.pool.used_bytes, watched.guard_bytes
    writable = {*step.writes, *step.scratch}
    concerned = [b for b in buffers if b.name in writable or _overlaps(_live(b), step.ticks)]
    for first, end, owners in _pieces(watched.pool, concerned):
        written = [b for b in owners if b.name in writable]
        others = [b for b in owners if b.name not in writable]
        suffering = [
            b
            for b in others
            if not written
            or any(_overlaps(_live(b), _live(w)) and (b.name, w.name) not in agreed for w in written)
        ]
        if suffering or not written:
            yield WatchedRange(step.index, index, first, end, suffering[0].name if suffering else None)
    if guard:
        yield WatchedRange(step.index, index, -guard, 0)
        yield WatchedRange(step.index, index, size, size + guard)


def _agreed(step: PlannedStep, plan: Plan) -> set[tuple[str, str]]:
    """Inputs of a step that may lose bytes to an output: pairs whose offsets are as far apart as their kernel asks."""
    distances = [
        (pair, (plan.buffers[pair.output].place.offset or 0) - (plan.buffers[pair.source].place.offset or 0))
        for pair in step.overlaps
    ]
    return {
        (pair.source, pair.output)
        for pair, distance in distances
        if not -pair.below_bytes < distance < pair.above_bytes
    }


def _overlaps(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _pieces(
    pool: PlannedPool, buffers: Sequence[PlannedBuffer]
) -> Iterator[tuple[int, int, list[PlannedBuffer]]]:
    """The pool cut where a buffer begins or ends: first, end, and the buffers that have the piece."""
    intervals = [(b, b.place.offset or 0, (b.place.offset or 0) + b.size_bytes) for b in buffers]
    cuts = {0, pool.used_bytes}
    for _, first, end in intervals:
        cuts |= {min(first, pool.used_bytes), min(end, pool.used_bytes)}
    ordered = sorted(cuts)
    for first, end in pairwise(ordered):
        yield first, end, [b for b, begin, stop in intervals if begin <= first < stop]


def step_header(names: Names, *, sees_pools: bool) -> str:
    """harness_step.h, which comes before every file: the macro between the kernels, which may pass the pools on.

    It includes nothing, because a file may have to say first what it wants of the system's headers.
    """
    parameter, pools = (
        (", unsigned char *const *pools", ", (unsigned char *const[]){__VA_ARGS__}")
        if sees_pools
        else ("", "")
    )
    return (
        "#ifndef HARNESS_STEP_H\n"
        "#define HARNESS_STEP_H\n"
        f"void harness_step(unsigned int step{parameter});\n"
        f"#define {names.step}(step, ...) harness_step(step{pools})\n"
        "#endif\n"
    )


def table_header(watch: Watch) -> str:
    """harness_paranoid.h: macros only, described in paranoid.c."""
    pools = [
        f"ENTRY({index}, {entry.guard_bytes}, {entry.pool.used_bytes + 2 * entry.guard_bytes})"
        for index, entry in enumerate(watch.pools)
    ]
    steps = f"#define PARANOID_NUM_STEPS {len(watch.plan.steps)}\n"
    return steps + "".join(
        f"#define {name}(ENTRY) {' '.join(entries)}".rstrip() + "\n"
        for name, entries in (
            ("PARANOID_POOLS", pools),
            ("PARANOID_DEAD", _entries(watch, watch.dead)),
            ("PARANOID_STILL", _entries(watch, watch.still)),
            ("PARANOID_ROWS", _row_entries(watch)),
            ("PARANOID_ROW_ENDS", [f"ENTRY({end})" for end in watch.row_ends]),
        )
    )


def _entries(watch: Watch, ranges: Sequence[WatchedRange]) -> list[str]:
    entries: list[str] = []
    for entry in ranges:
        guard = watch.pools[entry.pool].guard_bytes
        entries.append(f"ENTRY({entry.step}, {entry.pool}, {entry.first + guard}, {entry.end + guard})")
    return entries


def _row_entries(watch: Watch) -> list[str]:
    entries: list[str] = []
    for entry in watch.rows:
        guard = watch.pools[entry.pool].guard_bytes
        bytes_of_pool = f"{entry.pool}, {entry.first + guard}, {entry.end + guard}"
        entries.append(f"ENTRY({entry.step}, {entry.call}, {bytes_of_pool}, {int(entry.is_still)})")
    return entries


def parse_findings(watch: Watch, report: str) -> list[WatchedRange]:
    """The parts of watched ranges that changed though they may not have; paranoid.c has three lines for each."""
    lines = [line for line in report.splitlines() if line.startswith("finding_")]
    numbers = [int(line.partition(" ")[2]) for line in lines]
    findings: list[WatchedRange] = []
    # Behind the ranges that are still come those of rows, and behind them, by entry, that not all calls were there.
    for index, first, end in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        watched = (
            watch.still[index] if index < len(watch.still) else _range_of(watch, index - len(watch.still))
        )
        guard = watch.pools[watched.pool].guard_bytes
        findings.append(replace(watched, first=first - guard, end=end - guard))
    return findings


def _range_of(watch: Watch, index: int) -> WatchedRange:
    """A finding about rows: bytes that a call changed, or the first call of an entry that lacks some."""
    if index < len(watch.rows):
        entry = watch.rows[index]
        return WatchedRange(entry.step, entry.pool, entry.first, entry.end, entry.buffer, entry.row)
    entry = index - len(watch.rows)
    first = watch.rows[watch.row_ends[entry - 1] if entry else 0]
    return WatchedRange(first.step, first.pool, 0, 0)
