"""Faults that public planners have had: none of our solvers may have them."""

from __future__ import annotations

import pytest

from bytewright.plan.problem import Buffer, Candidate, Pool, Problem
from bytewright.plan.request import Goal
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from bytewright.plan.validate import validate

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
