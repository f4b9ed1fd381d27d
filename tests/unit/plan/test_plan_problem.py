from __future__ import annotations

import pytest

from bytewright.diagnostics import CompileError
from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem, coexist

POOL = (Pool("p", 100),)


def buffer(name: str = "b", size: int = 4, lifetimes=((0, 2),), **rest) -> Buffer:
    return Buffer(name, size, tuple(lifetimes), **rest)


@pytest.mark.parametrize(
    ("buffers", "pools", "contracts", "text"),
    [
        ([buffer(size=-1)], POOL, (), "buffer 'b' has the negative size -1"),
        ([buffer(lifetimes=[(3, 3)])], POOL, (), "buffer 'b' has the empty lifetime [3, 3)"),
        ([buffer(lifetimes=[(0, 1), (5, 4)])], POOL, (), "buffer 'b' has the empty lifetime [5, 4)"),
        ([buffer(lifetimes=[])], POOL, (), "buffer 'b' has no lifetime"),
        ([buffer(alignment=3)], POOL, (), "buffer 'b' has alignment 3"),
        ([buffer(alignment=0)], POOL, (), "buffer 'b' has alignment 0"),
        ([buffer(size=1 << 62)], POOL, (), "'b'"),
        ([buffer("a", 1 << 61), buffer("c", 1 << 61)], POOL, (), "'c'"),
        ([buffer(lifetimes=[(0, 1 << 63)])], POOL, (), "outside -2^62 .. 2^62"),
        ([buffer(candidates=(Candidate("q"),))], POOL, (), "pool 'q', which does not exist"),
        ([buffer(candidates=(Candidate("p"), Candidate("p")))], POOL, (), "lists pool 'p' twice"),
        ([buffer(candidates=(Candidate("p", -1),))], POOL, (), "cost -1"),
        ([buffer(fixed_offset=-4)], POOL, (), "fixed at -4"),
        ([buffer(fixed_offset=6, alignment=4)], POOL, (), "buffer 'b' is fixed at 6, not a multiple of 4"),
        ([buffer(fixed_offset=4)], (Pool("p", 9, base_address=6, alignment=4),), (), "fixed at 4"),
        (
            [buffer("a", fixed_offset=0), buffer("c", fixed_offset=3)],
            POOL,
            (),
            "'a' (fixed at 0, 4 B) and 'c'",
        ),
        ([buffer(), buffer()], POOL, (), "two buffers are named 'b'"),
        ([Buffer("a", 1, ((0, 1),))], (), (), "there is no pool"),
        ([], (*POOL, *POOL), (), "two pools are named 'p'"),
        ([], (Pool("p", -1),), (), "capacity -1"),
        ([], (Pool("p", alignment=12),), (), "alignment 12"),
        ([], (Pool("p", base_address=-1),), (), "base address -1"),
        ([buffer()], POOL, (Contract("b", "c", 0, 0),), "buffer 'c', which does not exist"),
        ([buffer()], POOL, (Contract("b", "b", 0, 0),), "names one buffer twice"),
        ([buffer(), buffer("c")], POOL, (Contract("b", "c", -1, 0),), "separation -1"),
        ([buffer(), buffer("c")], POOL, (Contract("b", "c", 0, 0), Contract("c", "b", 0, 0)), "stated twice"),
    ],
)
def test_each_fault_is_refused_by_name(buffers, pools, contracts, text):
    with pytest.raises(CompileError) as caught:
        Problem(tuple(buffers), tuple(pools), tuple(contracts))
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW603"}
    assert text in str(caught.value)


def test_all_faults_are_reported_at_once():
    with pytest.raises(CompileError) as caught:
        Problem((buffer("x", -1), buffer("y", lifetimes=[(1, 1)])), (Pool("p", -3),))
    assert len(caught.value.diagnostics) == 3


def test_fixed_buffers_that_never_meet_or_have_a_contract_are_accepted():
    apart = Problem((buffer("a", fixed_offset=0), buffer("c", lifetimes=[(2, 3)], fixed_offset=3)), POOL)
    assert len(apart.buffers) == 2
    shared = (Contract("a", "c", 0, 0),)
    assert (
        Problem((buffer("a", fixed_offset=0), buffer("c", fixed_offset=3)), POOL, shared).contracts == shared
    )


def test_coexisting_is_about_half_open_lifetimes_and_bytes():
    assert coexist(buffer(lifetimes=[(0, 2)]), buffer(lifetimes=[(1, 3)]))
    assert not coexist(buffer(lifetimes=[(0, 2)]), buffer(lifetimes=[(2, 3)]))
    assert not coexist(buffer(lifetimes=[(0, 1), (4, 5)]), buffer(lifetimes=[(1, 4)]))
    assert coexist(buffer(lifetimes=[(0, 1), (4, 5)]), buffer(lifetimes=[(1, 4), (4, 6)]))
    assert not coexist(buffer(size=0), buffer())


def test_costs_left_open_grow_with_position_and_size():
    problem = Problem((buffer(size=7),), (Pool("p"), Pool("q"), Pool("r")))
    assert [(c.pool, c.cost) for c in problem.candidates_of(problem.buffers[0])] == [
        ("p", 0),
        ("q", 7),
        ("r", 14),
    ]
