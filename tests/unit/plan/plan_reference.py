"""The planning problem stated to OR-tools' CP-SAT, and a generator of small random problems."""

from __future__ import annotations

import random
from dataclasses import dataclass
from math import gcd

from bytewright.diagnostics import CompileError
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem, coexist


@dataclass(frozen=True)
class Reference:
    """What CP-SAT proves: no plan, or the least cost and with it the least sum of tops."""

    feasible: bool
    cost: int = 0
    tops: int = 0


def solve_with_cp_sat(problem: Problem, effort: float = 60.0) -> Reference | None:
    """The optimum by CP-SAT, one worker; None if it does not finish."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    roof = sum(b.size_bytes + b.alignment for b in problem.buffers) + sum(
        c.above_bytes + c.below_bytes for c in problem.contracts
    )
    roof += sum(max(b.alignment, p.alignment) for b in problem.buffers for p in problem.pools)
    roof += max((b.fixed_offset or 0 for b in problem.buffers), default=0)
    offset, chosen, cost_terms = {}, {}, []
    tops = []
    for pool in problem.pools:
        limit = roof if pool.capacity_bytes is None else min(roof, pool.capacity_bytes)
        tops.append(model.new_int_var(0, limit, f"top {pool.name}"))
    for b in problem.buffers:
        offset[b.name] = model.new_int_var(0, roof, b.name)
        if b.fixed_offset is not None:
            model.add(offset[b.name] == b.fixed_offset)
        for candidate in problem.candidates_of(b):
            index = [p.name for p in problem.pools].index(candidate.pool)
            pool = problem.pools[index]
            here = chosen[b.name, pool.name] = model.new_bool_var(f"{b.name} in {pool.name}")
            cost_terms.append((candidate.cost or 0) * here)
            model.add(tops[index] >= offset[b.name] + b.size_bytes).only_enforce_if(here)
            for alignment in {b.alignment, pool.alignment} - {1}:
                multiple = model.new_int_var(0, (roof + pool.base_address) // alignment + 1, "")
                model.add(offset[b.name] + pool.base_address == alignment * multiple).only_enforce_if(here)
        model.add_exactly_one(chosen[b.name, p.name] for p in problem.pools if (b.name, p.name) in chosen)
    contracts = {(c.first, c.second): (c.below_bytes, c.above_bytes) for c in problem.contracts}
    for i, first in enumerate(problem.buffers):
        for second in problem.buffers[i + 1 :]:
            if not coexist(first, second):
                continue
            a, b = first, second
            if (b.name, a.name) in contracts:
                a, b = b, a
            below, above = contracts.get((a.name, b.name), (b.size_bytes, a.size_bytes))
            for pool in problem.pools:
                if (a.name, pool.name) in chosen and (b.name, pool.name) in chosen:
                    both = [chosen[a.name, pool.name], chosen[b.name, pool.name]]
                    is_below = model.new_bool_var("")
                    model.add(offset[b.name] <= offset[a.name] - below).only_enforce_if([*both, is_below])
                    model.add(offset[b.name] >= offset[a.name] + above).only_enforce_if([*both, ~is_below])
    model.minimize(sum(cost_terms) * (roof * len(problem.pools) + 1) + sum(tops))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    # CP-SAT's own count of work, about a second each on an idle machine: a busy one changes nothing.
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return Reference(False)
    if status != cp_model.OPTIMAL:
        return None
    cost = sum(
        (c.cost or 0) * solver.value(chosen[b.name, c.pool])
        for b in problem.buffers
        for c in problem.candidates_of(b)
    )
    return Reference(True, cost, sum(solver.value(top) for top in tops))


def minimise_with_rectangles(
    problem: Problem, seconds: float, num_workers: int = 1
) -> tuple[int | None, bool]:
    """The lowest top of one pool of unaligned buffers, by CP-SAT's rectangles, and whether it is proved.

    A statement that suits it, for comparing speed: bytes in units of their common divisor, ticks by rank, and
    the load as a redundant cumulative constraint.
    """
    from ortools.sat.python import cp_model

    unit = gcd(*(b.size_bytes for b in problem.buffers))
    ticks = sorted({tick for b in problem.buffers for pair in b.lifetimes for tick in pair})
    rank = {tick: position for position, tick in enumerate(ticks)}
    loads = [
        sum(b.size_bytes for b in problem.buffers if any(low <= tick < high for low, high in b.lifetimes))
        for tick in ticks
    ]
    model = cp_model.CpModel()
    roof = 2 * max(loads) // unit
    top = model.new_int_var(max(loads) // unit, roof, "top")
    across, up, sizes = [], [], []
    for b in problem.buffers:
        size = b.size_bytes // unit
        at = model.new_int_var(0, roof - size, b.name)
        model.add(at + size <= top)
        for low, high in b.lifetimes:
            across.append(model.new_fixed_size_interval_var(rank[low], rank[high] - rank[low], ""))
            up.append(model.new_fixed_size_interval_var(at, size, ""))
            sizes.append(size)
    model.add_cumulative(across, sizes, top)
    model.add_no_overlap_2d(across, up)
    model.minimize(top)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = num_workers
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return (unit * solver.value(top) if found else None), status == cp_model.OPTIMAL


def varied_problem(seed: int) -> Problem:
    """A third with mixed alignments and odd sizes, a third of everything at once, a third crowded in one pool."""
    if seed % 3 == 1:
        return random_problem(seed)
    rng = random.Random(seed)
    draw = _odd_problem if seed % 3 == 0 else _crowded_problem
    while True:
        try:
            return draw(rng)
        except CompileError:
            continue  # contradictory fixed buffers: draw again


def _odd_problem(rng: random.Random) -> Problem:
    alignments = rng.choice([[1, 16], [8, 16], [1, 2, 4, 8, 16], [4, 64], [16]])
    horizon = rng.randint(1, 6)
    buffers = []
    for k in range(rng.randint(2, 9)):
        lower = rng.randrange(horizon)
        alignment = rng.choice(alignments)
        buffers.append(
            Buffer(
                f"b{k}",
                0 if rng.random() < 0.08 else rng.randint(1, 100),
                ((lower, lower + rng.randint(1, horizon)),),
                alignment,
                rng.randrange(20) * rng.choice([alignment, 16]) if rng.random() < 0.12 else None,
            )
        )
    contracts: dict[tuple[int, int], Contract] = {}
    for _ in range(rng.randint(1, 4) if rng.random() < 0.3 else 0):
        first, second = rng.sample(range(len(buffers)), 2)
        below, above = (rng.choice([0, rng.randint(0, 40), rng.randint(0, 150)]) for _ in range(2))
        contracts[min(first, second), max(first, second)] = Contract(f"b{first}", f"b{second}", below, above)
    pools = tuple(
        Pool(
            f"p{k}",
            rng.choice([None, rng.randint(20, 400)]),
            rng.choice([1, 1, 8]),
            rng.choice([0, 0, 4, 12]),
        )
        for k in range(rng.choice([1, 1, 1, 2]))
    )
    return Problem(tuple(buffers), pools, tuple(contracts.values()))


def _crowded_problem(rng: random.Random) -> Problem:
    horizon = rng.randint(2, 12)
    buffers = []
    for k in range(rng.randint(6, 10)):
        lower = rng.randrange(horizon)
        buffers.append(Buffer(f"b{k}", rng.randint(1, 30), ((lower, lower + rng.randint(1, horizon)),)))
    load = max(sum(b.size_bytes for b in buffers if t in range(*b.lifetimes[0])) for t in range(2 * horizon))
    return Problem(tuple(buffers), (Pool("p", rng.choice([None, load, load + 3])),))


def random_problem(seed: int, max_buffers: int = 9) -> Problem:
    """A small problem: tight or loose, aligned, fixed, gapped, with contracts, in one to three pools."""
    rng = random.Random(seed)
    while True:
        try:
            return _random_problem(rng, max_buffers)
        except CompileError:
            continue  # contradictory fixed buffers: draw again


def _random_problem(rng: random.Random, max_buffers: int) -> Problem:
    num_buffers = rng.randint(1, max_buffers)
    horizon = rng.randint(1, 8)
    num_pools = rng.choice([1, 1, 1, 2, 2, 3])
    with_alignment, with_fixed = rng.random() < 0.5, rng.random() < 0.25
    with_gaps, with_contracts = rng.random() < 0.2, rng.random() < 0.35
    pools = tuple(
        Pool(
            f"p{k}",
            capacity_bytes=None if rng.random() < 0.15 else rng.randint(2, 6 * num_buffers // num_pools + 4),
            alignment=rng.choice([1, 1, 1, 2, 4]) if with_alignment else 1,
            base_address=rng.choice([0, 0, 2, 4, 12]) if with_alignment else 0,
        )
        for k in range(num_pools)
    )
    buffers = []
    for k in range(num_buffers):
        lifetimes = []
        for _ in range(2 if with_gaps and rng.random() < 0.5 else 1):
            lower = rng.randrange(horizon)
            lifetimes.append((lower, lower + rng.randint(1, horizon)))
        names = rng.sample([pool.name for pool in pools], rng.randint(1, num_pools))
        priced = rng.random() < 0.5
        candidates = tuple(Candidate(name, rng.randint(0, 3) if priced else None) for name in names)
        buffers.append(
            Buffer(
                f"b{k}",
                rng.choice([0, 1, 2, 3, 5, 8, 12]) if rng.random() < 0.3 else rng.randint(1, 10),
                tuple(lifetimes),
                alignment=rng.choice([1, 1, 2, 4, 8]) if with_alignment else 1,
                fixed_offset=rng.randrange(0, 16, 4) if with_fixed and rng.random() < 0.3 else None,
                candidates=candidates if rng.random() < 0.8 else (),
            )
        )
    contracts = []
    if with_contracts and num_buffers > 1:
        pairs = sorted({tuple(sorted(rng.sample(range(num_buffers), 2))) for _ in range(rng.randint(1, 5))})
        for pair in pairs:
            first, second = rng.sample(pair, 2)
            below, above = (rng.choice([0, rng.randint(0, 12)]) for _ in range(2))
            contracts.append(Contract(f"b{first}", f"b{second}", below, above))
    return Problem(tuple(buffers), pools, tuple(contracts))
