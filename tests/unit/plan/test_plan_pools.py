from __future__ import annotations

from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve


def pools_of(solution) -> dict[str, str]:
    return {placement.buffer: placement.pool for placement in solution.placements}


def test_the_preferred_pool_is_used_while_there_is_room():
    buffers = tuple(Buffer(f"b{k}", 10, ((k, k + 2),)) for k in range(4))
    solution = solve(Problem(buffers, (Pool("fast", 20), Pool("slow"))))
    assert set(pools_of(solution).values()) == {"fast"}
    assert (solution.status, solution.cost) == (Status.OPTIMAL, 0)


def test_what_moves_out_is_what_costs_least():
    buffers = (
        Buffer("hot", 60, ((0, 1),), candidates=(Candidate("fast", 0), Candidate("slow", 600))),
        Buffer("cold", 60, ((0, 1),), candidates=(Candidate("fast", 0), Candidate("slow", 60))),
        Buffer("tiny", 4, ((0, 1),), candidates=(Candidate("fast", 0), Candidate("slow", 900))),
    )
    solution = solve(Problem(buffers, (Pool("fast", 64), Pool("slow"))))
    assert pools_of(solution) == {"hot": "fast", "cold": "slow", "tiny": "fast"}
    assert (solution.status, solution.cost, solution.cost_lower_bound) == (Status.OPTIMAL, 60, 60)


def test_equal_costs_are_settled_by_the_sum_of_tops():
    free = (Candidate("p", 0), Candidate("q", 0))
    buffers = (
        Buffer("a", 10, ((0, 2),), candidates=free),
        Buffer("b", 10, ((0, 1),), candidates=free),
        Buffer("c", 10, ((1, 2),), candidates=(Candidate("q", 0),)),
    )
    solution = solve(Problem(buffers, (Pool("p"), Pool("q"))))
    assert sum(use.top_bytes for use in solution.pools) == solution.tops_lower_bound_bytes == 20


def test_a_pool_full_by_fragmentation_is_learned_about():
    # Five arcs with load 2 do not fit two rows; one has to leave although no load says so.
    lives = {"a": [(0, 4)], "b": [(2, 6)], "c": [(4, 8)], "d": [(6, 10)], "e": [(8, 10), (0, 2)]}
    solution = solve(
        Problem(tuple(Buffer(n, 1, tuple(r)) for n, r in lives.items()), (Pool("p", 2), Pool("q", 9)))
    )
    assert (solution.status, solution.cost) == (Status.OPTIMAL, 1)
    assert list(pools_of(solution).values()).count("q") == 1


def test_nothing_fits_and_the_set_says_why():
    only = (Candidate("p"), Candidate("q"))
    crowd = (Buffer(n, 40, ((0, 1),), candidates=only) for n in "abc")
    buffers = (*crowd, Buffer("d", 1, ((5, 6),)))
    solution = solve(Problem(buffers, (Pool("p", 50), Pool("q", 60), Pool("r"))))
    assert solution.status is Status.INFEASIBLE
    assert (solution.infeasible_set, solution.irreducible) == (("a", "b", "c"), True)
    assert [shortage.pool for shortage in solution.shortages] == ["p", "q"]


def test_more_bytes_at_one_time_than_all_pools_have_need_no_search():
    crowd = tuple(Buffer(f"b{n}", 3, ((0, 1),)) for n in range(60))
    solution = solve(Problem(crowd, (Pool("p", 90), Pool("q", 89))))
    assert (solution.status, solution.irreducible) == (Status.INFEASIBLE, True)
    assert len(solution.infeasible_set) == 60  # 59 of them are 30 and 29
    assert solve(Problem(crowd, (Pool("p", 90), Pool("q", 90)))).status is Status.OPTIMAL


def test_a_fixed_offset_rules_out_pools_where_it_is_misaligned():
    buffer = Buffer("a", 4, ((0, 1),), alignment=8, fixed_offset=4)
    solution = solve(Problem((buffer,), (Pool("p", base_address=0), Pool("q", base_address=4))))
    assert pools_of(solution) == {"a": "q"}
    assert solution.status is Status.OPTIMAL


def test_contracts_hold_in_every_pool():
    buffers = (Buffer("i", 40, ((0, 2),)), Buffer("o", 40, ((1, 3),)), Buffer("x", 30, ((0, 3),)))
    problem = Problem(buffers, (Pool("p", 60), Pool("q", 30)), (Contract("i", "o", 5, 40),))
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert pools_of(solution) == {"i": "p", "o": "p", "x": "q"}


def test_the_gap_is_stated_when_the_budget_ends():
    buffers = tuple(Buffer(f"b{k}", 7 + k % 5, ((k % 6, k % 6 + 4),)) for k in range(30))
    problem = Problem(buffers, (Pool("fast", 60), Pool("slow", 200)))
    solution = solve(problem, node_budget=40)
    assert solution.status is Status.GAP
    assert 0 < solution.cost_lower_bound < solution.cost
    better = solve(problem, node_budget=50_000)
    assert solution.cost_lower_bound <= better.cost <= solution.cost
