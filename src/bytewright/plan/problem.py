"""The planning problem: buffers with lifetimes, pools with capacities, contracts between pairs.

Everything here is a number or a name: the planner knows neither graph nor C. A `Problem` that exists is
valid: its constructor collects everything that is wrong and raises it at once. All sizes, offsets and sums
stay below 2**62, so that the native search can add any two of them in 64 bits.

Whether two buffers exist at the same time is asked through `coexist` alone, so that a partial order of
steps can one day replace the clock; sweeps over time elsewhere are shortcuts that rely only on
`Buffer.first_tick` and `Buffer.last_tick` bounding every lifetime.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from bytewright.diagnostics import CompileError, Diagnostic, first_of

# Offsets, sizes and any sum of sizes are smaller than this.
LIMIT_BYTES = 1 << 62

Lifetime = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A pool that a buffer may end in.

    Attributes:
        pool: The pool's name.
        cost: What it costs to put the buffer there (bytes moved, say), at least 0. None stands for the
            candidate's position in the preference order times the buffer's size.
    """

    pool: str
    cost: int | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """One thing to be placed.

    Attributes:
        name: Unique in the problem.
        size_bytes: At least 0; a buffer of 0 bytes shares bytes with nobody.
        lifetimes: Half-open intervals of ticks `[lower, upper)`, at least one, each not empty. In none but
            these ticks do the buffer's bytes matter.
        alignment: A power of two; the buffer's *address* (base of the pool plus offset) is a multiple of it.
        fixed_offset: The offset it must have, in whichever pool it ends.
        candidates: The pools it may end in, preferred first; empty means all pools in the problem's order.
    """

    name: str
    size_bytes: int
    lifetimes: tuple[Lifetime, ...]
    alignment: int = 1
    fixed_offset: int | None = None
    candidates: tuple[Candidate, ...] = ()

    @property
    def first_tick(self) -> int:
        """The first tick of all lifetimes."""
        return min(lower for lower, _ in self.lifetimes)

    @property
    def last_tick(self) -> int:
        """The end of all lifetimes, one past the last tick."""
        return max(upper for _, upper in self.lifetimes)


@dataclass(frozen=True, slots=True)
class Pool:
    """A place with room for buffers.

    Attributes:
        name: Unique in the problem.
        capacity_bytes: A hard limit on the top, or None for no limit.
        alignment: A power of two: the least alignment of anything placed here.
        base_address: The address of offset 0, if known. Alignment is then that of the address; if it is
            not known, the base is taken to be aligned as `Solution` says it must be.
    """

    name: str
    capacity_bytes: int | None = None
    alignment: int = 1
    base_address: int = 0


@dataclass(frozen=True, slots=True)
class Contract:
    """How near two coexisting buffers of one pool may come to each other.

    The offsets satisfy `second <= first - below_bytes` or `second >= first + above_bytes`. Without a contract
    that is `below_bytes = size(second)`, `above_bytes = size(first)`: disjoint. Zeros mean "may share".
    """

    first: str
    second: str
    below_bytes: int
    above_bytes: int

    def in_units(self, unit: int) -> Contract:
        """The same where offsets differ by multiples of the unit alone."""
        return replace(
            self,
            below_bytes=-(-self.below_bytes // unit) * unit,
            above_bytes=-(-self.above_bytes // unit) * unit,
        )

    def most_shared(self, first_bytes: int, second_bytes: int) -> int:
        """How many bytes two buffers of these sizes can have in common, as near as they may come."""
        below = min(second_bytes - self.below_bytes, first_bytes)
        above = min(first_bytes - self.above_bytes, second_bytes)
        return max(below, above, 0)


def coexist(first: Buffer, second: Buffer) -> bool:
    """Whether the bytes of both buffers matter at some common time. The one place that answers this."""
    if not first.size_bytes or not second.size_bytes:
        return False
    return any(
        lower < other_upper and other_lower < upper
        for lower, upper in first.lifetimes
        for other_lower, other_upper in second.lifetimes
    )


def required_alignment(buffer: Buffer, pool: Pool) -> int:
    """The alignment of the buffer's address if it ends in this pool."""
    return max(buffer.alignment, pool.alignment)


def is_power_of_two(value: int) -> bool:
    """Whether the value is 1, 2, 4, ..."""
    return value > 0 and value & (value - 1) == 0


@dataclass(frozen=True)
class Problem:
    """Buffers to place in pools; valid once constructed.

    Raises:
        CompileError: BW603, one diagnostic for each thing that is wrong.
    """

    buffers: tuple[Buffer, ...]
    pools: tuple[Pool, ...]
    contracts: tuple[Contract, ...] = ()

    def __post_init__(self) -> None:
        diagnostics = first_of(
            chain(
                _check_names(self.buffers, self.pools),
                _check_pools(self.pools),
                _check_buffers(self.buffers, self.pools),
                _check_contracts(self.contracts, self.buffers),
            )
        )
        diagnostics = diagnostics or first_of(_check_fixed_pairs(self))
        if diagnostics:
            raise CompileError(diagnostics)

    @cached_property
    def pool_of_name(self) -> dict[str, Pool]:
        """Pools by name."""
        return {pool.name: pool for pool in self.pools}

    @cached_property
    def contract_gaps(self) -> dict[tuple[str, str], int]:
        """(lower, upper) -> least offset difference, for pairs with a contract only, both directions."""
        gaps: dict[tuple[str, str], int] = {}
        for contract in self.contracts:
            gaps[contract.first, contract.second] = contract.above_bytes
            gaps[contract.second, contract.first] = contract.below_bytes
        return gaps

    def candidates_of(self, buffer: Buffer) -> tuple[Candidate, ...]:
        """The buffer's candidates, with every cost filled in, preferred first."""
        listed = buffer.candidates or tuple(Candidate(pool.name) for pool in self.pools)
        return tuple(
            Candidate(c.pool, position * buffer.size_bytes if c.cost is None else c.cost)
            for position, c in enumerate(listed)
        )

    def separation(self, lower: Buffer, upper: Buffer) -> int:
        """The least `offset(upper) - offset(lower)` if `upper` is to lie above `lower`, both in one pool."""
        return self.contract_gaps.get((lower.name, upper.name), lower.size_bytes)


def _invalid(message: str, help_text: str | None = None) -> Diagnostic:
    return Diagnostic("BW603", message, help=help_text)


def _check_names(buffers: Sequence[Buffer], pools: Sequence[Pool]) -> Iterable[Diagnostic]:
    for kind, names in (("buffer", [b.name for b in buffers]), ("pool", [p.name for p in pools])):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                yield _invalid(f"two {kind}s are named '{name}'")
            seen.add(name)
    if buffers and not pools:
        yield _invalid("there is no pool")


def _check_pools(pools: Sequence[Pool]) -> Iterable[Diagnostic]:
    for pool in pools:
        if pool.capacity_bytes is not None and not 0 <= pool.capacity_bytes < LIMIT_BYTES:
            yield _invalid(f"pool '{pool.name}' has capacity {pool.capacity_bytes}; it must be 0 .. 2^62 - 1")
        if not is_power_of_two(pool.alignment) or pool.alignment >= LIMIT_BYTES:
            yield _invalid(
                f"pool '{pool.name}' has alignment {pool.alignment}, not a power of two below 2^62"
            )
        if not 0 <= pool.base_address < LIMIT_BYTES:
            yield _invalid(
                f"pool '{pool.name}' has base address {pool.base_address}; it must be 0 .. 2^62 - 1"
            )


def _check_buffers(buffers: Sequence[Buffer], pools: Sequence[Pool]) -> Iterable[Diagnostic]:
    pool_of_name = {pool.name: pool for pool in pools}
    highest_base = max((pool.base_address for pool in pools), default=0)
    coarsest = max((pool.alignment for pool in pools), default=1)
    sum_bytes = highest_base
    for buffer in buffers:
        yield from _check_buffer(buffer, pool_of_name)
        # The worst top of any plan: everything stacked, everything rounded up, above the highest fixed one.
        sum_bytes += max(buffer.size_bytes, 0) + max(buffer.alignment, coarsest) + (buffer.fixed_offset or 0)
        if sum_bytes >= LIMIT_BYTES:
            yield _invalid(
                f"with buffer '{buffer.name}' ({buffer.size_bytes} B) the sizes sum to 2^62 or more"
            )
            return


def _check_buffer(buffer: Buffer, pool_of_name: dict[str, Pool]) -> Iterable[Diagnostic]:
    name = buffer.name
    if buffer.size_bytes < 0:
        yield _invalid(f"buffer '{name}' has the negative size {buffer.size_bytes}")
    if not buffer.lifetimes:
        yield _invalid(f"buffer '{name}' has no lifetime")
    for lower, upper in buffer.lifetimes:
        if lower >= upper:
            yield _invalid(f"buffer '{name}' has the empty lifetime [{lower}, {upper})")
        if not -LIMIT_BYTES < lower < LIMIT_BYTES or not -LIMIT_BYTES < upper < LIMIT_BYTES:
            yield _invalid(f"buffer '{name}' has the lifetime [{lower}, {upper}), outside -2^62 .. 2^62")
    if not is_power_of_two(buffer.alignment) or buffer.alignment >= LIMIT_BYTES:
        yield _invalid(f"buffer '{name}' has alignment {buffer.alignment}, not a power of two below 2^62")
        return
    listed = [candidate.pool for candidate in buffer.candidates]
    for pool in sorted({pool for pool in listed if listed.count(pool) > 1}):
        yield _invalid(f"buffer '{name}' lists pool '{pool}' twice")
    for candidate in buffer.candidates:
        if candidate.pool not in pool_of_name:
            known = ", ".join(sorted(pool_of_name)) or "none"
            yield _invalid(f"buffer '{name}' may go to pool '{candidate.pool}', which does not exist", known)
        if candidate.cost is not None and not 0 <= candidate.cost < LIMIT_BYTES:
            yield _invalid(f"buffer '{name}' has cost {candidate.cost} in pool '{candidate.pool}'")
    if buffer.fixed_offset is not None:
        yield from _check_fixed(buffer, pool_of_name)


def _check_fixed(buffer: Buffer, pool_of_name: dict[str, Pool]) -> Iterable[Diagnostic]:
    offset = buffer.fixed_offset
    assert offset is not None
    if not 0 <= offset < LIMIT_BYTES:
        yield _invalid(f"buffer '{buffer.name}' is fixed at {offset}, outside 0 .. 2^62 - 1")
        return
    names = [candidate.pool for candidate in buffer.candidates] or list(pool_of_name)
    pools = [pool_of_name[name] for name in names if name in pool_of_name]
    if pools and all((pool.base_address + offset) % required_alignment(buffer, pool) for pool in pools):
        need = min(required_alignment(buffer, pool) for pool in pools)
        yield _invalid(f"buffer '{buffer.name}' is fixed at {offset}, not a multiple of {need} as an address")


def _check_contracts(contracts: Sequence[Contract], buffers: Sequence[Buffer]) -> Iterable[Diagnostic]:
    names = {buffer.name for buffer in buffers}
    seen: set[tuple[str, str]] = set()
    for contract in contracts:
        label = f"the contract between '{contract.first}' and '{contract.second}'"
        for name in (contract.first, contract.second):
            if name not in names:
                yield _invalid(f"{label} names buffer '{name}', which does not exist")
        if contract.first == contract.second:
            yield _invalid(f"{label} names one buffer twice")
        pair = (min(contract.first, contract.second), max(contract.first, contract.second))
        if pair in seen:
            yield _invalid(f"{label} is stated twice")
        seen.add(pair)
        for gap in (contract.below_bytes, contract.above_bytes):
            if not 0 <= gap < LIMIT_BYTES // 4:
                yield _invalid(f"{label} has separation {gap}; it must be 0 .. 2^60 - 1")


def _check_fixed_pairs(problem: Problem) -> Iterable[Diagnostic]:
    """Two fixed buffers that must share a pool and cannot: no plan exists whatever the capacity."""
    only_pool: list[tuple[Buffer, str]] = []
    for buffer in problem.buffers:
        if buffer.fixed_offset is not None:
            pools = problem.candidates_of(buffer)
            if len(pools) == 1:
                only_pool.append((buffer, pools[0].pool))
    for first, second, pool in _fixed_meetings(problem, only_pool):
        assert first.fixed_offset is not None
        assert second.fixed_offset is not None
        distance = second.fixed_offset - first.fixed_offset
        if distance >= problem.separation(first, second) or -distance >= problem.separation(second, first):
            continue
        yield _invalid(
            f"buffers '{first.name}' (fixed at {first.fixed_offset}, {first.size_bytes} B) and "
            f"'{second.name}' (fixed at {second.fixed_offset}, {second.size_bytes} B) coexist in pool "
            f"'{pool}' and overlap"
        )


def _fixed_meetings(
    problem: Problem, fixed: Sequence[tuple[Buffer, str]]
) -> Iterable[tuple[Buffer, Buffer, str]]:
    """Coexisting pairs of fixed buffers of one pool that may be too near each other, the one born first in front.

    Goes through time once. Most buffers have one lifetime and no contract; those alive stand in a row by offset in
    which none overlaps another, so that a new one need only look at its place. The others are looked at one by one.
    Of buffers that overlap many, the first pair is found.
    """
    contracted = {name for contract in problem.contracts for name in (contract.first, contract.second)}
    events: list[tuple[int, bool, int]] = []  # deaths come before births
    for number, (buffer, _) in enumerate(fixed):
        if buffer.size_bytes:
            events += [(buffer.first_tick, True, number), (buffer.last_tick, False, number)]
    rows: dict[str, list[tuple[int, int]]] = {}  # offset, number
    others: dict[int, None] = {}
    for _, is_birth, number in sorted(events):
        buffer, pool = fixed[number]
        row, offset = rows.setdefault(pool, []), buffer.fixed_offset or 0
        at = bisect_left(row, (offset, number))
        if not is_birth:
            others.pop(number, None)
            del row[at : at + (row[at : at + 1] == [(offset, number)])]
            continue
        is_plain = len(buffer.lifetimes) == 1 and buffer.name not in contracted
        near = [n for n in others if fixed[n][1] == pool]
        near += _overlapping(fixed, row, at, buffer) if is_plain else [n for _, n in row]
        meetings = [fixed[n][0] for n in near if coexist(fixed[n][0], buffer)]
        if not is_plain:
            others[number] = None
        elif all(n in others for n in near):
            row.insert(at, (offset, number))
        else:
            meetings = meetings[:1]
        yield from ((other, buffer, pool) for other in meetings)


def _overlapping(
    fixed: Sequence[tuple[Buffer, str]], row: Sequence[tuple[int, int]], at: int, buffer: Buffer
) -> list[int]:
    """Who shares bytes with a buffer that belongs at position `at` of a row in which none overlaps another."""
    begin = buffer.fixed_offset or 0
    found = [n for offset, n in row[max(at - 1, 0) : at] if offset + fixed[n][0].size_bytes > begin]
    while at < len(row) and row[at][0] < begin + buffer.size_bytes:
        found.append(row[at][1])
        at += 1
    return found
