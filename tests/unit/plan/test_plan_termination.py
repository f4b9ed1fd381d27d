"""Every loop of the planner spends budget or ends: whatever the problem, the work stays within what was granted."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from plan_reference import varied_problem

from bytewright.plan.problem import Buffer, Contract, Pool, Problem
from bytewright.plan.request import DEFAULT_NODE_BUDGET, Goal, work_budget
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from bytewright.plan.validate import validate
from support.tiers import THOROUGH

SOLVERS = ["auto", "exact", "first_fit", "hill_climb"]
BUDGETS = [0, 1, 2, 10, 1000]
NUM_PROBLEMS = 4000 if THOROUGH else 400
# What the last question may go beyond the budget, and what proving a conflict may cost in the end.
OVERRUN = 2_000_000

# All alive at once, aligned to 16, two sizes no multiple of 16.
SIXTEEN = (592, 784, 1008, 1152, 1328, 1536, 1664, 1824, 2016, 2240, 2384, 2560, 2768, 2896, 1596, 808)


def all_at_once(sizes: tuple[int, ...], alignment: int = 16) -> Problem:
    buffers = tuple(Buffer(f"b{k}", size, ((0, 1),), alignment) for k, size in enumerate(sizes))
    return Problem(buffers, (Pool("p"),))


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_sixteen_aligned_buffers_are_proved_optimal(solver: str) -> None:
    solution = solve(all_at_once(SIXTEEN), solver)
    assert solution.status is Status.OPTIMAL
    # Each is rounded up to 16 but for the topmost, which is the one that loses most: 808, 8 bytes.
    assert solution.pools[0].top_bytes == sum(-(-size // 16) * 16 for size in SIXTEEN) - 8
    assert solution.statistics.nodes < 100


def test_seventeen_equal_outputs_are_proved_optimal() -> None:
    solution = solve(all_at_once((10,) * 17))
    assert (solution.status, solution.pools[0].top_bytes) == (Status.OPTIMAL, 16 * 16 + 10)


def test_a_gap_of_one_step_gets_the_rest_of_the_budget_and_ends() -> None:
    # Parts of different alignment, whose waste the bound does not see in full.
    sizes = (17, 29, 43, 61, 75, 91, 107, 123, 139, 155, 171, 187)
    buffers = tuple(
        Buffer(f"b{k}", size, ((k % 3, k % 3 + 2),), 1 << (k % 5)) for k, size in enumerate(sizes)
    )
    for budget in (10, 1000, 100_000):
        solution = solve(Problem(buffers, (Pool("p"),)), node_budget=budget)
        assert solution.statistics.nodes <= budget


class Watch:
    """Counts calls, so that a loop that never ends becomes a failure."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def __call__(self, _frame: FrameType, _event: str, _argument: object) -> None:
        self.left -= 1
        if self.left < 0:
            sys.setprofile(None)
            raise RuntimeError("the planner does not end")


def solve_watched(problem: Problem, solver: str, budget: int, goal: Goal) -> None:
    sys.setprofile(Watch(3_000_000))
    try:
        solution = solve(problem, solver, budget, goal)
    finally:
        sys.setprofile(None)
    assert solution.statistics.nodes <= budget
    assert solution.statistics.work <= work_budget(budget) + OVERRUN
    if solution.has_plan:
        assert validate(problem, solution.placements) == ()


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_budget_is_exceeded(solver: str, budget: int) -> None:
    first = BUDGETS.index(budget) * 7
    for seed in range(first, first + NUM_PROBLEMS, 1 if THOROUGH else 5):
        goal = Goal.DECIDE if seed % 2 else Goal.MINIMISE
        solve_watched(varied_problem(100_000 + seed), solver, budget, goal)


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_a_vast_budget_is_a_budget(solver: str) -> None:
    assert solve(all_at_once(SIXTEEN), solver, 10**30).status is Status.OPTIMAL
    assert solve(all_at_once(SIXTEEN), solver, -1).statistics.nodes == 0


def test_a_node_that_looks_at_much_counts_as_several() -> None:
    crowd = tuple(
        Buffer(f"b{k}", 100 + 37 * k % 211, ((k % 9, 9 + k % 7),), 1 << (k % 6)) for k in range(200)
    )
    solution = solve(Problem(crowd, (Pool("p"),)), node_budget=500)
    assert solution.statistics.work <= work_budget(500) + OVERRUN
    assert work_budget(DEFAULT_NODE_BUDGET) == 4_000_000_000


def test_buffers_of_no_bytes_take_no_part_in_bounds() -> None:
    """A fixed one at 70 is a floor under the top; rounded up to the step of the others it was 72, "proved"."""
    buffers = (
        Buffer("b0", 16, ((1, 2),)),
        Buffer("b1", 4, ((1, 4),), fixed_offset=4),
        Buffer("b2", 44, ((1, 3),)),
        Buffer("b3", 0, ((0, 9),), fixed_offset=70),
    )
    for capacity in (None, 72, 70):
        for solver in SOLVERS:
            solution = solve(Problem(buffers, (Pool("p", capacity),)), solver)
            if solver in ("auto", "exact"):
                assert (solution.status, solution.pools[0].top_bytes) == (Status.OPTIMAL, 70), solver
            assert not solution.has_plan or solution.pools[0].lower_bound_bytes <= 70
    short = solve(Problem(buffers, (Pool("p", 69),)))
    assert (short.status, short.infeasible_set) == (Status.INFEASIBLE, ("b3",))


def test_moving_a_buffer_of_no_bytes_makes_no_room() -> None:
    from bytewright.plan.problem import Candidate

    def choice(cost: int) -> tuple[Candidate, ...]:
        return (Candidate("p", 0), Candidate("q", cost))

    buffers = (
        Buffer("none", 0, ((0, 4),), candidates=choice(1)),
        Buffer("a", 8, ((0, 2),), candidates=choice(100)),
        Buffer("b", 8, ((1, 3),), candidates=choice(100)),
        Buffer("c", 8, ((2, 4),), candidates=choice(100)),
    )
    solution = solve(Problem(buffers, (Pool("p", 8), Pool("q", 64))))
    assert (solution.status, solution.cost, solution.cost_lower_bound) == (Status.OPTIMAL, 100, 100)


FOUND = {
    # A buffer may stay beside one placed, then another lifts it: it has to keep clear of both.
    "two lifts": (
        [("b2", 90, (0, 4), 16), ("b3", 71, (3, 7), 16), ("b4", 8, (2, 8), 16), ("b5", 84, (2, 6), 16)],
        [("b5", "b2", 0, 57), ("b4", "b5", 0, 35)],
        {},
    ),
    # Three at one offset, each held up by the next: reached only while the first may still be lifted there.
    "one offset": (
        [("b0", 7, (2, 3), 1), ("b1", 8, (2, 3), 1), ("b5", 4, (1, 3), 1)],
        [("b1", "b0", 17, 0), ("b5", "b0", 0, 17), ("b5", "b1", 11, 0)],
        {"b0": 4},
    ),
    "gaps above the sizes": (
        [("b0", 4, (2, 5), 1), ("b1", 3, (1, 4), 1), ("b4", 4, (2, 3), 1)],
        [("b1", "b0", 0, 5), ("b4", "b0", 7, 0), ("b4", "b1", 0, 16)],
        {"b0": 4},
    ),
}


@pytest.mark.parametrize("name", sorted(FOUND))
@pytest.mark.parametrize("use_native", [True, False])
def test_contracts_that_let_buffers_stay_at_the_frontier(name: str, use_native: bool) -> None:
    rows, contracts, fixed = FOUND[name]
    buffers = tuple(Buffer(n, size, (life,), a, fixed.get(n)) for n, size, life, a in rows)
    problem = Problem(buffers, (Pool("p"),), tuple(Contract(*contract) for contract in contracts))
    least = {"two lifts": None, "one offset": 12, "gaps above the sizes": 8}[name]
    for solver in ("auto", "exact"):
        solution = solve(problem, solver, native=use_native)
        assert solution.status is Status.OPTIMAL
        assert least is None or solution.pools[0].top_bytes == least


def test_a_search_with_contracts_keeps_to_the_capacity() -> None:
    sizes = {"b0": 83, "b1": 60, "b2": 38, "b3": 48, "b4": 31}
    buffers = tuple(Buffer(name, size, ((0, 1),), 16) for name, size in sizes.items())
    contracts = (
        Contract("b1", "b3", 135, 0),
        Contract("b4", "b1", 0, 21),
        Contract("b3", "b4", 82, 0),
    )
    solution = solve(Problem(buffers, (Pool("p0", base_address=12),), contracts))
    assert (solution.status, solution.pools[0].top_bytes) == (Status.OPTIMAL, 199)  # by CP-SAT
    assert solution.statistics.nodes < 1000
