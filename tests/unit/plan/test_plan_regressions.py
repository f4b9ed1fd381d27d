"""Faults that public planners have had: none of our solvers may have them."""

from __future__ import annotations

from random import Random

import pytest
from plan_reference import solve_with_cp_sat

from bytewright.plan.bounds import pool_bound
from bytewright.plan.flat import flatten
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.request import Goal
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from bytewright.plan.validate import validate
from support.tiers import THOROUGH

SOLVERS = ["auto", "exact", "first_fit", "hill_climb"]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_full_pool_does_not_come_back_with_an_overlap(solver):
    rows = [(3, 7, 55), (6, 12, 40), (2, 8, 36), (0, 5, 57)]
    buffers = tuple(Buffer(f"b{k}", size, ((lower, upper),)) for k, (lower, upper, size) in enumerate(rows))
    for capacity in (162, 148, 147):
        problem = Problem(buffers, (Pool("p", capacity),))
        solution = solve(problem, solver)
        if solution.has_plan:
            assert validate(problem, solution.placements) == ()
            assert solution.pools[0].top_bytes <= capacity
        else:
            assert capacity < 148
    two_pools = Problem(buffers, (Pool("p", 100), Pool("q", 62)))
    solution = solve(two_pools, solver)
    assert not solution.has_plan or validate(two_pools, solution.placements) == ()
    assert solve(Problem(buffers, (Pool("p", 148),))).status is Status.OPTIMAL


@pytest.mark.parametrize("solver", SOLVERS)
def test_alignment_is_that_of_the_placed_buffer(solver):
    buffers = (Buffer("x", 10, ((0, 1),), alignment=1), Buffer("y", 8, ((0, 1),), alignment=16))
    fixed = (Buffer("x", 10, ((0, 1),), fixed_offset=0), buffers[1])
    solution = solve(Problem(fixed, (Pool("p"),)), solver)
    assert solution.placement_of["y"].offset == 16
    assert solve(Problem(buffers, (Pool("p"),))).pools[0].top_bytes == 18


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_inputs_alive_from_the_start_have_two_addresses(solver):
    # The first input is read at step 1, the second at step 5; both are written before step 0.
    buffers = (Buffer("first", 16, ((0, 2),)), Buffer("second", 16, ((0, 6),)), Buffer("out", 8, ((5, 7),)))
    solution = solve(Problem(buffers, (Pool("p"),)), solver)
    assert {solution.placement_of["first"].offset, solution.placement_of["second"].offset} == {0, 16}


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_space_below_the_first_placed_buffer_is_found(solver):
    buffers = (Buffer("fixed", 8, ((0, 9),), fixed_offset=32), Buffer("small", 32, ((0, 9),)))
    solution = solve(Problem(buffers, (Pool("p", 40),)), solver, goal=Goal.DECIDE)
    assert solution.placement_of["small"].offset == 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_candidate_once_ruled_out_stays_out(solver):
    buffers = (
        Buffer("a", 10, ((0, 2),), candidates=(Candidate("q"),)),
        Buffer("b", 10, ((0, 2),), candidates=(Candidate("p"), Candidate("q"))),
        Buffer("c", 10, ((1, 3),), candidates=(Candidate("p"),)),
    )
    solution = solve(Problem(buffers, (Pool("p", 10), Pool("q", 20))), solver)
    assert {b: solution.placement_of[b].pool for b in "abc"} == {
        "a": "q",
        "b": "q",
        "c": "p",
    } or not solution.has_plan
    if solver in ("auto", "exact"):
        assert solution.status is Status.OPTIMAL


def outputs_of_odd_sizes(count: int) -> Problem:
    """An input and outputs that all live to the end, the last made in place: what a model with many heads leaves."""
    sizes = [1 + 37 * number % 100 for number in range(count)]
    outputs = tuple(
        Buffer(f"y{k}", size, ((k + 1, 2 * count),), alignment=16) for k, size in enumerate(sizes)
    )
    made = Buffer("made", sizes[-1], ((count - 1, count + 1),), alignment=16)
    image = Buffer("x", 121, ((0, count - 1),), alignment=16)
    contracts = (Contract("made", f"y{count - 1}", 0, 0), Contract("x", "y2", 3, 121))
    return Problem((image, made, *outputs), (Pool("p"),), contracts)


@pytest.mark.parametrize("count", [16, 24, 40, 64])
def test_what_alignment_wastes_is_proved_where_a_pair_may_overlap(count):
    solution = solve(outputs_of_odd_sizes(count))
    assert solution.status is Status.OPTIMAL
    assert solution.statistics.nodes < 5000


def test_a_contract_that_alignment_makes_void_is_none():
    """Both begin on multiples of 16: the one byte that they may share never is."""
    buffers = (Buffer("x", 121, ((0, 2),), alignment=16), Buffer("y", 15, ((0, 2),), alignment=16))
    problem = Problem(buffers, (Pool("p"),), (Contract("x", "y", 14, 121),))
    assert not flatten(problem).contract_gaps
    assert solve(problem).pools[0].top_bytes == 16 + 121
    weaker = (buffers[0], Buffer("y", 15, ((0, 2),)))
    shared = Problem(weaker, (Pool("p"),), (Contract("x", "y", 14, 120),))
    assert solve(shared).pools[0].top_bytes == 120 + 15


@pytest.mark.parametrize("first_seed", [0, 1000])
def test_bounds_with_contracts_and_alignments_are_never_above_the_optimum(first_seed):
    """Every pair may have a contract, sizes are odd, alignments mixed."""
    pytest.importorskip("ortools")
    for seed in range(first_seed, first_seed + (300 if THOROUGH else 12)):
        rng = Random(seed)
        buffers = tuple(
            Buffer(
                f"b{k}",
                rng.randint(1, 60),
                ((lower := rng.randrange(3), lower + rng.randint(1, 3)),),
                rng.choice([1, 8, 16]),
            )
            for k in range(rng.randint(3, 6))
        )
        contracts = tuple(
            Contract(one.name, other.name, rng.randint(0, 60), rng.randint(0, 60))
            for index, one in enumerate(buffers)
            for other in buffers[index + 1 :]
            if rng.random() < 0.4
        )
        problem = Problem(buffers, (Pool("p", base_address=rng.choice([0, 4])),), contracts)
        expected = solve_with_cp_sat(problem, 0.5)
        assert expected is not None
        flat = flatten(problem)
        assert pool_bound(flat, 0, range(len(buffers))).lower_bound_bytes <= expected.tops, f"seed {seed}"
        assert solve(problem).pools[0].top_bytes == expected.tops, f"seed {seed}"
