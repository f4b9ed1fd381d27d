"""`report` and `explain` say which steps are in which loop and arm."""

from __future__ import annotations

from support.flow_program import FIRST, FLOW, JUDGE, NARROW, SECOND
from support.two_devices import PROGRAM, compiled
from support.views import explanation_lines, report_document, report_text

LOOP = "for turn in 0 .. 2"
NESTED = FLOW.replace(
    "    if turn < 1 {\n", "    if flag[0] { for again : i32 in 0 .. 3 { if turn < again {\n"
).replace("&shifted[32])\n    }\n", "&shifted[32])\n    } } }\n")


def test_each_step_is_listed_with_its_loops_and_arms() -> None:
    plan = compiled(FLOW).plan
    steps = report_document(plan)["steps"]
    assert [step["when"] for step in steps] == [
        *([[]] * 2),
        [LOOP],
        *([[LOOP, "if flag"]] * 2),
        *([[LOOP, "if not flag"]] * 2),
        [LOOP, "if (turn < 1)"],
        [LOOP],
        *([[]] * 2),
    ]
    text = report_text(plan, width=160)
    lines = text[text.index("when") :].splitlines()
    assert [line for line in lines if "if not flag" in line]
    row = next(line.split() for line in lines if line.split()[:1] == [str(SECOND)])
    assert row[1:7] == ["core1", *LOOP.split()[:5]]


def test_the_order_of_loops_and_branches_around_one_step_is_kept() -> None:
    plan = compiled(NESTED).plan
    assert plan.surroundings(7) == (LOOP, "if flag", "for again in 0 .. 3", "if (turn < again)")


def test_without_loops_and_branches_nothing_is_said_of_them() -> None:
    plan = compiled(PROGRAM).plan
    assert " when " not in report_text(plan, width=160)
    assert {tuple(step["when"]) for step in report_document(plan)["steps"]} == {()}


def test_explain_says_in_which_arm_a_buffer_is_used_and_which_branch_is_on_it() -> None:
    plan = compiled(FLOW).plan
    lines = explanation_lines(plan, "filtered")
    assert f"  step {FIRST}  pair_filter writes it: {LOOP}, if flag" in lines
    assert f"  step {SECOND}  pair_filter writes it: {LOOP}, if not flag" in lines
    lines = explanation_lines(plan, "flag")
    assert f"  step {JUDGE}  pair_judge writes it: {LOOP}" in lines
    assert "  a branch chooses by it between steps 3..4 and 5..6" in lines
    assert NARROW == 8
