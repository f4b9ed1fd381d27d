"""The validator: whether placements are a plan for a problem, decided without any solver's help.

It shares no code with the solvers, is short enough to be read in one go, and looks at every pair of
buffers that could coexist: quadratic at worst. It runs on every plan that `solve` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bytewright.plan.problem import Buffer, Problem, coexist
from bytewright.plan.solution import Placement


class Reason(Enum):
    """What can be wrong with placements."""

    MISSING = "a buffer has no place"
    UNKNOWN_BUFFER = "a place belongs to no buffer"
    PLACED_TWICE = "a buffer has two places"
    UNKNOWN_POOL = "the pool does not exist"
    NOT_A_CANDIDATE = "the buffer may not be in this pool"
    NEGATIVE_OFFSET = "the offset is negative"
    PAST_CAPACITY = "the buffer ends past the pool's capacity"
    MISALIGNED = "the address is not a multiple of the alignment"
    MOVED_FIXED = "the buffer is not at its fixed offset"
    OVERLAP = "two coexisting buffers share bytes"
    BROKEN_CONTRACT = "two coexisting buffers are nearer than their contract allows"


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a plan, with the buffers it concerns."""

    reason: Reason
    buffers: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reason.value}: {', '.join(self.buffers)}"


def validate(problem: Problem, placements: Sequence[Placement]) -> tuple[Violation, ...]:
    """Every fault of the placements; none means that they are a plan for the problem."""
    violations: list[Violation] = []
    buffers = {buffer.name: buffer for buffer in problem.buffers}
    place_of: dict[str, Placement] = {}
    for placement in placements:
        if placement.buffer not in buffers:
            violations.append(Violation(Reason.UNKNOWN_BUFFER, (placement.buffer,)))
        elif placement.buffer in place_of:
            violations.append(Violation(Reason.PLACED_TWICE, (placement.buffer,)))
        else:
            place_of[placement.buffer] = placement
    for buffer in problem.buffers:
        if buffer.name in place_of:
            reasons = _faults_alone(problem, buffer, place_of[buffer.name])
            violations.extend(Violation(reason, (buffer.name,)) for reason in reasons)
        else:
            violations.append(Violation(Reason.MISSING, (buffer.name,)))
    placed = [buffer for buffer in problem.buffers if buffer.name in place_of]
    violations.extend(_faults_of_pairs(problem, placed, place_of))
    return tuple(violations)


def _faults_alone(problem: Problem, buffer: Buffer, placement: Placement) -> list[Reason]:
    pools = [pool for pool in problem.pools if pool.name == placement.pool]
    if not pools:
        return [Reason.UNKNOWN_POOL]
    pool, offset = pools[0], placement.offset
    reasons: list[Reason] = []
    if buffer.candidates and pool.name not in [candidate.pool for candidate in buffer.candidates]:
        reasons.append(Reason.NOT_A_CANDIDATE)
    if offset < 0:
        reasons.append(Reason.NEGATIVE_OFFSET)
    if pool.capacity_bytes is not None and offset + buffer.size_bytes > pool.capacity_bytes:
        reasons.append(Reason.PAST_CAPACITY)
    address = pool.base_address + offset
    if address % buffer.alignment != 0 or address % pool.alignment != 0:
        reasons.append(Reason.MISALIGNED)
    if buffer.fixed_offset is not None and offset != buffer.fixed_offset:
        reasons.append(Reason.MOVED_FIXED)
    return reasons


def _faults_of_pairs(
    problem: Problem, placed: list[Buffer], place_of: dict[str, Placement]
) -> list[Violation]:
    contract_of = {frozenset((contract.first, contract.second)): contract for contract in problem.contracts}
    violations: list[Violation] = []
    rows = [(buffer.first_tick, buffer.last_tick, buffer, place_of[buffer.name]) for buffer in placed]
    rows.sort(key=lambda row: row[0])
    for index, (_, end, a, at_a) in enumerate(rows):
        top = at_a.offset + a.size_bytes
        for later in range(index + 1, len(rows)):
            start, _, b, at_b = rows[later]
            if start >= end:
                break  # neither b nor any later one has begun before a has ended for good
            if at_a.pool != at_b.pool:
                continue
            contract = contract_of.get(frozenset((a.name, b.name))) if contract_of else None
            if contract is not None:
                distance = place_of[contract.second].offset - place_of[contract.first].offset
                if -contract.below_bytes < distance < contract.above_bytes and coexist(a, b):
                    violations.append(Violation(Reason.BROKEN_CONTRACT, (a.name, b.name)))
            elif at_a.offset < at_b.offset + b.size_bytes and at_b.offset < top and coexist(a, b):
                violations.append(Violation(Reason.OVERLAP, (a.name, b.name)))
    return violations
