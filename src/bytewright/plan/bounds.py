"""Lower bounds: how low the top of a pool can be at best, whatever the plan.

At every time the buffers alive in a pool take at least the size of the union of their bytes. Without
contracts that is the sum of their sizes. With contracts only contracted pairs can share bytes, so by the
second Bonferroni inequality the union is at least the sum of sizes less what each contracted pair can share
at most; and since the union of fewer buffers is no larger, a buffer that would take more off than it adds is
left out. Both statements hold however many contracts meet in one buffer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bytewright.plan.flat import FlatProblem, align_up


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound on the top, and the tick it comes from if it comes from one."""

    lower_bound_bytes: int
    tick: int | None


def largest_shared(size_first: int, size_second: int, below: int, above: int) -> int:
    """How many bytes two buffers under a contract can have in common at most."""
    second_above = min(size_first - above, size_second)
    second_below = min(size_second - below, size_first)
    return max(second_above, second_below, 0)


def union_of(flat: FlatProblem, alive: Iterable[int]) -> int:
    """A lower bound on the bytes that these coexisting buffers of one pool take together."""
    members = sorted(alive)
    gaps = flat.contract_gaps
    if not gaps:
        return sum(flat.size_bytes[i] for i in members)
    shared: dict[int, dict[int, int]] = {i: {} for i in members}
    for position, first in enumerate(members):
        for second in members[position + 1 :]:
            if (first, second) in gaps:
                sizes = flat.size_bytes[first], flat.size_bytes[second]
                amount = largest_shared(*sizes, gaps[second, first], gaps[first, second])
                if amount:
                    shared[first][second] = shared[second][first] = amount
    kept = list(members)
    while kept:
        loss, worst = max((sum(shared[i].values()) - flat.size_bytes[i], -i) for i in kept)
        if loss <= 0:
            break
        kept.remove(-worst)
        for other in shared.pop(-worst):
            del shared[other][-worst]
    total = sum(flat.size_bytes[i] for i in kept)
    return total - sum(sum(row.values()) for row in shared.values()) // 2


def sections_of(flat: FlatProblem, members: Sequence[int]) -> list[tuple[int, list[int]]]:
    """(tick, buffers alive) for each time at which a birth is followed by a death.

    No other time has buffers alive together that are not together in one of these, so every pair of the
    members that coexists is in at least one section. Buffers of no bytes are in none.
    """
    events: list[tuple[int, int, int]] = []  # (tick, 0 death or 1 birth, buffer)
    for index in members:
        if flat.size_bytes[index]:
            for lower, upper in merged_lifetimes(flat.buffers[index].lifetimes):
                events.append((lower, 1, index))
                events.append((upper, 0, index))
    events.sort()
    alive: dict[int, None] = {}
    sections: list[tuple[int, list[int]]] = []
    born_at: int | None = None
    for tick, birth, index in events:
        if birth:
            alive[index] = None
            born_at = tick
        else:
            if born_at is not None:
                sections.append((born_at, sorted(alive)))
                born_at = None
            del alive[index]
    return sections


def merged_lifetimes(lifetimes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ticks as disjoint intervals that do not touch, ascending."""
    merged: list[tuple[int, int]] = []
    for lower, upper in sorted(lifetimes):
        if merged and lower <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], upper))
        else:
            merged.append((lower, upper))
    return merged


def pool_bound(flat: FlatProblem, pool: int, members: Sequence[int]) -> Bound:
    """The least top of a pool that holds these buffers, as far as single times and buffers tell."""
    best = Bound(0, None)
    for index in members:
        alignment = flat.alignment_in(index, pool)
        start = flat.fixed[index] if flat.fixed[index] >= 0 else align_up(0, alignment, flat.base[pool])
        best = max(best, Bound(start + flat.size_bytes[index], None), key=_size)
    for tick, load in loads_of(flat, members):
        best = max(best, Bound(load, tick), key=_size)
    return best


def loads_of(flat: FlatProblem, members: Sequence[int]) -> Iterable[tuple[int, int]]:
    """(tick, bytes that must be in use) at every section."""
    if flat.contract_gaps:
        for tick, alive in sections_of(flat, members):
            yield tick, union_of(flat, alive)
        return
    # Without contracts a running sum does, so that 100,000 buffers cost no more than their sorting.
    events: list[tuple[int, int]] = []
    for index in members:
        for lower, upper in merged_lifetimes(flat.buffers[index].lifetimes):
            events.append((lower, flat.size_bytes[index]))
            events.append((upper, -flat.size_bytes[index]))
    events.sort()
    load = 0
    for tick, change in events:
        load += change
        if change > 0:
            yield tick, load


def _size(bound: Bound) -> int:
    return bound.lower_bound_bytes
