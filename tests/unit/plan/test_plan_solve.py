from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from plan_reference import random_problem

from bytewright.diagnostics import CompileError, InternalError
from bytewright.plan import native
from bytewright.plan import solve as solve_module
from bytewright.plan.flat import flatten
from bytewright.plan.instance import build_instance
from bytewright.plan.outcome import Draft, Outcome
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.request import Goal
from bytewright.plan.search import Result
from bytewright.plan.solution import Placement, Status
from bytewright.plan.solve import SOLVERS, register_solver, solve
from support.with_plan import with_plan

TIGHT = Problem(
    tuple(
        Buffer(f"b{k}", size, ((lower, upper),))
        for k, (size, lower, upper) in enumerate(
            [(4, 0, 3), (4, 3, 9), (4, 0, 6), (4, 6, 9), (4, 0, 2), (4, 2, 4), (4, 4, 7), (4, 7, 9)]
        )
    ),
    (Pool("p", 12),),
)


def test_an_empty_problem_has_an_empty_plan():
    solution = solve(Problem((), (Pool("p", 0),)))
    assert solution.status is Status.OPTIMAL
    assert (solution.placements, solution.pools[0].top_bytes) == ((), 0)


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_the_least_top_is_found_and_proved(solver):
    solution = solve(TIGHT, solver)
    assert solution.status is Status.OPTIMAL
    assert solution.pools[0].top_bytes == solution.pools[0].lower_bound_bytes == 12


def test_the_bound_rises_above_the_load_when_the_search_proves_it():
    # Circular-arc colouring: at most two are alive at any time, but two rows do not do.
    lives = {"a": [(0, 4)], "b": [(2, 6)], "c": [(4, 8)], "d": [(6, 10)], "e": [(8, 10), (0, 2)]}
    problem = Problem(tuple(Buffer(n, 1, tuple(rows)) for n, rows in lives.items()), (Pool("p"),))
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.pools[0].top_bytes == 3


def test_unexplained_answers_are_the_same_and_refusals_cost_less():
    work = {True: 0, False: 0}
    for seed in range(12):
        problem = random_problem(seed, max_buffers=9)
        found = {explain: solve(problem, explain=explain) for explain in (True, False)}
        answers = {(each.status, each.placements, each.cost) for each in found.values()}
        assert len(answers) == 1
        if not found[False].has_plan:
            assert found[False].infeasible_set == found[False].shortages == ()
            assert found[True].infeasible_set
            work = {explain: work[explain] + each.statistics.work for explain, each in found.items()}
    assert work[False] < work[True]


def test_a_budget_too_small_leaves_a_gap_and_says_so():
    problem = random_problem(4, max_buffers=9)
    crowded = Problem(
        tuple(Buffer(f"x{k}", 3 + k * 7 % 11, ((k, k + 4 + k % 5),)) for k in range(40)), (Pool("p"),)
    )
    solution = solve(crowded, node_budget=1)
    assert solution.status is Status.GAP
    assert solution.pools[0].top_bytes > solution.pools[0].lower_bound_bytes
    assert solve(problem, node_budget=1).statistics.nodes <= 1


def test_infeasible_by_load_names_the_buffers_the_tick_and_the_bytes():
    buffers = (Buffer("a", 30, ((0, 2),)), Buffer("b", 30, ((1, 3),)), Buffer("c", 5, ((1, 2),)))
    solution = solve(Problem(buffers, (Pool("p", 50),)))
    assert solution.status is Status.INFEASIBLE
    assert (solution.infeasible_set, solution.irreducible) == (("a", "b"), True)
    text = solution.diagnose().render()
    assert "2 buffers cannot be placed together: 'a', 'b'" in text
    assert "p  50 B, 60 B needed at tick 1: 10 B too few" in text
    with pytest.raises(CompileError) as caught:
        with_plan(solution)
    assert caught.value.exit_code == 3


def test_infeasible_without_any_overload_is_found_by_search():
    lives = {"a": [(0, 4)], "b": [(2, 6)], "c": [(4, 8)], "d": [(6, 10)], "e": [(8, 10), (0, 2)]}
    extra = (Buffer("far", 2, ((20, 21),)),)
    problem = Problem(tuple(Buffer(n, 1, tuple(rows)) for n, rows in lives.items()) + extra, (Pool("p", 2),))
    solution = solve(problem)
    assert solution.status is Status.INFEASIBLE
    assert (solution.infeasible_set, solution.irreducible) == (("a", "b", "c", "d", "e"), True)
    assert solution.shortages[0].needed_bytes == 3


def test_one_buffer_that_fits_nowhere_is_named_with_each_pool():
    buffers = (
        Buffer("big", 100, ((0, 1),), candidates=(Candidate("p"), Candidate("q"))),
        Buffer("s", 1, ((0, 1),)),
    )
    solution = solve(Problem(buffers, (Pool("p", 64), Pool("q", 96), Pool("r"))))
    text = solution.diagnose().render()
    assert "buffer 'big' cannot be placed" in text
    assert "p  64 B, 100 B needed: 36 B too few" in text
    assert "q  96 B, 100 B needed: 4 B too few" in text


def test_deciding_stops_at_the_capacity_and_minimising_goes_below():
    problem = Problem(
        (Buffer("a", 8, ((0, 2),)), Buffer("b", 8, ((1, 3),)), Buffer("c", 8, ((2, 4),))), (Pool("p", 99),)
    )
    assert solve(problem, goal=Goal.DECIDE).pools[0].top_bytes <= 99
    assert solve(problem).pools[0].top_bytes == 16


def test_an_unknown_solver_lists_the_known_ones():
    with pytest.raises(CompileError) as caught:
        solve(TIGHT, "magic")
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "BW604"
    assert diagnostic.help == "known: auto, exact, first_fit, hill_climb"


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(solve_module, "SOLVERS", dict(SOLVERS))


@pytest.mark.usefixtures("registry")
def test_a_registered_solver_is_measured_against_our_own_bounds():
    def stack(problem, node_budget):
        offset, places = 0, []
        for buffer in problem.buffers:
            places.append(Placement(buffer.name, problem.pools[0].name, offset))
            offset += buffer.size_bytes
        return places if node_budget else None

    register_solver("stack", stack)
    solution = solve(replace(TIGHT, pools=(Pool("p"),)), "stack")
    assert (solution.status, solution.pools[0].top_bytes, solution.pools[0].lower_bound_bytes) == (
        Status.GAP,
        32,
        12,
    )
    assert solve(TIGHT, "stack", node_budget=0).status is Status.UNKNOWN
    with pytest.raises(CompileError) as caught:
        solve(TIGHT, "stack")
    assert caught.value.diagnostics[0].code == "BW401"
    assert "ends past the pool's capacity: b3" in str(caught.value)
    with pytest.raises(CompileError, match="cannot be registered as 'stack'"):
        register_solver("stack", stack)


@pytest.mark.usefixtures("registry")
def test_a_bad_plan_from_a_solver_of_our_own_is_a_bug():
    solve_module.SOLVERS["broken"] = lambda flat, _: Outcome(
        Draft([0] * flat.num_buffers, [-1] * flat.num_buffers, 0, (0,))
    )
    with pytest.raises(InternalError, match="does not verify"):
        solve(TIGHT, "broken")


def test_progress_is_reported_with_bounds():
    seen = []
    solve(random_problem(1), progress=seen.append)
    crowded = Problem(
        tuple(Buffer(f"x{k}", 3 + k * 7 % 11, ((k, k + 4 + k % 5),)) for k in range(40)), (Pool("p"),)
    )
    solve(crowded, progress=seen.append, node_budget=5000)
    assert seen
    assert all(report.best_bytes is None or report.best_bytes >= report.lower_bound_bytes for report in seen)


def test_base_addresses_decide_alignment():
    buffers = (Buffer("a", 3, ((0, 1),)), Buffer("b", 8, ((0, 1),), alignment=16))
    solution = solve(Problem(buffers, (Pool("p", base_address=0x20000004),)))
    assert (0x20000004 + solution.placement_of["b"].offset) % 16 == 0
    assert solution.pools[0].top_bytes == 20


def test_a_contract_lets_input_and_output_share():
    buffers = (Buffer("input", 64, ((0, 2),)), Buffer("output", 64, ((1, 3),)))
    apart = solve(Problem(buffers, (Pool("p"),)))
    shared = solve(Problem(buffers, (Pool("p"),), (Contract("input", "output", 8, 64),)))
    assert (apart.pools[0].top_bytes, shared.pools[0].top_bytes) == (128, 72)
    assert shared.status is Status.OPTIMAL


def test_a_ring_of_contracts_with_different_alignments_proves_nothing():
    ring = Problem(
        tuple(Buffer(n, 8, ((0, 1),), alignment=a) for n, a in (("x", 1), ("y", 2), ("z", 4))),
        (Pool("p", 9),),
        (Contract("x", "y", 8, 0), Contract("y", "z", 8, 0), Contract("z", "x", 8, 0)),
    )
    assert solve(ring).has_plan
    level = replace(ring, buffers=tuple(replace(buffer, alignment=2) for buffer in ring.buffers))
    # What decides is whether the core's "infeasible" is passed on; the ring's is not.
    for problem, exhaustive in ((ring, False), (level, True)):
        instance = build_instance(flatten(problem), 0, range(3))
        assert instance.exhaustive is exhaustive
        answer = native.search(instance, 7, 1000)
        assert answer.result is (Result.INFEASIBLE if exhaustive else Result.UNKNOWN)


def test_plans_do_not_depend_on_hash_seeds_or_the_c_core():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from plan_reference import random_problem\n"
        "from bytewright.plan.solve import solve\n"
        "print([solve(random_problem(s), native=sys.argv[2] == 'c').placements for s in range(40)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, str(Path(__file__).parent), core],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, core in (("0", "c"), ("1", "c"), ("2", "python"))
    }
    assert len(outputs) == 1


def test_without_the_c_core_the_python_search_serves(monkeypatch):
    by_default = solve(TIGHT)
    monkeypatch.setattr(native, "AVAILABLE", False)
    by_python = solve(TIGHT)
    assert by_python.statistics.native is False
    assert by_python.placements == by_default.placements
