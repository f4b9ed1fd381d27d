"""A problem as integers: what every solver works on, in Python or in C.

Buffers and pools are indices, alignments and separations are resolved for each pool, and which pairs
coexist is computed once. Memory is proportional to the number of pairs whose lifetimes' hulls overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bytewright.plan.problem import Buffer, Contract, Problem, coexist, required_alignment
from bytewright.plan.solution import Placement

NO_LIMIT = 1 << 62


@dataclass(frozen=True, slots=True)
class Choice:
    """One pool a buffer may end in: indices and numbers only."""

    pool: int
    cost: int
    alignment: int


@dataclass(frozen=True)
class FlatProblem:
    """A problem whose buffers and pools are positions in tuples.

    Attributes:
        problem: Where it comes from; a restriction has only some of its buffers.
        buffers: The buffers themselves, for names and lifetimes.
        size_bytes: By buffer.
        fixed: By buffer; -1 if it may move.
        choices: By buffer: candidates, cheapest first (equal costs in preference order). A candidate where a
            fixed offset would be misaligned is left out: once ruled out it stays out.
        capacity: By pool; `NO_LIMIT` if there is none.
        base: By pool: the address of offset 0.
    """

    problem: Problem
    buffers: tuple[Buffer, ...]
    size_bytes: tuple[int, ...]
    fixed: tuple[int, ...]
    choices: tuple[tuple[Choice, ...], ...]
    capacity: tuple[int, ...]
    base: tuple[int, ...]

    @cached_property
    def first_tick(self) -> tuple[int, ...]:
        """By buffer."""
        return tuple(buffer.first_tick for buffer in self.buffers)

    @cached_property
    def last_tick(self) -> tuple[int, ...]:
        """By buffer."""
        return tuple(buffer.last_tick for buffer in self.buffers)

    @property
    def num_buffers(self) -> int:
        """How many buffers there are."""
        return len(self.size_bytes)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """By buffer: the buffers that coexist with it, ascending."""
        buffers = self.buffers
        lists: list[list[int]] = [[] for _ in buffers]
        alive: list[int] = []
        for index in sorted(range(len(buffers)), key=lambda i: self.first_tick[i]):
            alive = [other for other in alive if self.last_tick[other] > self.first_tick[index]]
            for other in alive:
                if coexist(buffers[index], buffers[other]):
                    lists[index].append(other)
                    lists[other].append(index)
            alive.append(index)
        return tuple(tuple(sorted(row)) for row in lists)

    @cached_property
    def _contracts(self) -> tuple[tuple[int, int, Contract], ...]:
        """Contracts that say more than that two buffers share no bytes, with the buffers that they are of.

        Both buffers begin on multiples of the weaker alignment, so the distance between them is one, too. Where the
        separations, rounded up to it, are those of two buffers without a contract, there is none.
        """
        index_of = {buffer.name: index for index, buffer in enumerate(self.buffers)}
        found: list[tuple[int, int, Contract]] = []
        for contract in self.problem.contracts:
            first, second = index_of.get(contract.first), index_of.get(contract.second)
            if first is None or second is None:
                continue
            unit = min(self.buffers[first].alignment, self.buffers[second].alignment)
            rounded = contract.in_units(unit)
            apart = Contract(contract.first, contract.second, self.size_bytes[second], self.size_bytes[first])
            if rounded != apart.in_units(unit):
                found.append((first, second, rounded))
        return tuple(found)

    @cached_property
    def contract_gaps(self) -> dict[tuple[int, int], int]:
        """(lower, upper) -> least offset difference, for pairs with a contract only, both directions."""
        gaps: dict[tuple[int, int], int] = {}
        for first, second, contract in self._contracts:
            gaps[first, second] = contract.above_bytes
            gaps[second, first] = contract.below_bytes
        return gaps

    @cached_property
    def sharing(self) -> dict[int, dict[int, int]]:
        """By buffer: those that may share bytes with it under a contract, and how many at most."""
        sharing: dict[int, dict[int, int]] = {}
        for first, second, contract in self._contracts:
            amount = contract.most_shared(self.size_bytes[first], self.size_bytes[second])
            if amount > 0:
                sharing.setdefault(first, {})[second] = amount
                sharing.setdefault(second, {})[first] = amount
        return sharing

    def separation(self, lower: int, upper: int) -> int:
        """The least offset difference if buffer `upper` is to lie above buffer `lower`."""
        return self.contract_gaps.get((lower, upper), self.size_bytes[lower])

    def restricted(self, pool: int, members: Sequence[int]) -> FlatProblem:
        """These buffers and this pool alone, without its capacity; buffers keep their relative positions."""
        return FlatProblem(
            problem=self.problem,
            buffers=tuple(self.buffers[i] for i in members),
            size_bytes=tuple(self.size_bytes[i] for i in members),
            fixed=tuple(self.fixed[i] for i in members),
            choices=tuple((Choice(0, 0, self.alignment_in(i, pool)),) for i in members),
            capacity=(NO_LIMIT,),
            base=(self.base[pool],),
        )

    def alignment_in(self, index: int, pool: int) -> int:
        """The alignment of the buffer in one of its pools."""
        return next(choice.alignment for choice in self.choices[index] if choice.pool == pool)

    def placements(self, pools: Sequence[int], offsets: Sequence[int]) -> tuple[Placement, ...]:
        """Places by index as placements by name."""
        names = [pool.name for pool in self.problem.pools]
        return tuple(
            Placement(buffer.name, names[pool], offset)
            for buffer, pool, offset in zip(self.buffers, pools, offsets, strict=True)
        )


def flatten(problem: Problem) -> FlatProblem:
    """The problem as integers."""
    index_of = {pool.name: index for index, pool in enumerate(problem.pools)}

    def choices(buffer: Buffer) -> tuple[Choice, ...]:
        found: list[Choice] = []
        for candidate in problem.candidates_of(buffer):
            pool = problem.pool_of_name[candidate.pool]
            alignment = required_alignment(buffer, pool)
            if buffer.fixed_offset is None or (pool.base_address + buffer.fixed_offset) % alignment == 0:
                found.append(Choice(index_of[pool.name], candidate.cost or 0, alignment))
        return tuple(sorted(found, key=lambda choice: choice.cost))

    return FlatProblem(
        problem=problem,
        buffers=problem.buffers,
        size_bytes=tuple(buffer.size_bytes for buffer in problem.buffers),
        fixed=tuple(-1 if b.fixed_offset is None else b.fixed_offset for b in problem.buffers),
        choices=tuple(choices(buffer) for buffer in problem.buffers),
        capacity=tuple(NO_LIMIT if p.capacity_bytes is None else p.capacity_bytes for p in problem.pools),
        base=tuple(pool.base_address for pool in problem.pools),
    )


def align_up(offset: int, alignment: int, base: int) -> int:
    """The least offset, not below the given one, whose address is a multiple of the alignment."""
    return -(-(base + offset) // alignment) * alignment - base
