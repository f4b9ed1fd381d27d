"""Schedules of rows against a simulation that runs them: every row once, rows there when needed, no ring too large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytewright.ir.analyses.rows import RowWindow
from bytewright.storage.rows.schedule import Link, Maker, Schedule, schedule_of

SAME = RowWindow(1, 0, 0)
STRIDES = tuple(map(Fraction, (1, 1, 2, 3, "1/2", "1/3")))


@dataclass(frozen=True)
class Chain:
    """Kernels and links, the kernels in order."""

    makers: tuple[Maker, ...]
    links: tuple[Link, ...]

    @property
    def schedule(self) -> Schedule | None:
        return schedule_of(self.makers, self.links)


class BrokenScheduleError(Exception):
    """A row was read that was not there."""


def runs(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Kernel and row, one run after the other, as the schedule's documentation words it: faster ones before slower."""

    def turn(rates: list[int], count: int) -> Iterator[tuple[int, int]]:
        own, *faster = rates
        if faster:
            for part in range(faster[0] // own):
                yield from turn(faster, count * (faster[0] // own) + part)
        for kernel, rate in enumerate(schedule.rates):
            if rate == own:
                yield kernel, count + schedule.leads[kernel]

    for number in range(*schedule.turns):
        yield from turn(sorted(set(schedule.rates)), number)


def simulate(chain: Chain, schedule: Schedule) -> list[int]:
    """Carries out a schedule with rings as large as it says; the rows that each kernel made.

    Raises:
        BrokenScheduleError: A kernel needs a row that is not made yet, or not kept any more.
    """
    rings: list[dict[int, int]] = [{} for _ in chain.makers]
    made = [0] * len(chain.makers)
    for kernel, row in runs(schedule):
        if not 0 <= row < chain.makers[kernel].num_rows:
            continue
        for link in chain.links:
            if link.consumer != kernel:
                continue
            for needed in link.window.rows(row):
                slots = schedule.ring_rows[link.producer]
                if not 0 <= needed < chain.makers[link.producer].num_rows:
                    continue
                if rings[link.producer].get(needed % slots) != needed:
                    raise BrokenScheduleError(f"kernel {kernel} has no row {needed} of {link.producer}")
        if schedule.ring_rows[kernel]:
            rings[kernel][row % schedule.ring_rows[kernel]] = row
        assert row == made[kernel], "rows come in order, each once"
        made[kernel] += 1
    return made


@st.composite
def windows(draw: st.DrawFn, pace: Fraction) -> RowWindow:
    """Windows of a kernel that makes one row where what it reads has `pace` rows."""
    dilation = draw(st.integers(1, 3))
    first = draw(st.integers(-4, 3))
    last = first + dilation * draw(st.integers(0, 4))
    return RowWindow(pace.numerator, first, last, pace.denominator)


@st.composite
def chains(draw: st.DrawFn, most: int = 7, strides: tuple[Fraction, ...] = STRIDES) -> Chain:
    """Connected kernels, whose rates are those of a walk: each reads one before it, and often others of its pace.

    A pace is how many rows of the first kernel's output stand beside one of another.
    """
    paces, num_rows = [Fraction(1)], [draw(st.integers(1, 40))]
    links: list[Link] = []
    for number in range(1, draw(st.integers(2, most))):
        source, stride = draw(st.integers(0, number - 1)), draw(st.sampled_from(strides))
        paces.append(paces[source] * stride)
        rows = max(1, int(num_rows[source] / stride) + draw(st.integers(-2, 2)))
        num_rows.append(rows)
        links.append(Link(source, number, draw(windows(stride))))
        for other in range(number):
            ratio = paces[number] / paces[other]
            if other != source and 1 in (ratio.numerator, ratio.denominator) and draw(st.booleans()):
                links.append(Link(other, number, draw(windows(ratio))))
    sizes = draw(st.lists(st.integers(0, 50), min_size=len(num_rows), max_size=len(num_rows)))
    makers = tuple(Maker(rows, size) for rows, size in zip(num_rows, sizes, strict=True))
    return Chain(makers, tuple(draw(st.permutations(links))))


@given(chains())
@settings(max_examples=400)
def test_every_row_is_made_once_and_is_there_when_it_is_needed(chain: Chain) -> None:
    schedule = chain.schedule
    if schedule is None:
        assert not have_rates(chain)
        return
    assert simulate(chain, schedule) == [maker.num_rows for maker in chain.makers]


@given(chains())
@settings(max_examples=200)
def test_rates_keep_pace_and_nest(chain: Chain) -> None:
    schedule = chain.schedule
    assert (schedule is not None) == have_rates(chain)
    if schedule is None:
        return
    assert gcd(*schedule.rates) == 1
    assert min(schedule.rates) == 1
    for link in chain.links:
        window = link.window
        rates = schedule.rates[link.producer], schedule.rates[link.consumer]
        assert rates[0] * window.divisor == window.stride * rates[1]


def have_rates(chain: Chain) -> bool:
    """Whether there are rates, by trying all paces: how many rows of the input one of its rows stands for."""
    paces = {0: Fraction(1)}
    for link in sorted(chain.links, key=lambda link: link.consumer):  # each reads one before it
        paces[link.consumer] = paces[link.producer] * Fraction(link.window.stride, link.window.divisor)
    slowest = max(paces.values())
    rates = {slowest / pace for pace in paces.values()}
    return all(
        rate == int(rate) and (larger / rate == int(larger / rate) or larger < rate)
        for rate, larger in product(rates, rates)
    )


@given(chains())
@settings(max_examples=200)
def test_no_ring_is_a_row_too_large(chain: Chain) -> None:
    """With the leads that were chosen: where the tensor is long enough for a steady state, one row less fails."""
    schedule = chain.schedule
    if schedule is None:
        return
    long = Chain(tuple(replace(maker, num_rows=400) for maker in chain.makers), chain.links)
    endless = long.schedule
    assert endless is not None
    for kernel, rows in enumerate(endless.ring_rows):
        if rows < 2:
            continue
        fewer = list(endless.ring_rows)
        fewer[kernel] -= 1
        with pytest.raises(BrokenScheduleError):
            simulate(long, replace(endless, ring_rows=tuple(fewer)))


@given(chains())
@settings(max_examples=200)
def test_no_kernel_runs_too_early(chain: Chain) -> None:
    """Leads of producers are enough, and where they are the least, one less is not."""
    long = Chain(tuple(replace(maker, num_rows=400, row_bytes=1) for maker in chain.makers), chain.links)
    schedule = long.schedule
    if schedule is None:
        return
    for link in chain.links:
        assert schedule.leads[link.producer] >= least_lead(link, schedule.leads)
    for kernel in {link.producer for link in chain.links}:
        leads = list(schedule.leads)
        own = [link for link in chain.links if link.producer == kernel]
        leads[kernel] = max(least_lead(link, leads) for link in own) - 1
        with pytest.raises(BrokenScheduleError):
            simulate(long, replace(schedule, leads=tuple(leads), ring_rows=(500,) * len(leads)))


def least_lead(link: Link, leads: Sequence[int]) -> int:
    """The lead of a producer with which its consumer has what it needs, tried turn by turn."""
    window, faster = link.window, max(1, link.window.divisor)

    def last_run(turn: int) -> int:
        """Of the producer, before a run of the consumer."""
        return turn // faster - 1 if faster > 1 else window.stride * (turn + 1) - 1

    return max(window.rows(turn + leads[link.consumer])[-1] - last_run(turn) for turn in range(faster))


@given(chains(most=5, strides=tuple(map(Fraction, (1, 1, 1, 2, "1/2")))))
@settings(max_examples=150, deadline=None)
def test_leads_against_all_others(chain: Chain) -> None:
    """No leads near those that were chosen have smaller rings in sum, where one kernel's lead is changed."""
    long = Chain(tuple(replace(maker, num_rows=10_000) for maker in chain.makers), chain.links)
    schedule = long.schedule
    if schedule is None:
        return
    chosen = ring_bytes(long, schedule.leads)
    assert chosen == sum(
        rows * maker.row_bytes for rows, maker in zip(schedule.ring_rows, long.makers, strict=True)
    )
    for kernel, more in product(range(len(long.makers)), range(1, 8)):
        leads = list(schedule.leads)
        leads[kernel] += more
        assert ring_bytes(long, settled(long, leads)) >= chosen


def settled(chain: Chain, leads: Sequence[int]) -> list[int]:
    """Leads with those of producers raised to what consumers need."""
    raised = list(leads)
    for link in sorted(chain.links, key=lambda link: -link.consumer):
        raised[link.producer] = max(raised[link.producer], least_lead(link, raised))
    return raised


def ring_bytes(chain: Chain, leads: Sequence[int]) -> int:
    """The least rings with which some leads work, found by the rows that are there at each reading."""
    rows = [0] * len(chain.makers)
    for link in chain.links:
        window = link.window
        for turn in range(window.divisor):
            last_run = turn // window.divisor - 1 if window.divisor > 1 else window.stride - 1
            oldest = window.rows(turn + leads[link.consumer])[0]
            rows[link.producer] = max(rows[link.producer], last_run + leads[link.producer] - oldest + 1)
    return sum(count * maker.row_bytes for count, maker in zip(rows, chain.makers, strict=True))


# By hand


def test_a_chain_of_windows() -> None:
    """Each ring is as high as the window over it; each kernel is ahead by what lies below the middle of that."""
    links = (Link(0, 1, RowWindow(1, -1, 1)), Link(1, 2, RowWindow(1, -2, 2)))
    schedule = schedule_of([Maker(10, 4)] * 3, links)
    assert schedule == Schedule((1, 1, 1), (3, 2, 0), (3, 5, 0), (-3, 10))


def test_a_stride() -> None:
    links = (Link(0, 1, RowWindow(1, -1, 1)), Link(1, 2, RowWindow(2, 0, 2)))
    schedule = schedule_of([Maker(20, 4), Maker(20, 4), Maker(10, 4)], links)
    assert schedule == Schedule((2, 2, 1), (2, 1, 0), (3, 3, 0), (-1, 10))


def test_a_pixel_of_every_second_row_needs_one_row() -> None:
    schedule = schedule_of([Maker(9, 4), Maker(5, 4)], [Link(0, 1, RowWindow(2, 0, 0))])
    assert schedule is not None
    assert schedule.ring_rows == (1, 0)


def test_a_residual_keeps_the_rows_between() -> None:
    """The second reader of tensor 0 needs its rows until the two windows are past: those from its own to two below."""
    links = (
        Link(0, 1, RowWindow(1, -1, 1)),
        Link(1, 2, RowWindow(1, -1, 1)),
        Link(0, 3, SAME),
        Link(2, 3, SAME),
    )
    schedule = schedule_of([Maker(30, 8)] * 4, links)
    assert schedule is not None
    assert schedule.ring_rows == (3, 3, 1, 0)


def test_a_ring_is_never_larger_than_its_tensor() -> None:
    schedule = schedule_of([Maker(2, 8), Maker(2, 8)], [Link(0, 1, RowWindow(1, -5, 5))])
    assert schedule is not None
    assert schedule.ring_rows == (2, 0)


def test_leads_are_raised_where_rings_shrink() -> None:
    """Kernel 1 could wait, and would then keep many rows of 0, which are large, and few of its own, which are small."""
    links = (
        Link(0, 1, RowWindow(1, 0, 0)),
        Link(0, 2, RowWindow(1, 0, 8)),
        Link(1, 3, SAME),
        Link(2, 3, SAME),
    )
    few, many = (schedule_of([Maker(99, size), *[Maker(99, 1)] * 3], links) for size in (100, 1))
    assert few is not None
    assert many is not None
    assert (few.ring_rows[0], few.ring_rows[1]) == (9, 1)
    assert sum(many.ring_rows) <= 11


def test_paces_that_contradict_each_other() -> None:
    links = (Link(0, 1, RowWindow(2, 0, 1)), Link(0, 2, SAME), Link(1, 3, SAME), Link(2, 3, SAME))
    assert schedule_of([Maker(8, 1)] * 4, links) is None


def test_paces_that_do_not_nest() -> None:
    links = (Link(0, 1, RowWindow(2, 0, 1)), Link(0, 2, RowWindow(3, 0, 2)))
    assert schedule_of([Maker(12, 1)] * 3, links) is None


def test_kernels_apart_from_each_other() -> None:
    assert schedule_of([Maker(8, 1)] * 4, [Link(0, 1, SAME), Link(2, 3, SAME)]) is None
    assert schedule_of([Maker(8, 1)] * 2, []) is None
