"""Plans for several devices keep their rules, whatever the machine: `random_devices.py` judges plan.json by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from bytewright.compiler import pipeline, store
from bytewright.diagnostics import CompileError
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of
from bytewright.storage import join_alignments, own_lines, place_scratch
from bytewright.target.load import load_text
from support.ir_program import read_module
from support.random_devices import Machine, Program, broken_rules, has_no_home, machines, programs

Case = tuple[Machine, Program, bool]
FIND = settings(max_examples=300, deadline=None, database=None, derandomize=True, phases=[Phase.generate])


@st.composite
def cases(draw: Callable[[st.SearchStrategy[object]], object]) -> Case:
    machine, io_in_workspace = draw(machines()), draw(st.booleans())
    assert isinstance(machine, Machine)
    assert isinstance(io_in_workspace, bool)
    program = draw(programs(machine, io_in_workspace))
    assert isinstance(program, Program)
    return machine, program, io_in_workspace


def planned(case: Case) -> pipeline.Planned:
    machine, program, io_in_workspace = case
    options = Options(io=Io.WORKSPACE if io_in_workspace else Io.CALLER)
    return pipeline.plan_model(read_module(program.text()), load_text(machine.toml(), "random.toml"), options)


def planned_or_refused(case: Case) -> Plan | set[str]:
    """The plan where devices that have no memory in common pass values on; codes where nobody can copy them."""
    try:
        return planned(case).plan
    except CompileError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}


@given(cases())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_plans_for_several_devices_keep_the_rules(case: Case) -> None:
    machine, program, _ = case
    if has_no_home(machine, program):
        found = planned_or_refused(case)
        if isinstance(found, set):
            assert found <= {"BW301", "BW703"}
        else:
            assert faults_of_plan(found) == []
            assert len(found.steps) > len(program.calls)  # with copies
        return
    plan = planned(case).plan
    assert broken_rules(machine, program, document_of(plan)) == []
    assert faults_of_plan(plan) == []


@pytest.mark.parametrize("mutant", ["no lines", "no alignments", "open ends"])
def test_what_is_left_out_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the judge and by `check`, each alone; with the passes as they are neither finds anything (above)."""

    match mutant:
        case "no lines":
            monkeypatch.setattr(own_lines, "line_bytes", lambda *_: 0)
        case "no alignments":
            for user in (join_alignments, own_lines, place_scratch):
                monkeypatch.setattr(user, "touch_alignment", lambda *_: 1)
        case _:
            monkeypatch.setattr(store, "end_with_lines", lambda *given: given[-1])

    def is_noticed(case: Case, by: Callable[[Case], bool]) -> bool:
        return not has_no_home(case[0], case[1]) and by(case)

    def judge(case: Case) -> bool:
        return broken_rules(case[0], case[1], document_of(planned(case).plan)) != []

    def check(case: Case) -> bool:
        return faults_of_plan(planned(case).plan) != []

    for by in (judge, check):
        assert find(cases(), partial(is_noticed, by=by), settings=FIND)
