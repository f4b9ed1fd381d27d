"""The bounds on an unfinished choice of pools: never above what the cheapest choice costs, found by trying all.

Alignments are 1 and every buffer is small beside the pools' sum, so a choice is possible where loads allow it.
"""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from bytewright.plan.flat import FlatProblem, flatten
from bytewright.plan.knapsack import MAX_CELLS, KnapsackTables
from bytewright.plan.problem import Buffer, Candidate, Pool, Problem
from bytewright.plan.relaxation import Relaxation
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve

NUM_TICKS = 4


def random_problem(seed: int, num_ticks: int) -> Problem:
    random = Random(seed)
    num_pools = random.randint(2, 3)
    pools = [Pool(f"p{k}", random.randint(10, 60)) for k in range(num_pools - 1)]
    pools.append(Pool("last", random.choice([None, 200])))
    buffers: list[Buffer] = []
    for number in range(random.randint(3, 7)):
        lower = random.randrange(num_ticks)
        lives = ((lower, random.randint(lower + 1, num_ticks)),)
        names = [pool.name for pool in pools]
        if random.random() < 0.3:
            random.shuffle(names)
        if random.random() < 0.2:
            names = names[: random.randint(1, num_pools)]
        costs = sorted(random.choice([0, 1, 7, random.randrange(100)]) for _ in names)
        candidates = tuple(Candidate(name, cost) for name, cost in zip(names, costs, strict=True))
        buffers.append(Buffer(f"b{number}", random.randint(1, 30), lives, candidates=candidates))
    return Problem(tuple(buffers), tuple(pools))


def loads(flat: FlatProblem, pools: dict[int, int], num_ticks: int) -> list[list[int]]:
    """By pool and tick: bytes of the buffers that were given a pool."""
    found = [[0] * num_ticks for _ in flat.capacity]
    for index, pool in pools.items():
        for lower, upper in flat.buffers[index].lifetimes:
            for tick in range(lower, upper):
                found[pool][tick] += flat.size_bytes[index]
    return found


def least_cost(flat: FlatProblem, decided: dict[int, int], num_ticks: int) -> int | None:
    """The cost of the cheapest choice that keeps to what is decided and within the capacities, by trying all."""
    best: int | None = None
    for combination in product(*flat.choices):
        pools = {index: choice.pool for index, choice in enumerate(combination)}
        if any(pools[index] != pool for index, pool in decided.items()):
            continue
        pairs = zip(loads(flat, pools, num_ticks), flat.capacity, strict=True)
        if all(max(load) <= capacity for load, capacity in pairs):
            cost = sum(choice.cost for choice in combination)
            best = cost if best is None else min(best, cost)
    return best


def cost_of(flat: FlatProblem, decided: dict[int, int]) -> int:
    """With undecided buffers at their cheapest."""
    return sum(
        next(c.cost for c in choices if c.pool == decided.get(index, c.pool))
        for index, choices in enumerate(flat.choices)
    )


def random_decisions(flat: FlatProblem, order: list[int], random: Random) -> dict[int, int]:
    """Pools for the first few buffers of an order."""
    return {
        index: random.choice(flat.choices[index]).pool for index in order[: random.randint(0, len(order))]
    }


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_the_relaxed_cost_is_a_bound_wherever_the_search_stands(first: int) -> None:
    num_raised = 0
    for seed in range(first, first + 100):
        flat = flatten(random_problem(seed, NUM_TICKS))
        order = list(range(flat.num_buffers))
        alive = [
            [i for i in order if flat.buffers[i].lifetimes[0][0] <= t < flat.buffers[i].lifetimes[0][1]]
            for t in range(NUM_TICKS)
        ]
        relaxation = Relaxation(flat, alive)
        decided = random_decisions(flat, order, Random(seed))
        for index in decided:
            relaxation.set_open(index, [t for t, buffers in enumerate(alive) if index in buffers], False)
        best = least_cost(flat, decided, NUM_TICKS)
        moves = relaxation.moving_cost(loads(flat, decided, NUM_TICKS), range(NUM_TICKS))
        if best is not None:
            assert moves is not None
            assert cost_of(flat, decided) + moves <= best
            num_raised += moves > 0
    assert num_raised > 5


def test_reopening_undoes_deciding() -> None:
    flat = flatten(random_problem(3, NUM_TICKS))
    alive = [list(range(flat.num_buffers))]
    nothing = [[0] for _ in flat.capacity]
    relaxation = Relaxation(flat, alive)
    before = relaxation.moving_cost(nothing, [0])
    relaxation.set_open(0, [0], False)
    relaxation.set_open(0, [0], True)
    assert relaxation.moving_cost(nothing, [0]) == before


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_tables_bound_what_is_alive_at_once_and_the_search_finds_the_optimum(first: int) -> None:
    num_raised = num_exact = 0
    for seed in range(first, first + 100):
        problem = random_problem(seed, 1)
        flat = flatten(problem)
        order = list(range(flat.num_buffers))
        Random(seed).shuffle(order)
        tables = KnapsackTables(flat, order)
        decided = random_decisions(flat, order, Random(seed))
        moves = tables.moving_cost([load[0] for load in loads(flat, decided, 1)], len(decided))
        best = least_cost(flat, decided, 1)
        if best is not None:
            assert moves is not None
            assert cost_of(flat, decided) + moves <= best
            num_raised += moves > 0
            num_exact += cost_of(flat, decided) + moves == best
        solution, optimum = solve(problem), least_cost(flat, {}, 1)
        if optimum is None:
            assert solution.status is Status.INFEASIBLE
        else:
            assert (solution.status, solution.cost) == (Status.OPTIMAL, optimum)
    assert num_raised > 5
    assert num_exact > 50


def test_units_are_rounded_so_that_the_bound_holds() -> None:
    # The capacity is exactly that of seven buffers, in bytes; in units it is not.
    buffers = tuple(
        Buffer(
            f"b{k}",
            99_991 - 13 * k,
            ((0, 1),),
            candidates=(Candidate("fast", 0), Candidate("slow", 5 + k % 3)),
        )
        for k in range(12)
    )
    capacity = sum(buffer.size_bytes for buffer in buffers[:7])
    solution = solve(Problem(buffers, (Pool("fast", capacity), Pool("slow"))))
    flat = flatten(Problem(buffers, (Pool("fast", capacity), Pool("slow"))))
    assert solution.status is Status.OPTIMAL
    assert solution.cost == least_cost(flat, {}, 1)


def test_many_parameters_are_split_in_few_decisions() -> None:
    # Four layers of the same sizes, as networks have them: which of the equal ones leave is not tried out.
    sizes = (16384, 64, 256, 256, 64) * 8
    buffers = tuple(
        Buffer(
            f"b{k}",
            size,
            ((0, 1),),
            candidates=(Candidate("fast", size), Candidate("near", 2 * size), Candidate("far", 3 * size)),
        )
        for k, size in enumerate(sizes)
    )
    solution = solve(Problem(buffers, (Pool("fast", 33_000), Pool("near", 50_000), Pool("far"))))
    assert solution.status is Status.OPTIMAL
    assert solution.statistics.nodes < 200_000


def test_costs_beyond_what_tables_hold_are_no_proof() -> None:
    candidates = (Candidate("a", 0), Candidate("b", 1 << 60))
    buffers = tuple(Buffer(f"b{k}", 4, ((0, 1),), candidates=candidates) for k in range(4))
    solution = solve(Problem(buffers, (Pool("a", 8), Pool("b", 100))))
    assert (solution.status, solution.cost) == (Status.OPTIMAL, 2 << 60)


def test_tables_of_many_buffers_stay_small() -> None:
    candidates = (Candidate("a", 0), Candidate("b", 7))
    buffers = tuple(Buffer(f"b{k}", 40 + k % 50, ((0, 1),), candidates=candidates) for k in range(5000))
    problem = Problem(buffers, (Pool("a", 40_000), Pool("b")))
    tables = KnapsackTables(flatten(problem), range(5000))
    assert sum(table.size for table in tables.tables) <= 1.1 * MAX_CELLS
