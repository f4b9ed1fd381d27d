from __future__ import annotations

import pytest

from bytewright.plan.problem import Buffer, Candidate, Contract, Pool, Problem
from bytewright.plan.solution import Placement
from bytewright.plan.validate import Reason, validate

PROBLEM = Problem(
    (
        Buffer("a", 10, ((0, 2),), alignment=4, candidates=(Candidate("p"),)),
        Buffer("b", 10, ((1, 3),)),
        Buffer("c", 10, ((1, 3),)),
        Buffer("d", 8, ((5, 6),), fixed_offset=16),
        Buffer("e", 4, ((0, 1), (5, 9))),
    ),
    (Pool("p", 40, base_address=0x1004), Pool("q", 64, alignment=8), Pool("open")),
    (Contract("b", "c", 2, 6),),
)
GOOD = {"a": ("p", 0), "b": ("p", 10), "c": ("p", 16), "d": ("p", 16), "e": ("p", 24)}


def placements(**changes: tuple[str, int] | None) -> list[Placement]:
    places = {**GOOD, **changes}
    return [Placement(name, *place) for name, place in places.items() if place is not None]


def test_a_plan_is_accepted():
    assert validate(PROBLEM, placements()) == ()


@pytest.mark.parametrize(
    ("plan", "reason", "buffers"),
    [
        (placements(b=None), Reason.MISSING, ("b",)),
        ([*placements(), Placement("z", "p", 0)], Reason.UNKNOWN_BUFFER, ("z",)),
        ([*placements(), Placement("e", "p", 32)], Reason.PLACED_TWICE, ("e",)),
        (placements(b=("r", 0)), Reason.UNKNOWN_POOL, ("b",)),
        (placements(a=("q", 0)), Reason.NOT_A_CANDIDATE, ("a",)),
        (placements(e=("p", -4)), Reason.NEGATIVE_OFFSET, ("e",)),
        (placements(c=("p", 31)), Reason.PAST_CAPACITY, ("c",)),
        (placements(c=("open", 2**62 - 10)), Reason.PAST_ADDRESSES, ("c",)),
        (placements(c=("open", 2**70)), Reason.PAST_ADDRESSES, ("c",)),
        (placements(a=("p", 30)), Reason.MISALIGNED, ("a",)),
        (placements(b=("q", 4)), Reason.MISALIGNED, ("b",)),
        (placements(d=("p", 8)), Reason.MOVED_FIXED, ("d",)),
        (placements(b=("p", 9), c=("p", 20)), Reason.OVERLAP, ("a", "b")),
        (placements(e=("p", 20)), Reason.OVERLAP, ("e", "d")),
        (placements(c=("p", 15)), Reason.BROKEN_CONTRACT, ("b", "c")),
        (placements(b=("p", 16), c=("p", 15), a=None), Reason.BROKEN_CONTRACT, ("b", "c")),
    ],
)
def test_each_fault_has_its_reason(plan, reason, buffers):
    found = [violation for violation in validate(PROBLEM, plan) if violation.reason is not Reason.MISSING]
    if reason is Reason.MISSING:
        found = list(validate(PROBLEM, plan))
    assert [(violation.reason, violation.buffers) for violation in found] == [(reason, buffers)]


def test_every_reason_has_a_case():
    marker = next(m for m in test_each_fault_has_its_reason.pytestmark if m.name == "parametrize")
    assert {case[1] for case in marker.args[1]} == set(Reason)


def test_buffers_in_different_pools_or_at_different_times_may_share_offsets():
    assert validate(PROBLEM, placements(b=("q", 0))) == ()
    assert validate(PROBLEM, placements(e=("p", 36))) == ()


def test_the_lower_side_of_a_contract():
    assert validate(PROBLEM, placements(b=("p", 30), c=("p", 28))) == ()


def test_the_last_address_is_one():
    assert validate(PROBLEM, placements(c=("open", 2**62 - 11))) == ()
