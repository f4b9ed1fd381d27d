"""Going through time once: who is born and who dies at each tick.

What must hold at every time is looked at here, tick by tick, and never pair by pair: memory is that of the lifetimes,
and time that of sorting them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bytewright.plan.flat import FlatProblem


@dataclass(frozen=True, slots=True)
class Moment:
    """A tick at which something changes. Deaths come before births.

    Attributes:
        tick: The time.
        deaths: Buffers whose lifetime ends here.
        births: Buffers whose lifetime begins here.
        is_section: Whether somebody dies before anybody else is born. At no other time is anybody alive together who
            is not alive together at one of these.
    """

    tick: int
    deaths: tuple[int, ...]
    births: tuple[int, ...]
    is_section: bool


def moments(flat: FlatProblem, members: Sequence[int]) -> Iterator[Moment]:
    """Every moment of some buffers in order of time; buffers of no bytes take no part."""
    births: dict[int, list[int]] = {}
    deaths: dict[int, list[int]] = {}
    for index in members:
        if flat.size_bytes[index]:
            for lower, upper in merged_lifetimes(flat.buffers[index].lifetimes):
                births.setdefault(lower, []).append(index)
                deaths.setdefault(upper, []).append(index)
    ticks = sorted({*births, *deaths})
    for position, tick in enumerate(ticks):
        died, born = tuple(deaths.get(tick, ())), tuple(births.get(tick, ()))
        yield Moment(tick, died, born, bool(born) and ticks[position + 1] in deaths)


def merged_lifetimes(lifetimes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ticks as disjoint intervals that do not touch, ascending."""
    merged: list[tuple[int, int]] = []
    for lower, upper in sorted(lifetimes):
        if merged and lower <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], upper))
        else:
            merged.append((lower, upper))
    return merged


def count_meetings(flat: FlatProblem, members: Sequence[int]) -> tuple[int, int]:
    """How many pairs of buffers coexist, and how many buffers are alive in each section, summed.

    A pair that meets in several lifetimes counts several times.
    """
    num_pairs = num_memberships = num_alive = 0
    for moment in moments(flat, members):
        num_alive -= len(moment.deaths)
        num_pairs += len(moment.births) * num_alive + len(moment.births) * (len(moment.births) - 1) // 2
        num_alive += len(moment.births)
        num_memberships += num_alive if moment.is_section else 0
    return num_pairs, num_memberships
