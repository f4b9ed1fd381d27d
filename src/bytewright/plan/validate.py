"""The validator: whether placements are a plan for a problem, decided without any solver's help.

It knows the problem and the places and nothing else of the planner: when buffers meet, how far apart they must be and
what an address is a multiple of are worked out here once more, from the fields alone. It is short enough to be read in
one go, goes through time once, and runs on every plan that `solve` returns.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from bytewright.plan.problem import Buffer, Pool, Problem
from bytewright.plan.solution import Placement

# After so many pairs that are too near each other the rest is not looked for.
MAX_PAIRS = 1000
# No address is as large: any two of them can be added in 64 bits, with a sign.
END_OF_ADDRESSES = 1 << 62


class Reason(Enum):
    """What can be wrong with placements."""

    MISSING = "a buffer has no place"
    UNKNOWN_BUFFER = "a place belongs to no buffer"
    PLACED_TWICE = "a buffer has two places"
    UNKNOWN_POOL = "the pool does not exist"
    NOT_A_CANDIDATE = "the buffer may not be in this pool"
    NEGATIVE_OFFSET = "the offset is negative"
    PAST_CAPACITY = "the buffer ends past the pool's capacity"
    PAST_ADDRESSES = "the buffer ends past all addresses"
    MISALIGNED = "the address is not a multiple of the alignment"
    MOVED_FIXED = "the buffer is not at its fixed offset"
    OVERLAP = "two coexisting buffers share bytes"
    BROKEN_CONTRACT = "two coexisting buffers are nearer than their contract allows"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a plan, with the buffers it concerns."""

    reason: Reason
    buffers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reason.value}: {', '.join(self.buffers)}"


def validate(problem: Problem, placements: Sequence[Placement]) -> tuple[Fault, ...]:
    """The faults of the placements; none means that they are a plan for the problem.

    All faults of single buffers are found, and of pairs the first `MAX_PAIRS`.
    """
    violations: list[Fault] = []
    buffers = {buffer.name: buffer for buffer in problem.buffers}
    pools = {pool.name: pool for pool in problem.pools}
    place_of: dict[str, Placement] = {}
    for placement in placements:
        if placement.buffer not in buffers:
            violations.append(Fault(Reason.UNKNOWN_BUFFER, (placement.buffer,)))
        elif placement.buffer in place_of:
            violations.append(Fault(Reason.PLACED_TWICE, (placement.buffer,)))
        else:
            place_of[placement.buffer] = placement
    for buffer in problem.buffers:
        if buffer.name in place_of:
            placement = place_of[buffer.name]
            reasons = _faults_alone(pools.get(placement.pool), buffer, placement.offset)
            violations.extend(Fault(reason, (buffer.name,)) for reason in reasons)
        else:
            violations.append(Fault(Reason.MISSING, (buffer.name,)))
    return (*violations, *islice(_faults_of_pairs(problem, place_of), MAX_PAIRS))


def _faults_alone(pool: Pool | None, buffer: Buffer, offset: int) -> Iterator[Reason]:
    if pool is None:
        yield Reason.UNKNOWN_POOL
        return
    if buffer.candidates and pool.name not in [candidate.pool for candidate in buffer.candidates]:
        yield Reason.NOT_A_CANDIDATE
    if offset < 0:
        yield Reason.NEGATIVE_OFFSET
    if pool.capacity_bytes is not None and offset + buffer.size_bytes > pool.capacity_bytes:
        yield Reason.PAST_CAPACITY
    address = pool.base_address + offset
    if address + buffer.size_bytes >= END_OF_ADDRESSES:
        yield Reason.PAST_ADDRESSES
    if address % buffer.alignment != 0 or address % pool.alignment != 0:
        yield Reason.MISALIGNED
    if buffer.fixed_offset is not None and offset != buffer.fixed_offset:
        yield Reason.MOVED_FIXED


def _faults_of_pairs(problem: Problem, place_of: dict[str, Placement]) -> Iterator[Fault]:
    buffers = {b.name: b for b in problem.buffers if b.size_bytes and b.name in place_of}
    agreed: set[frozenset[str]] = set()
    for contract in problem.contracts:
        pair = frozenset((contract.first, contract.second))
        agreed.add(pair)
        if not pair <= buffers.keys() or place_of[contract.first].pool != place_of[contract.second].pool:
            continue
        distance = place_of[contract.second].offset - place_of[contract.first].offset
        if -contract.below_bytes < distance < contract.above_bytes and _meet(
            buffers[contract.first], buffers[contract.second]
        ):
            yield Fault(Reason.BROKEN_CONTRACT, _by_birth(buffers, pair))
    seen: set[frozenset[str]] = set()
    for first, second in _overlaps(buffers, place_of, {name for pair in agreed for name in pair}):
        pair = frozenset((first, second))
        if pair not in agreed and pair not in seen:
            seen.add(pair)
            yield Fault(Reason.OVERLAP, _by_birth(buffers, pair))


def _by_birth(buffers: dict[str, Buffer], names: frozenset[str]) -> tuple[str, ...]:
    """The names, who begins first in front."""
    return tuple(sorted(names, key=lambda name: (min(buffers[name].lifetimes), name)))


def _meet(first: Buffer, second: Buffer) -> bool:
    """Whether some tick lies in a lifetime of each."""
    return any(
        max(lower, other_lower) < min(upper, other_upper)
        for lower, upper in first.lifetimes
        for other_lower, other_upper in second.lifetimes
    )


def _overlaps(
    buffers: dict[str, Buffer], place_of: dict[str, Placement], contracted: set[str]
) -> Iterator[tuple[str, str]]:
    """Pairs that share bytes at some tick, contract or not, in order of time; some of them more than once."""
    ends: list[tuple[int, bool, int, str]] = []  # tick, whether it begins, position, name: ends come first
    for position, (name, buffer) in enumerate(buffers.items()):
        for lower, upper in _joined(buffer.lifetimes):
            ends += [(lower, True, position, name), (upper, False, position, name)]
    alive: dict[str, tuple[_Row, _Row]] = {}
    for _, begins, _, name in sorted(ends):
        place, size = place_of[name], buffers[name].size_bytes
        plain, crowd = alive.setdefault(place.pool, (_Row(), _Row()))
        if not begins:
            (plain if plain.holds(place.offset, name) else crowd).remove(place.offset, name)
            continue
        found = [*plain.overlapping(place.offset, size, True), *crowd.overlapping(place.offset, size, False)]
        yield from ((other, name) for other in found)
        # What may lie over others is kept apart, so that those in the plain row never overlap each other.
        (crowd if found or name in contracted else plain).add(place.offset, size, name)


def _joined(lifetimes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ticks, each once."""
    joined: list[tuple[int, int]] = []
    for lower, upper in sorted(lifetimes):
        if joined and lower <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(upper, joined[-1][1]))
        else:
            joined.append((lower, upper))
    return joined


class _Row:
    """Buffers that are alive in one pool, by offset."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, int]] = []  # offset, name, size
        self.largest = 0

    def add(self, offset: int, size: int, name: str) -> None:
        insort(self.rows, (offset, name, size))
        self.largest = max(self.largest, size)

    def holds(self, offset: int, name: str) -> bool:
        at = bisect_left(self.rows, (offset, name))
        return at < len(self.rows) and self.rows[at][:2] == (offset, name)

    def remove(self, offset: int, name: str) -> None:
        del self.rows[bisect_left(self.rows, (offset, name))]

    def overlapping(self, offset: int, size: int, are_apart: bool) -> Iterator[str]:
        """Who shares bytes with `[offset, offset + size)`; of buffers that lie apart only one reaches in from below."""
        above = bisect_left(self.rows, (offset,))
        for at in range(above - 1, -1, -1):
            other, name, other_size = self.rows[at]
            if other + other_size > offset:
                yield name
            if are_apart or other + self.largest <= offset:
                break
        for at in range(above, len(self.rows)):
            other, name, _ = self.rows[at]
            if other >= offset + size:
                break
            yield name
