"""The headline of what does not fit: need, capacity and difference of the whole, not of the few that prove it."""

from __future__ import annotations

import pytest

import bytewright
from bytewright.compiler.shortfall import largest_shortfall
from bytewright.diagnostics import CompileError
from bytewright.plan.problem import Buffer, Candidate, Pool, Problem
from support.digits_bundle import DIGITS, digits_plan


def test_parameters_are_short_of_all_that_they_need() -> None:
    sizes = [b.size_bytes for b in digits_plan().buffers.values() if b.role == "parameter"]
    total = sum(sizes)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target="mps3-an547", parameters="flash=4KiB")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == (
        f"pool 'flash' has 4096 B, at least {total} B are needed: {total - 4096} B too few"
    )
    assert diagnostic.notes[0] == f"{len(sizes)} parameters, {total} B"


def test_the_peak_over_time_counts_and_pools_that_share_buffers_count_together() -> None:
    both, small = (Candidate("a"), Candidate("b")), (Candidate("b"),)
    buffers = (
        Buffer("w", 50, ((0, 4),), candidates=both),
        Buffer("x", 60, ((2, 6),), candidates=both),
        Buffer("y", 30, ((3, 5),), candidates=small),
        Buffer("z", 70, ((8, 9),), candidates=both),
    )
    found = largest_shortfall(Problem(buffers, (Pool("a", 60), Pool("b", 40))))
    assert found is not None
    assert (found.pools, found.capacity_bytes, found.needed_bytes, found.tick) == (("a", "b"), 100, 140, 3)
    assert found.buffers == ("w", "x", "y")
    alone = largest_shortfall(Problem(buffers, (Pool("a", 500), Pool("b", 20))))
    assert alone is not None
    assert (alone.pools, alone.missing_bytes) == (("b",), 10)
    assert largest_shortfall(Problem(buffers, (Pool("a", None), Pool("b", 30)))) is None
