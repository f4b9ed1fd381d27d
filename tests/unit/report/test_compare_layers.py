"""Layers of two bundles side by side: which match, and what each figure grew by."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.diagnostics import CompileError
from bytewright.record.plan import Plan
from bytewright.report.compare import Side, comparison_view
from bytewright.report.compare_layers import Both, percent_text
from bytewright.report.layers import Costs, StepAmount
from bytewright.show.as_json import document_of
from support.digits_bundle import digits_plan
from support.views import text_of


def costs(amounts: list[int], unit: str = "instructions") -> Costs:
    by_step = {step: StepAmount(amount, 10 * amount) for step, amount in enumerate(amounts)}
    return Costs(unit, FrozenMapping(by_step), StepAmount(sum(amounts) + 7, 10 * sum(amounts)), "a board")


def with_operators(plan: Plan, names: list[str]) -> Plan:
    steps = tuple(
        dataclasses.replace(step, operators=(name,)) for step, name in zip(plan.steps, names, strict=True)
    )
    return dataclasses.replace(plan, steps=steps, plan_hash="1" * 64)


def layers_of(old: Plan, new: Plan, amounts: tuple[list[int], list[int]]) -> dict[str, Any]:
    view = comparison_view(Side(old, "a", costs=costs(amounts[0])), Side(new, "b", costs=costs(amounts[1])))
    return document_of(view)


def test_layers_match_by_their_operators_and_their_order() -> None:
    plan = digits_plan()
    old = with_operators(plan, ["conv", "conv", "pool", "old", "e", "f", "g"])
    new = with_operators(plan, ["conv", "pool", "conv", "new", "e", "f", "g"])
    document = layers_of(old, new, ([10, 20, 30, 40, 50, 60, 70], [11, 33, 10, 44, 50, 60, 0]))
    rows = [(row["layer"], *row["instructions"].values()) for row in document["layers"]]
    assert rows == [
        ("conv", 10, 11, 10.0),
        ("conv", 20, 10, -50.0),
        ("pool", 30, 33, 10.0),
        ("old", 40, None, None),
        ("e", 50, 50, 0.0),
        ("f", 60, 60, 0.0),
        ("g", 70, 0, -100.0),
        ("new", None, 44, None),
    ]
    assert [(row["name"], row["old"], row["new"], row["growth_percent"]) for row in document["costs"]] == [
        ("instructions", 287, 215, -25.1),
        ("cycles", 2800, 2080, -25.7),
    ]


def test_people_are_not_told_of_figures_in_which_nothing_differs() -> None:
    plan = digits_plan()
    same = [10, 20, 30, 40, 50, 60, 70]
    text = text_of(comparison_view(Side(plan, costs=costs(same)), Side(plan, costs=costs([11, *same[1:]]))))
    (head,) = [line for line in text.splitlines() if "instructions old" in line]
    assert head.split() == ["layer", "instructions", "old", "new", "%", "cycles", "old", "new", "%"]
    (row,) = [line.split() for line in text.splitlines() if "0 (CONV_2D)" in line]
    assert row[-6:] == ["10", "11", "+10.0", "100", "110", "+10.0"]


def test_costs_in_different_units_are_not_compared() -> None:
    plan = digits_plan()
    sides = (Side(plan, "a", costs=costs([1])), Side(plan, "b", costs=costs([1], "microseconds")))
    with pytest.raises(CompileError) as caught:
        comparison_view(*sides)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    assert diagnostic.message == "'a' is counted in instructions, and 'b' in microseconds"
    assert diagnostic.help == "--profile-on host"


@pytest.mark.parametrize(
    ("old", "new", "percent", "text"),
    [
        (200, 207, 3.5, "+3.5"),
        (3, 2, -33.3, "-33.3"),
        (0, 5, None, None),
        (None, 5, None, None),
        (5, None, None, None),
    ],
)
def test_per_cent_are_of_the_old_figure(
    old: int | None, new: int | None, percent: float | None, text: str | None
) -> None:
    assert Both(old, new).percent == percent
    assert percent_text(Both(old, new).percent) == text


def test_a_growth_that_rounds_to_nothing_has_no_sign() -> None:
    assert percent_text(Both(100000, 99999).percent) == "0.0"
