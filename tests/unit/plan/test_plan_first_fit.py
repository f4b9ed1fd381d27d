from __future__ import annotations

import random

import pytest
from plan_reference import random_problem

from bytewright.plan import native
from bytewright.plan.bounds import pool_bound
from bytewright.plan.first_fit import first_fit, place_in_order, placer, standard_orders
from bytewright.plan.flat import flatten
from bytewright.plan.problem import Buffer, Pool, Problem
from bytewright.plan.solution import Status
from bytewright.plan.solve import solve
from support.tiers import THOROUGH

needs_native = pytest.mark.skipif(not native.AVAILABLE, reason="installed without a C compiler")


@needs_native
def test_c_and_python_place_alike():
    for seed in range(300):
        flat = flatten(random_problem(seed, max_buffers=25))
        place = placer(flat)
        for order in standard_orders(flat):
            assert place(order) == place_in_order(flat, order), f"seed {seed}"


def test_a_hole_is_used_and_fixed_buffers_go_first():
    buffers = (
        Buffer("wide", 4, ((0, 9),), fixed_offset=10),
        Buffer("fits below", 10, ((0, 5),)),
        Buffer("above", 11, ((0, 5),)),
    )
    flat = flatten(Problem(buffers, (Pool("p"),)))
    assert place_in_order(flat, [2, 1, 0]).offsets == [10, 0, 14]


def test_the_best_order_is_kept():
    flat = flatten(random_problem(77, max_buffers=25))
    ranks = [place_in_order(flat, order).rank for order in standard_orders(flat)]
    assert first_fit(flat).rank == min(ranks)


@needs_native
@pytest.mark.slow
def test_many_buffers_are_within_a_fifth_of_the_bound():
    count = 100_000 if THOROUGH else 25_000
    rng = random.Random(1)
    buffers = []
    for k in range(count):
        length = 1
        while rng.random() > 1 / 32:
            length += 1
        lower = rng.randrange(count)
        size = int(16 * 4096 ** rng.random())
        buffers.append(Buffer(str(k), size, ((lower, lower + length),)))
    problem = Problem(tuple(buffers), (Pool("p"),))
    flat = flatten(problem)
    attempt = first_fit(flat)
    bound = pool_bound(flat, 0, range(flat.num_buffers)).lower_bound_bytes
    assert bound <= attempt.tops[0] <= 1.2 * bound
    assert solve(problem).pools[0].top_bytes == attempt.tops[0]


@pytest.mark.parametrize("seed", range(8))
def test_what_lives_at_once_wastes_nothing_where_sizes_are_multiples_of_alignments(seed: int) -> None:
    draw = random.Random(seed)
    alignments = [draw.choice((1, 4, 64)) for _ in range(40)]
    buffers = [
        Buffer(f"b{i}", alignment * draw.randint(1, 9), ((0, 1),), alignment)
        for i, alignment in enumerate(alignments)
    ]
    buffers.append(
        Buffer("rest", 64 * 9 + 32, ((0, 1),), 64)
    )  # the last of its alignment has anything behind it
    solution = solve(Problem(tuple(buffers), (Pool("p"),)))
    assert solution.status is Status.OPTIMAL
    assert solution.statistics.nodes == 0
    assert solution.pools[0].top_bytes == sum(buffer.size_bytes for buffer in buffers)
