"""One pool's buffers as the exact search wants them: compressed rows of integers.

Buffers of no bytes take no part: they are put back when offsets are read. Sections, neighbours and gaps are
computed once; the same arrays go to the search in C and to the one in Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from bytewright.plan.bounds import sections_of
from bytewright.plan.flat import FlatProblem, align_up
from bytewright.plan.waste import levels_of_loss


@dataclass(frozen=True)
class Instance:
    """The members of one pool. Lists are in compressed rows, see `_exact.h`, which names the same fields.

    Attributes:
        members: Indices into the flat problem, by local buffer.
        empty: Members of no bytes, with the offset they get.
        step: Every lowest position, and so every least top, is a multiple of it.
        exhaustive: Whether a search that finds nothing proves that there is nothing, see `_is_exhaustive`.
    """

    members: tuple[int, ...]
    empty: tuple[tuple[int, int], ...]
    base: int
    step: int
    num_sections: int
    has_contracts: bool
    exhaustive: bool
    sizes: array[int]
    alignments: array[int]
    fixed: array[int]
    neighbour_rows: array[int]
    neighbours: array[int]
    gaps_above: array[int]
    gaps_below: array[int]
    shared: array[int]
    section_rows: array[int]
    sections: array[int]
    orders: tuple[array[int], ...]
    rooms: array[int]
    levels: array[int]

    @property
    def num_buffers(self) -> int:
        """How many buffers take part."""
        return len(self.members)


def build_instance(flat: FlatProblem, pool: int, members: Sequence[int]) -> Instance:
    """The instance of these buffers in this pool."""
    alignment_of = {i: flat.alignment_in(i, pool) for i in members}
    real = [i for i in sorted(members) if flat.size_bytes[i]]
    local = {index: position for position, index in enumerate(real)}
    base = flat.base[pool] % max((alignment_of[i] for i in members), default=1)
    empty = tuple(
        (i, flat.fixed[i] if flat.fixed[i] >= 0 else align_up(0, alignment_of[i], base))
        for i in sorted(members)
        if not flat.size_bytes[i]
    )
    sections = list(sections_of(flat, real))
    rows: list[list[int]] = [[] for _ in real]
    for number, alive in enumerate(sections):
        for index in alive:
            rows[local[index]].append(number)
    pairs = [[j for j in flat.neighbours[i] if j in local] for i in real]
    gaps = flat.contract_gaps
    has_contracts = any((i, j) in gaps for i, row in zip(real, pairs, strict=True) for j in row)
    above, below, shared = array("q"), array("q"), array("q")
    if has_contracts:
        for i, row in zip(real, pairs, strict=True):
            for j in row:
                up, down = flat.separation(i, j), flat.separation(j, i)
                above.append(up)
                below.append(down)
                shared.append(flat.sharing.get(i, {}).get(j, 0))
    sizes = array("q", (flat.size_bytes[i] for i in real))
    alignments = array("q", (alignment_of[i] for i in real))
    fixed = array("q", (flat.fixed[i] for i in real))
    levels = levels_of_loss(zip(sizes, alignments, strict=True))
    rooms = [size + (-size & (a - 1)) if levels else size for size, a in zip(sizes, alignments, strict=True)]
    loads = [sum(flat.size_bytes[i] for i in alive) for alive in sections]
    return Instance(
        members=tuple(real),
        empty=empty,
        base=base,
        step=_step(sizes, alignments, fixed, above, base),
        num_sections=len(sections),
        has_contracts=has_contracts,
        exhaustive=_is_exhaustive(flat, real, alignment_of),
        sizes=sizes,
        alignments=alignments,
        fixed=fixed,
        neighbour_rows=row_starts(pairs),
        neighbours=array("i", (local[j] for row in pairs for j in row)),
        gaps_above=above,
        gaps_below=below,
        shared=shared,
        section_rows=row_starts(rows),
        sections=array("i", (number for row in rows for number in row)),
        orders=_orders(flat, real, rows, loads),
        rooms=array("q", rooms),
        levels=array("q", levels),
    )


def _is_exhaustive(flat: FlatProblem, real: Sequence[int], alignment_of: dict[int, int]) -> bool:
    """Whether pushing buffers down one at a time reaches a plan in which each rests on something.

    It does unless buffers can hold each other up in a ring: `b` may start where `a` starts but not just below it,
    `c` likewise on `b`, and `a` on `c`. Such a ring moves down as one if its alignments are equal. If they are
    not, plans exist that the search does not look at, so its failure proves nothing.
    """
    inside = set(real)
    rests_on: dict[int, set[int]] = {}
    for (lower, upper), gap in flat.contract_gaps.items():
        one_way = gap == 0 and flat.contract_gaps[upper, lower] > 0
        if one_way and lower in inside and upper in inside:
            rests_on.setdefault(upper, set()).add(lower)
    while True:
        supports = {lower for lowers in rests_on.values() for lower in lowers}
        ring = {
            upper: lowers & rests_on.keys()
            for upper, lowers in rests_on.items()
            if upper in supports and lowers & rests_on.keys()
        }
        if ring == rests_on:
            return len({alignment_of[i] for i in ring}) <= 1
        rests_on = ring


def row_starts(rows: Sequence[Sequence[object]]) -> array[int]:
    """Where each row begins in an array of all rows, one behind the other, and where the last ends."""
    starts = array("q", [0])
    for row in rows:
        starts.append(starts[-1] + len(row))
    return starts


def _step(sizes: array[int], alignments: array[int], fixed: array[int], gaps: array[int], base: int) -> int:
    """Positions are sums of sizes and gaps, rounded up to alignments above 1, or fixed."""
    rounding = (value for value in alignments if value > 1)
    return max(gcd(base, *sizes, *gaps, *rounding, *(value for value in fixed if value >= 0)), 1)


def _orders(
    flat: FlatProblem, real: Sequence[int], rows: Sequence[Sequence[int]], loads: Sequence[int]
) -> tuple[array[int], ...]:
    """The orders of the portfolio: by six properties, greatest first, ties by the next two named.

    Searches of this kind either succeed soon or take for ever, and which order succeeds differs from instance
    to instance, so what counts is that the orders are unlike each other.
    """
    buffers = [flat.buffers[i] for i in real]
    size = [buffer.size_bytes for buffer in buffers]
    total = [max(loads[t] for t in row) for row in rows]
    width = [buffer.last_tick - buffer.first_tick for buffer in buffers]
    area = [w * s for w, s in zip(width, size, strict=True)]
    num_sections = [len(row) for row in rows]
    degree = [len(flat.neighbours[i]) for i in real]
    keys = [
        (total, width, area),
        (num_sections, total, size),
        (size, total, width),
        (degree, width, size),
        (area, total, width),
        (width, area, total),
    ]
    return tuple(
        array("i", sorted(range(len(real)), key=lambda b, k=key: (*(-part[b] for part in k), b)))
        for key in keys
    )
