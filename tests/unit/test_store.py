"""Storing one module under many conditions: passes run once for each question, and what comes of it is the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from bytewright import ir
from bytewright.compiler import store
from bytewright.compiler.pipeline import lower_model
from bytewright.compiler.remedy.room import with_sizes
from bytewright.compiler.run_passes import Known, Runner
from bytewright.compiler.trial import Conditions, Trial
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.frontends.registry import import_model
from bytewright.options import Options, Pin
from bytewright.target.model import Target
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS

BOARD = load_target("mps3-an547")
SIZES = (64, 1024, 4096)
STACKS = (1100, None)  # too small; no limit


def lowered(target: Target, options: Options) -> ir.Module:
    imported = import_model(DIGITS, target, options).module
    return lower_model((imported,), target, options, {}, Runner(target))


def conditions(options: Options) -> list[Conditions]:
    """One target, with pools and stacks of all these sizes."""
    found: list[Conditions] = []
    for size, stack in product(SIZES, STACKS):
        target = BOARD if stack is None else apply_overrides(BOARD, Overrides(max_stack_size=stack))
        found.append(Conditions(with_sizes(target, {"dtcm": size, "flash": 4 * size}), options))
    return found


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pass of storage ran."""
    counted: Counter[str] = Counter()
    for name in ("join_alignments", "place_scratch", "attach_candidates", "own_lines", "make_arenas"):
        run_pass = getattr(store, name)

        def counting(*arguments: Any, run_pass: Any = run_pass, name: str = name) -> ir.Module:
            counted[name] += 1
            return run_pass(*arguments)

        counting.__name__ = name
        monkeypatch.setattr(store, name, counting)
    return counted


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(io=ir.Io.WORKSPACE),
        Options(pins=(Pin("conv2d_0/out", "isram"),)),
        Options(overrides=Overrides(use_backend_alloc_workspace=True)),
    ],
    ids=["plain", "planned", "pinned", "requested"],
)
def test_what_is_remembered_changes_no_trial(options: Options) -> None:
    target = apply_overrides(BOARD, options.overrides)
    module, run, known = lowered(target, options), Runner(target), Known()
    for sized in conditions(options):
        under = replace(sized, target=apply_overrides(sized.target, options.overrides))
        assert outcome(module, replace(run, known=known), under) == outcome(module, run, under)


def outcome(module: ir.Module, run: Runner, under: Conditions) -> Trial | str:
    try:
        return store.store(module, run, under, node_budget=2000)
    except CompileError as error:
        return str(error)


def test_sizes_reach_the_planner_alone(runs: Counter[str]) -> None:
    module = lowered(BOARD, Options())
    run = Runner(BOARD, known=Known())
    trials = [store.store(module, run, each, node_budget=2000) for each in conditions(Options())]
    assert {trial.fits for trial in trials} == {True, False}
    assert len(trials) == 6
    assert runs == {  # scratch on the stack, and off it where that is too small
        "join_alignments": 1,
        "place_scratch": 2,
        "attach_candidates": 2,
        "own_lines": 2,
        "make_arenas": 2,
    }
    runs.clear()
    for each in conditions(Options())[:3]:
        store.store(module, Runner(BOARD), each, node_budget=2000)
    assert runs["attach_candidates"] == 3  # nobody remembers unless asked to


def test_an_answer_is_found_once() -> None:
    known, asked = Known(), list[str]()

    def find() -> str:
        asked.append("?")
        return "found"

    module = ir.Module("m")
    questions = [("a", 1), ("a", 1), ("a", 2), (module,), (module,), (ir.Module("m"),), ([],)]
    assert [known.answer(find, *question) for question in questions] == ["found"] * 7
    assert len(asked) == 5  # modules, and what has no hash, count as which they are


def test_a_refusal_is_remembered_and_raised_anew() -> None:
    known, errors = Known(), list[CompileError]()

    def refuse() -> None:
        assert not errors, "asked twice"
        raise CompileError(Diagnostic("BW301", "too large"))

    for _ in range(2):
        with pytest.raises(CompileError, match="too large") as caught:
            known.answer(refuse, "question")
        errors.append(caught.value)
    assert errors[0] is not errors[1]
    assert errors[0].diagnostics == errors[1].diagnostics
