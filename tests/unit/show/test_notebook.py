"""What notebooks show, and `repr`, which is one line."""

from __future__ import annotations

import bytewright
from bytewright.record.plan import Plan
from bytewright.show.notebook import Shown, show_as
from bytewright.show.view import View
from support.digits_bundle import DIGITS, digits_plan
from support.pages import Page


def test_a_model_and_its_plan_are_shown_alike() -> None:
    model = bytewright.compile(DIGITS)
    shown = model._repr_html_()
    assert shown is not None
    assert shown == model.plan._repr_html_()
    page = Page(shown)
    titles = [text.partition("\n")[0] for text in page.texts]
    assert "conv2d_0/out" in titles  # of rectangles, as there is no script
    assert page.all("script") == []
    assert not any("data-blocks" in each for each in page.all("figure"))
    (block,) = [each for each in page.all("div") if each.get("class") == "bytewright"]
    assert block


def test_what_nobody_knows_how_to_show_has_its_repr() -> None:
    class Mine(Shown):
        pass

    class Other(Mine):
        pass

    show_as(Mine, lambda _: View("<mine>", ()))
    assert "&lt;mine&gt;" in (Mine()._repr_html_() or "")
    assert Other()._repr_html_() is None


def test_repr_is_one_line() -> None:
    plan = digits_plan()
    assert isinstance(plan, Plan)
    figures = f"RAM {plan.ram_bytes} B, parameters {plan.parameter_bytes} B, {len(plan.steps)} steps"
    assert repr(plan) == f"Plan('digits' for {plan.target}: {figures})"
