"""The record of what is decided of a buffer: it is narrowed with a reason, and never widened."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from bytewright.diagnostics import InternalError
from bytewright.ir.scope import pool_scope
from bytewright.ir.storage import UNDECIDED, Border, Storage, from_annotations, misused, to_annotations

FULL = Storage(
    pool_scope("fast"), ("fast", "slow"), 64, 64, "heap", "an option", Border.OUTPUT, ("first: why",)
)
OTHERS: dict[str, Any] = {
    "scope": pool_scope("other"),
    "candidates": ("fast", "other"),
    "offset": 0,
    "pinned_offset": 0,
    "arena": "other",
    "on_request": "another",
    "border": Border.INPUT,
}


def test_each_narrowing_adds_its_reasons() -> None:
    first = UNDECIDED.narrowed("one: because", candidates=("a", "b"))
    second = first.narrowed("two: so", "two: also", candidates=("b",), offset=0)
    assert second == Storage(None, ("b",), 0, provenance=("one: because", "two: so", "two: also"))
    assert (first.candidates, UNDECIDED) == (("a", "b"), Storage())


@pytest.mark.parametrize("field", OTHERS)
def test_what_is_decided_does_not_become_something_else(field: str) -> None:
    with pytest.raises(InternalError, match=f"{field} .* cannot become .*: a pass may only narrow"):
        FULL.narrowed("wide: open", **{field: OTHERS[field]})
    assert FULL.narrowed(**{field: getattr(FULL, field)}) == FULL
    undecided = replace(FULL, **{field: None})
    assert getattr(undecided.narrowed(**{field: OTHERS[field]}), field) == OTHERS[field]


def test_no_pool_is_added_to_none() -> None:
    with pytest.raises(InternalError, match="cannot become"):
        Storage(candidates=()).narrowed("wide: open", candidates=("a",))


def test_every_field_but_the_scope_has_a_key_in_the_text() -> None:
    shown = to_annotations(FULL)
    assert len(shown) == len(fields(Storage)) - 1
    assert from_annotations((("mine", 3), *shown)) == (replace(FULL, scope=None), (("mine", 3),))
    assert to_annotations(UNDECIDED) == ()


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("candidate_memory_pools", 3, "candidate_memory_pools of 'b' is not a list of pools"),
        ("pool_offset", "here", "pool_offset of 'b' is not a whole number"),
        ("pinned_offset", ("1",), "pinned_offset of 'b' is not a whole number"),
        ("arena", 3, "arena of 'b' is not a name"),
        ("on_request", 1, "on_request of 'b' is not a name"),
        ("provenance", "because", "provenance of 'b' is not a list of reasons"),
        ("io", "both", "io of 'b' is 'both', not one of input, output, state"),
        ("io", 3, "io of 'b' is 3, not one of input, output, state"),
    ],
)
def test_values_that_make_no_sense_stay_beside_it_and_are_faults(key: str, value: Any, fault: str) -> None:
    storage, others = from_annotations(((key, value), ("mine", "x")))
    assert (storage, others) == (UNDECIDED, ((key, value), ("mine", "x")))
    assert misused(others, "b") == (fault,)
