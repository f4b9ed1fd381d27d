"""First fit of buffers that all live at once: the very places that first fit gives, in proportion to their number."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from types import FrameType

from bytewright.plan.first_fit import place_in_order, placer, standard_orders
from bytewright.plan.flat import flatten
from bytewright.plan.pile import is_pile, place_pile
from bytewright.plan.problem import Buffer, Contract, Pool, Problem
from bytewright.plan.solve import solve


def random_pile(draw: random.Random, count: int) -> Problem:
    buffers = tuple(
        Buffer(
            f"b{index}",
            draw.choice([1, 2, 3, 5, 8, 13, 40, 100, draw.randrange(1, 300)]),
            ((draw.randrange(3), 4 + draw.randrange(3)),),
            draw.choice([1, 1, 2, 4, 8, 16, 64]),
        )
        for index in range(count)
    )
    needed = sum(buffer.size_bytes for buffer in buffers)
    capacity = draw.choice([None, needed, needed + 20, needed // 2, 2 * needed])
    return Problem(buffers, (Pool("ram", capacity, base_address=draw.choice([0, 64, 4096])),))


def test_places_are_those_of_first_fit() -> None:
    draw = random.Random(4)
    num_gaps_used = num_refused = 0
    for _ in range(400):
        flat = flatten(random_pile(draw, draw.randrange(1, 14)))
        assert is_pile(flat)
        for order in (*standard_orders(flat), draw.sample(range(flat.num_buffers), flat.num_buffers)):
            expected = place_in_order(flat, order)
            pools, offsets = place_pile(flat, order)
            assert pools == expected.pools
            placed = [i for i, pool in enumerate(pools) if pool == 0]
            assert [offsets[i] for i in placed] == [expected.offsets[i] for i in placed]
            num_refused += pools.count(-1)
            num_gaps_used += [offsets[i] for i in order if pools[i] == 0] != sorted(
                offsets[i] for i in placed
            )
    assert num_gaps_used > 100
    assert num_refused > 100


def test_what_is_no_pile_is_left_to_first_fit() -> None:
    pile = random_pile(random.Random(1), 5)
    first, *others = pile.buffers
    apart = replace(first, lifetimes=((7, 9),))
    twice = replace(first, lifetimes=((0, 1), (3, 5)))
    fixed = replace(first, fixed_offset=0, alignment=1)
    for changed in (
        replace(pile, buffers=(apart, *others)),
        replace(pile, buffers=(twice, *others)),
        replace(pile, buffers=(fixed, *others)),
        replace(pile, contracts=(Contract("b0", "b1", 0, 0),)),
        replace(pile, pools=(*pile.pools, Pool("other", None))),
    ):
        assert not is_pile(flatten(changed))


def test_a_large_pile_costs_in_proportion() -> None:
    def num_lines(count: int) -> int:
        buffers = tuple(Buffer(f"b{i}", 16 + 4 * (i % 50), ((0, 1),), 4) for i in range(count))
        flat = flatten(Problem(buffers, (Pool("rom", None),)))
        place, order = placer(flat), standard_orders(flat)[0]
        lines = 0

        def trace(frame: FrameType, event: str, argument: object) -> object:
            nonlocal lines
            del frame, argument
            lines += event == "line"
            return trace

        sys.settrace(trace)
        try:
            place(order)
        finally:
            sys.settrace(None)
        return lines

    assert num_lines(2000) <= 2.2 * num_lines(1000)


def test_many_constants_are_planned_without_waste() -> None:
    draw = random.Random(2)
    buffers = tuple(
        Buffer(f"b{i}", alignment * draw.randrange(1, 100), ((0, 1),), alignment)
        for i in range(5000)
        for alignment in (draw.choice([1, 4, 8]),)
    )
    solution = solve(Problem(buffers, (Pool("rom", None),)))
    assert solution.has_plan
    top = solution.pools[0].top_bytes
    assert top == sum(buffer.size_bytes for buffer in buffers)
