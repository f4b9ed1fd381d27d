"""The order in which the kernels of a segment make their rows, and how many rows of each tensor it keeps.

A segment runs in turns. In each, a kernel makes `rate` rows, so many that all keep pace: a kernel whose consumer has a
stride of two makes two rows where that makes one. Faster kernels run in loops inside the turn, before slower ones:

    for turn: { for part in 2: { conv_1; conv_2 }  conv_3 }      rates 2, 2, 1

A kernel whose consumer is faster, as of one that doubles rows, comes after it in a turn, so the consumer reads what
earlier turns have made.

Row `u + lead` is what a kernel makes when it runs for the u-th time; its lead is at least what its consumers need, so
that the rows under a window are there. Rows that a tensor does not have are no work. A tensor's ring has as many rows
as there are between the oldest that a consumer still needs and the newest, at any time: with the least lead that is the
height of the window. Where one consumer needs rows much later than another, leads are raised as long as rings shrink.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import lcm

from bytewright.ir.analyses.rows import RowWindow

_EARLIEST = -(1 << 40)  # a lead below any that a consumer asks for


@dataclass(frozen=True, slots=True)
class Link:
    """That a kernel reads what another one of the segment makes.

    Attributes:
        producer: Its number in the segment's order.
        consumer: The same of the kernel that reads.
        window: The rows that a row of the consumer needs.
    """

    producer: int
    consumer: int
    window: RowWindow


@dataclass(frozen=True, slots=True)
class Maker:
    """A kernel of a segment, as far as rows go.

    Attributes:
        num_rows: Of its output.
        row_bytes: Of one row of it; 0 where the output is not kept as a ring.
    """

    num_rows: int
    row_bytes: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each kernel makes which row.

    Attributes:
        rates: Rows that each kernel makes in a turn; each rate is a multiple of the next smaller one.
        leads: Of each kernel: the row that it makes in turn 0 first.
        ring_rows: Rows to keep of each output that is read within the segment.
        turns: The first turn in which some kernel makes a row that its tensor has, and the one after the last.
    """

    rates: tuple[int, ...]
    leads: tuple[int, ...]
    ring_rows: tuple[int, ...]
    turns: tuple[int, int]


def schedule_of(makers: Sequence[Maker], links: Sequence[Link]) -> Schedule | None:
    """The schedule of kernels in an order in which each stands behind those that it reads; None if they keep no pace.

    All kernels must be connected by links. A kernel that nobody reads has no ring: its entry in `ring_rows` is 0.
    """
    return _schedule(tuple(makers), tuple(links))


@lru_cache(maxsize=1 << 14)  # networks repeat themselves
def _schedule(makers: tuple[Maker, ...], links: tuple[Link, ...]) -> Schedule | None:
    rates = _rates(len(makers), links)
    if rates is None:
        return None
    read = {link.producer for link in links}
    unread = [_EARLIEST if number in read else 0 for number in range(len(makers))]
    leads = _raised(makers, links, _least_leads(unread, links), max(rates))
    rings = tuple(min(n, maker.num_rows) for n, maker in zip(_ring_rows(links, leads), makers, strict=True))
    first = min(-lead // rate for lead, rate in zip(leads, rates, strict=True))
    last = max((m.num_rows - 1 - lead) // rate for m, lead, rate in zip(makers, leads, rates, strict=True))
    return Schedule(rates, tuple(leads), rings, (first, last + 1))


def _rates(count: int, links: Sequence[Link]) -> tuple[int, ...] | None:
    """Rates that fit every stride; None if there are none, or if loops of them do not nest."""
    beside: list[list[tuple[int, int, int]]] = [
        [] for _ in range(count)
    ]  # others, and how much faster they are
    for link in links:
        beside[link.consumer].append((link.producer, link.window.stride, link.window.divisor))
        beside[link.producer].append((link.consumer, link.window.divisor, link.window.stride))
    found: dict[int, Fraction] = {0: Fraction(1)}
    pending = [0]
    while pending:
        number = pending.pop()
        for other, more, less in beside[number]:
            rate = found[number] if more == less else found[number] * more / less
            if other not in found:
                found[other] = rate
                pending.append(other)
            elif found[other] != rate:
                return None
    if len(found) != count:
        return None
    scale = lcm(*(rate.denominator for rate in found.values()))
    least = min(found.values()) * scale
    rates = [found[number] * scale / least for number in range(count)]
    if any(rate.denominator != 1 for rate in rates):
        return None
    whole = tuple(int(rate) for rate in rates)
    falling = sorted(set(whole), reverse=True)
    nests = all(fast % slow == 0 for fast, slow in pairwise(falling))
    return whole if nests else None


def _least_leads(leads: list[int], links: Sequence[Link]) -> list[int]:
    """The leads, raised where a consumer needs a row before it would be made.

    A consumer's u-th run comes after the producer's `stride * u + stride - 1`-th, and needs row
    `stride * (u + lead) + last` of it. One that is faster, whose window has a divisor and a stride of 1, comes after
    the producer's run of the turn before, `u / divisor - 1`, and needs row `(u + lead + last) / divisor`, both rounded
    down; of all u, those that end a turn are behind the most.
    """
    raised = list(leads)
    for link in sorted(links, key=lambda link: -link.consumer):  # consumers stand behind producers
        window = link.window
        newest = window.stride * raised[link.consumer] + window.last
        if window.divisor > 1:
            needed = (newest + window.divisor - 1) // window.divisor + 1
        else:
            needed = newest - window.stride + 1
        raised[link.producer] = max(raised[link.producer], needed)
    return raised


def _ring_rows(links: Sequence[Link], leads: Sequence[int]) -> list[int]:
    """Rows between the oldest that some consumer still needs and the newest, both included.

    When a producer has run for the `stride * u + stride - 1`-th time, its consumer is about to run for the u-th, and
    needs rows from `stride * (u + lead) + first` on. Before a faster one's u-th run the newest row is
    `u / divisor - 1 + lead`, and the oldest that it needs `(u + lead + first) / divisor`: no others are as far apart as
    where a turn begins.
    """
    rings = [0] * len(leads)
    for link in links:
        window = link.window
        oldest = window.stride * leads[link.consumer] + window.first
        if window.divisor > 1:
            rows = leads[link.producer] - oldest // window.divisor
        else:
            rows = leads[link.producer] + window.stride - oldest
        rings[link.producer] = max(rings[link.producer], rows)
    return rings


def _raised(makers: Sequence[Maker], links: Sequence[Link], leads: list[int], most: int) -> list[int]:
    """The leads, each raised by 1 to `most` as long as all rings together become smaller.

    Where each is read once by a kernel that is not faster, every ring is just as high as the window over it. How many
    rows a faster one needs in a turn depends on which of its rows the turn begins with.
    """
    if len({link.producer for link in links}) == len(links) and all(l.window.divisor == 1 for l in links):
        return leads

    def ring_bytes(candidate: Sequence[int]) -> int:
        rings = zip(_ring_rows(links, candidate), makers, strict=True)
        return sum(min(rows, maker.num_rows) * maker.row_bytes for rows, maker in rings)

    best, is_better = leads, True
    while is_better:
        is_better = False
        for number, more in product(range(len(makers)), range(1, most + 1)):
            candidate = list(best)
            candidate[number] += more
            candidate = _least_leads(candidate, links)
            if ring_bytes(candidate) < ring_bytes(best):
                best, is_better = candidate, True
    return best
