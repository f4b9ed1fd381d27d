"""20,000 random planning problems: status and optimum agree with CP-SAT where it proves in its limit.

The default run takes a sample; BYTEWRIGHT_TESTS=thorough takes all.
"""

from __future__ import annotations

import pytest
from plan_reference import solve_with_cp_sat, varied_problem

from bytewright.plan.request import DEFAULT_NODE_BUDGET, work_budget
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from support.tiers import THOROUGH

BATCH = 500
NUM_PROBLEMS = 20_000
SAMPLE = 5  # of each batch
# What CP-SAT may spend on one problem, in its own unit of work (a second on an idle machine).
EFFORT = 0.5
# The last question before the budget ends may go beyond it by what is done once for each buffer.
OVERRUN = 100_000


@pytest.mark.parametrize("start", range(0, NUM_PROBLEMS, BATCH))
def test_status_and_optimum_agree(start: int) -> None:
    pytest.importorskip("ortools")
    num_proved = 0
    seeds = range(start, start + BATCH) if THOROUGH else range(start, start + BATCH, BATCH // SAMPLE)
    for seed in seeds:
        problem = varied_problem(seed)
        solution = solve(problem)
        statistics = solution.statistics
        assert statistics.nodes <= DEFAULT_NODE_BUDGET, f"seed {seed}"
        assert statistics.work <= work_budget(DEFAULT_NODE_BUDGET) + OVERRUN, f"seed {seed}"
        expected = solve_with_cp_sat(problem, EFFORT)
        if expected is None:
            continue
        num_proved += 1
        if not expected.feasible:
            assert solution.status is Status.INFEASIBLE, f"seed {seed}"
            assert solution.infeasible_set, f"seed {seed}"
            continue
        assert solution.status is Status.OPTIMAL, f"seed {seed}"
        found = (solution.cost, sum(use.top_bytes for use in solution.pools))
        assert found == (expected.cost, expected.tops), f"seed {seed}"
        assert found == (solution.cost_lower_bound, solution.tops_lower_bound_bytes), f"seed {seed}"
    assert num_proved > 0.6 * len(seeds)
