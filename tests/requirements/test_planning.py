"""Requirements U3 to U7, as far as the planner itself makes them true."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bytewright.diagnostics import CompileError
from bytewright.plan import solve as solve_module
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.solution import Placement, Status
from bytewright.plan.solve import SOLVERS, register_solver, solve
from bytewright.plan.validate import Reason, validate

BUFFERS = (
    Buffer("input", 48, ((0, 3),), alignment=16),
    Buffer("scratch", 20, ((1, 2),), alignment=4),
    Buffer("hidden", 32, ((1, 5),), alignment=16),
    Buffer("output", 10, ((4, 9),)),
)


def test_u3_coexisting_buffers_overlap_only_as_far_as_a_contract_says():
    apart = solve(Problem(BUFFERS, (Pool("p"),)))
    assert apart.pools[0].top_bytes == 100
    problem = Problem(BUFFERS, (Pool("p"),), (Contract("input", "hidden", 16, 48),))
    shared = solve(problem)
    assert shared.pools[0].top_bytes < 100
    assert validate(problem, shared.placements) == ()
    reasons = {violation.reason for violation in validate(Problem(BUFFERS, (Pool("p"),)), shared.placements)}
    assert reasons == {Reason.OVERLAP}


def test_u3_a_plan_that_does_not_validate_is_never_returned(monkeypatch):
    monkeypatch.setattr(solve_module, "SOLVERS", dict(SOLVERS))
    register_solver("all at zero", lambda problem, _: [Placement(b.name, "p", 0) for b in problem.buffers])
    with pytest.raises(CompileError) as caught:
        solve(Problem(BUFFERS, (Pool("p"),)), "all at zero")
    assert caught.value.diagnostics[0].code == "BW401"


def test_u4_capacities_are_hard():
    assert solve(Problem(BUFFERS, (Pool("p", 100),))).pools[0].top_bytes == 100
    assert solve(Problem(BUFFERS, (Pool("p", 99),))).status is Status.INFEASIBLE


def test_u4_alignment_is_the_placed_buffers_own_and_fixed_offsets_hold():
    buffers = (Buffer("x", 10, ((0, 1),), fixed_offset=0), Buffer("y", 8, ((0, 1),), alignment=16))
    solution = solve(Problem(buffers, (Pool("p"),)))
    assert (solution.placement_of["x"].offset, solution.placement_of["y"].offset) == (0, 16)


def test_u4_candidates_once_ruled_out_stay_out():
    buffers = tuple(
        Buffer(f"b{k}", 40, ((0, 1),), candidates=(Candidate("p"), Candidate("q"))) for k in range(3)
    )
    solution = solve(Problem(buffers, (Pool("p", 80), Pool("q", 40), Pool("roomy"))))
    assert sorted(placement.pool for placement in solution.placements) == ["p", "p", "q"]
    assert solve(Problem(buffers, (Pool("p", 80), Pool("q", 39), Pool("roomy")))).status is Status.INFEASIBLE


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_u5_every_plan_states_its_bound_and_whether_it_is_optimal(solver):
    solution = solve(Problem(BUFFERS, (Pool("p"),)), solver)
    use = solution.pools[0]
    assert use.lower_bound_bytes <= use.top_bytes
    assert use.optimal == (solution.status is Status.OPTIMAL)
    assert use.lower_bound_bytes == 100


def test_u5_infeasible_problems_yield_a_small_conflicting_set():
    solution = solve(Problem(BUFFERS, (Pool("p", 75),)))
    assert set(solution.infeasible_set) <= {"input", "scratch", "hidden"}
    assert len(solution.infeasible_set) == 2
    assert solution.irreducible


def test_u6_plans_do_not_depend_on_hash_seed_or_native_core():
    script = (
        "import sys\n"
        "from bytewright.plan.problem import Buffer, Pool, Problem\n"
        "from bytewright.plan.solve import solve\n"
        "bs = tuple(Buffer(f'b{k}', 5 + k * 13 % 17, ((k, k + 3 + k % 4),)) for k in range(24))\n"
        "pools = (Pool('p', 60), Pool('q'))\n"
        "print(solve(Problem(bs, pools), node_budget=3000, native=sys.argv[1] == 'c').placements)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, core],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, core in (("0", "c"), ("77", "c"), ("5", "python"))
    }
    assert len(outputs) == 1


def test_u7_a_users_solver_is_selected_by_name_and_an_unknown_one_lists_the_known(monkeypatch):
    monkeypatch.setattr(solve_module, "SOLVERS", dict(SOLVERS))

    def one_above_the_other(problem, _node_budget):
        offset, places = 0, []
        for buffer in problem.buffers:
            offset = -(-offset // buffer.alignment) * buffer.alignment
            places.append(Placement(buffer.name, "p", offset))
            offset += buffer.size_bytes
        return places

    register_solver("tower", one_above_the_other)
    problem = Problem(BUFFERS, (Pool("p"),))
    assert solve(problem, "tower").placement_of["output"].offset == 112
    with pytest.raises(CompileError) as caught:
        solve(problem, "towr")
    assert caught.value.diagnostics[0].code == "BW604"
    assert caught.value.diagnostics[0].help == "known: auto, exact, first_fit, hill_climb, tower"
