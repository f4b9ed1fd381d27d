"""Rows broken on purpose: each of these mistakes is seen, by values that differ or by rows that are not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses import rows
from bytewright.ir.analyses.rows import RowAccess, RowWindow, row_access
from bytewright.storage.rows import schedule, segment, steps
from bytewright.storage.rows.fuse_rows import fuse_rows
from bytewright.storage.rows.schedule import Link, Maker, Schedule
from support.ir_program import read_module
from support.row_programs import RowText, results, row_program

Patch = Callable[[pytest.MonkeyPatch], None]

# A row needs the one below too, and finds it by a view that begins in its own.
TWO_ROWS = """
module m
kernel k0(x : buffer<1x6x2xi32> r, y : buffer<1x6x2xi32> w, row_begin : i32, row_end : i32) on cpu {
  for r : i32 in row_begin .. row_end { for c : i32 in 0 .. 2 { y[0, r, c] = x[0, r, c] * 2 } }
}
kernel k1(x : buffer<1x6x2xi32> r, y : buffer<1x5x2xi32> w, row_begin : i32, row_end : i32) on cpu {
  for r : i32 in row_begin .. row_end {
    for c : i32 in 0 .. 2 { view both : buffer<3xi32> = &x[0, r, c] y[0, r, c] = both[0] + both[2] }
  }
}
entry main(x : buffer<1x6x2xi32> r, y : buffer<1x5x2xi32> w) on cpu {
  allocate t : buffer<1x6x2xi32>
  call_extern k0(&x, &t, 0, 6)
  call_extern k1(&t, &y, 0, 5)
}
"""
# Sums of a column from its first row on: no row is made for itself.
SUMS = """
module m
kernel k0(x : buffer<1x6x2xi32> r, y : buffer<1x6x2xi32> w, row_begin : i32, row_end : i32) on cpu {
  for r : i32 in row_begin .. row_end { for c : i32 in 0 .. 2 { y[0, r, c] = x[0, r, c] * 2 } }
}
kernel k1(x : buffer<1x6x2xi32> r, y : buffer<1x6x2xi32> w, row_begin : i32, row_end : i32) on cpu {
  allocate sum : buffer<2xi32>
  for d : i32 in 0 .. 2 { sum[d] = 0 }
  for r : i32 in row_begin .. row_end {
    for c : i32 in 0 .. 2 { sum[c] = sum[c] + x[0, r, c] y[0, r, c] = sum[c] }
  }
}
entry main(x : buffer<1x6x2xi32> r, y : buffer<1x6x2xi32> w) on cpu {
  allocate t : buffer<1x6x2xi32>
  call_extern k0(&x, &t, 0, 6)
  call_extern k1(&t, &y, 0, 6)
}
"""


def needed_whole() -> ir.Module:
    """x -> a -> b -> y, where each row of y needs all of a, too."""
    program = RowText()
    program.parameter("x", 6, "r")
    program.allocate("a", 6)
    program.allocate("b", 6)
    program.parameter("y", 6, "w")
    for sources, result in ((["x"], "a"), (["a"], "b"), (["b", "a"], "y")):
        reads = [program.window(sources[0], 0, 1, 1, 1, 0), *(program.whole(s, 1) for s in sources[1:])]
        program.statements.append(program.call(program.kernel(sources, result, reads), sources, result))
    return program.module


@pytest.fixture(autouse=True)
def nothing_is_known() -> Iterator[None]:
    """Schedules that a broken search found are not found again."""
    remembered = schedule._schedule  # pyright: ignore[reportPrivateUsage]
    remembered.cache_clear()
    yield
    remembered.cache_clear()


def num_wrong() -> int:
    """How many segments of some programs do not compute what their steps do."""
    modules = [row_program(seed).module for seed in range(12)]
    modules += [needed_whole(), *(read_module(text) for text in (TWO_ROWS, SUMS))]
    return sum(
        is_wrong(module, first, end)
        for module in modules
        for first in range(len(module.main.body.statements))
        for end in range(first + 2, first + 5)
    )


def is_wrong(module: ir.Module, first: int, end: int) -> bool:
    program = steps.read_rows(module)
    found = segment.segment_of(program, first, end) if end <= program.num_steps else None
    if found is None:
        return False
    try:
        return results(fuse_rows(module, [found])) != results(module)
    except InternalError:  # a row was read that nothing wrote
        return True


def test_nothing_is_wrong() -> None:
    assert num_wrong() == 0


def smaller_rings(patch: pytest.MonkeyPatch) -> None:
    whole = schedule._ring_rows  # pyright: ignore[reportPrivateUsage]

    def fewer(links: Sequence[Link], leads: Sequence[int]) -> list[int]:
        return [max(count - 1, 1) if count else 0 for count in whole(links, leads)]

    patch.setattr(schedule, "_ring_rows", fewer)


def smaller_leads(patch: pytest.MonkeyPatch) -> None:
    whole = schedule._least_leads  # pyright: ignore[reportPrivateUsage]

    def later(leads: list[int], links: Sequence[Link]) -> list[int]:
        producers = {link.producer for link in links}
        return [lead - (number in producers) for number, lead in enumerate(whole(leads, links))]

    patch.setattr(schedule, "_least_leads", later)
    patch.setattr(schedule, "_raised", lambda *given: given[2])  # pyright: ignore[reportUnknownLambdaType]


def one_reader_ignored(patch: pytest.MonkeyPatch) -> None:
    def without(makers: Sequence[Maker], links: Sequence[Link]) -> Schedule | None:
        again = [link for i, link in enumerate(links) if link.producer in {k.producer for k in links[:i]}]
        return schedule.schedule_of(makers, [link for link in links if link not in again[:1]])

    patch.setattr(segment, "schedule_of", without)


def every_view_in_its_row(patch: pytest.MonkeyPatch) -> None:
    reader = rows._Reader  # pyright: ignore[reportPrivateUsage]
    patch.setattr(reader, "_is_in_row", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType]


def a_sum_for_rows(patch: pytest.MonkeyPatch) -> None:
    def admitted(kernel: ir.PrimFunc) -> RowAccess | None:
        is_sum = any(isinstance(s, ir.Allocate) for s in kernel.body.statements)
        access = RowAccess("y", {"x": 1, "y": 1}, {"x": RowWindow(1, 0, 0)})
        return access if is_sum else row_access(kernel)

    patch.setattr(steps, "row_access", admitted)


def whole_tensors_for_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment, "_goes_by_rows", lambda *_: True)  # pyright: ignore[reportUnknownLambdaType]


@pytest.mark.parametrize(
    "mutation",
    [
        smaller_rings,
        smaller_leads,
        one_reader_ignored,
        every_view_in_its_row,
        a_sum_for_rows,
        whole_tensors_for_rows,
    ],
)
def test_a_mistake_is_seen(mutation: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert num_wrong() > 0
