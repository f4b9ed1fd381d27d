"""Small random problems: OR-tools agrees, every plan validates, and Python and C agree plan for plan."""

from __future__ import annotations

import pytest
from plan_reference import random_problem, solve_with_cp_sat

from bytewright.plan import native
from bytewright.plan.request import Goal
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from bytewright.plan.validate import validate
from support.tiers import some

BATCH = 100


def batches(first: int, last: int, quick: int = 2) -> list:
    """Batches of seeds; all but the first few are for the full run."""
    starts = range(first, last, BATCH)
    return [pytest.param(s, marks=[pytest.mark.slow] if s >= first + quick * BATCH else []) for s in starts]


@pytest.mark.parametrize("start", some(batches(0, 2100), every=2))
def test_status_and_optimum_agree_with_cp_sat(start):
    pytest.importorskip("ortools")
    for seed in range(start, start + BATCH):
        problem = random_problem(seed)
        expected = solve_with_cp_sat(problem)
        solution = solve(problem)
        assert expected is not None, f"seed {seed}: CP-SAT did not finish"
        if expected.feasible:
            assert solution.status is Status.OPTIMAL, f"seed {seed}"
            found = (solution.cost, sum(use.top_bytes for use in solution.pools))
            assert found == (expected.cost, expected.tops), f"seed {seed}"
            assert found == (solution.cost_lower_bound, solution.tops_lower_bound_bytes), f"seed {seed}"
            assert validate(problem, solution.placements) == (), f"seed {seed}"
        else:
            assert solution.status is Status.INFEASIBLE, f"seed {seed}"
            assert solution.infeasible_set, f"seed {seed}"


@pytest.mark.skipif(not native.AVAILABLE, reason="installed without a C compiler")
@pytest.mark.parametrize("start", batches(10_000, 10_600))
def test_python_and_c_agree_plan_for_plan(start):
    for seed in range(start, start + BATCH):
        problem = random_problem(seed, max_buffers=20)
        for goal in Goal:
            by_c = solve(problem, goal=goal, node_budget=1000)
            by_python = solve(problem, goal=goal, node_budget=1000, native=False)
            assert by_c.placements == by_python.placements, f"seed {seed}"
            assert by_c.statistics.nodes == by_python.statistics.nodes, f"seed {seed}"
            assert (by_c.status, by_c.infeasible_set) == (by_python.status, by_python.infeasible_set), (
                f"seed {seed}"
            )


@pytest.mark.parametrize("solver", ["first_fit", "hill_climb", "exact"])
def test_every_solver_returns_plans_that_validate_and_never_beat_the_optimum(solver):
    num_plans = 0
    for seed in range(20_000, 20_150):
        problem = random_problem(seed)
        best = solve(problem)
        solution = solve(problem, solver, node_budget=2000)
        if solution.status is Status.INFEASIBLE:
            assert best.status is Status.INFEASIBLE, f"seed {seed}"
        if solution.has_plan:
            num_plans += 1
            assert best.has_plan, f"seed {seed}"
            rank = (solution.cost, sum(use.top_bytes for use in solution.pools))
            assert rank >= (best.cost, sum(use.top_bytes for use in best.pools)), f"seed {seed}"
    assert num_plans > 50


def test_conflicting_sets_conflict_and_are_irreducible():
    from dataclasses import replace

    num_checked = 0
    for seed in range(30_000, 30_150):
        problem = random_problem(seed)
        solution = solve(problem)
        if solution.status is not Status.INFEASIBLE or not solution.irreducible:
            continue
        num_checked += 1
        members = [b for b in problem.buffers if b.name in solution.infeasible_set]

        def status(buffers, problem=problem):
            names = {b.name for b in buffers}
            contracts = tuple(c for c in problem.contracts if {c.first, c.second} <= names)
            return solve(replace(problem, buffers=tuple(buffers), contracts=contracts), goal=Goal.DECIDE)

        assert status(members).status is Status.INFEASIBLE, f"seed {seed}"
        for left_out in members:
            assert status([b for b in members if b is not left_out]).has_plan, f"seed {seed}"
    assert num_checked > 40
