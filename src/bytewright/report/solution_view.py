"""A solution as pictures: time across and addresses upwards, a rectangle for each life of a buffer."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from bytewright.plan.problem import Buffer, Problem
from bytewright.plan.solution import PoolUse, Solution
from bytewright.show.view import Band, Block, Chart, Fact, Facts, View

_KINDS = ("buffer", "at a fixed offset")


def solution_view(problem: Problem, solution: Solution) -> View:
    """A chart for each pool that is used."""
    first = min((buffer.first_tick for buffer in problem.buffers), default=0)
    last = max((buffer.last_tick for buffer in problem.buffers), default=1)
    charts = [_chart(problem, solution, use, (first, last)) for use in solution.pools if use.top_bytes > 0]
    counted = f"{len(problem.buffers)} buffers, ticks {first} to {last}"
    return View("A plan of buffers", (Facts((Fact((counted,)),)), *charts))


def _chart(problem: Problem, solution: Solution, use: PoolUse, extent: tuple[int, int]) -> Chart:
    here = [b for b in problem.buffers if b.size_bytes and solution.placement_of[b.name].pool == use.pool]
    live_bytes, (begin, end) = _peak(here)
    blocks = [
        Block(
            buffer.name,
            lower,
            upper,
            offset := solution.placement_of[buffer.name].offset,
            offset + buffer.size_bytes,
            _KINDS[buffer.fixed_offset is not None],
            f"{buffer.size_bytes} B at {offset}, ticks {lower} to {upper}",
            tuple(_known(buffer)),
            lower <= begin < upper,
        )
        for buffer in here
        for lower, upper in buffer.lifetimes
    ]
    evidence = "optimal" if use.optimal else f"lower bound {use.lower_bound_bytes} B"
    return Chart(
        use.pool,
        f"{use.pool}: {use.top_bytes} B used, {evidence}; {live_bytes} B alive at the peak (tick {begin})",
        (),
        use.capacity_bytes,
        (Band("peak", ((begin, end),), "^"),),
        tuple(sorted(blocks, key=lambda block: (block.first, block.until, block.begin, block.name))),
        (("alive", live_bytes), ("used", use.top_bytes), ("lower bound", use.lower_bound_bytes)),
        extent,
        "tick",
        kinds=_KINDS,
    )


def _known(buffer: Buffer) -> Iterable[tuple[str, str]]:
    if buffer.alignment > 1:
        yield "aligned", f"to {buffer.alignment} B"
    if len(buffer.lifetimes) > 1:
        yield "lives", ", ".join(f"{lower} to {upper}" for lower, upper in buffer.lifetimes)


def _peak(buffers: Sequence[Buffer]) -> tuple[int, tuple[int, int]]:
    """The most bytes that are alive at one time, and the first span of ticks in which they are."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        for lower, upper in buffer.lifetimes:
            changes[lower] = changes.get(lower, 0) + buffer.size_bytes
            changes[upper] = changes.get(upper, 0) - buffer.size_bytes
    ticks = sorted(changes)
    alive = list(accumulate(changes[tick] for tick in ticks))
    most = max(range(len(ticks)), key=lambda number: alive[number])
    return alive[most], (ticks[most], ticks[most + 1])
