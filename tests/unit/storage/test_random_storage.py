"""Random programs: without overlaps the workspace is the smallest that any plan could have; values survive with them.

What the smallest is comes from `support/random_storage.py`, which runs the program step by step and tries every order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from bytewright.compiler.pipeline import plan_model
from bytewright.diagnostics import InternalError
from bytewright.ir.analyses import body_clock
from bytewright.ir.analyses.interpreter import Interpreter
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.ir.prim import For
from bytewright.options import Options
from bytewright.plan.solve import solve
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.evaluate.evaluate import Evaluator
from support.ir_program import expected_outputs, read_module
from support.random_storage import Program, ir_text, least_workspace, random_program
from support.tiers import THOROUGH

NO_STACK = apply_overrides(load_target("host"), Overrides(max_stack_alloca_size=0))
NUM_PROGRAMS = 600 if THOROUGH else 30


def inputs_of(program: Program, module: Module, seed: int) -> list[np.ndarray]:
    dtype = module.inputs[0].type.dtype.numpy
    return [np.random.default_rng(seed).integers(-50, 50, program.source.length).astype(dtype)]


def differs(seed: int) -> str | None:
    """What is wrong with the plan of a program."""
    program = random_program(seed)
    module = read_module(ir_text(program))
    for io in (Io.CALLER, Io.WORKSPACE):
        planned = plan_model(module, NO_STACK, Options(io=io))
        top = sum(pool.top_bytes for pool in planned.trial.workspace.pools)
        apart = solve(replace(planned.trial.stored.workspace, contracts=()))
        top_apart = sum(pool.top_bytes for pool in apart.pools)
        least = least_workspace(program, io is Io.WORKSPACE, len(planned.trial.workspace.placement_of))
        if least is not None and top_apart != least:
            return f"{io}: {top_apart} B, {least} B would do"
        if top > top_apart:
            return f"{io}: {top} B where buffers may overlap, {top_apart} B where none may"
        if io is Io.CALLER:
            inputs = inputs_of(program, module, seed)
            values = Evaluator(planned.module).run("main", {"source": inputs[0]})["result"]
            (expected,) = expected_outputs(module, inputs)
            if values.tobytes() != expected.tobytes():
                return f"{values} is not {expected}"
    return None


def test_no_workspace_could_be_smaller() -> None:
    assert {seed: fault for seed in range(NUM_PROGRAMS) if (fault := differs(seed)) is not None} == {}


def test_the_programs_have_what_they_are_to_show() -> None:
    """Most are small enough to be tried, and without liveness inside calls many would take more."""
    programs = [random_program(seed) for seed in range(40)]
    assert sum(least_workspace(program, False) is not None for program in programs) > 20
    texts = [ir_text(program) for program in programs]
    for word in ("if ", "for n", "call_extern m_k", "} else {"):
        assert sum(word in text for text in texts) > 8


@pytest.mark.parametrize("mutant", ["no widening", "nothing private", "calls as one moment"])
def test_a_wrong_clock_is_noticed(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a value that was overwritten, or by bytes that were not needed."""
    reader = body_clock._Ticks
    original = reader.turns

    def not_widened(self: body_clock._Ticks, loop: For) -> Iterator[None]:
        return Interpreter.turns(self, loop)

    def without_private(self: body_clock._Ticks, loop: For) -> Iterator[None]:
        return original(self, replace(loop, private=()))

    def one_moment(needed: Mapping[str, body_clock.Interval]) -> tuple[int, dict[str, body_clock.Interval]]:
        return 1, dict.fromkeys(needed, (0, 1))

    match mutant:
        case "no widening":
            monkeypatch.setattr(reader, "turns", not_widened)
        case "nothing private":
            monkeypatch.setattr(reader, "turns", without_private)
        case _:
            monkeypatch.setattr(body_clock, "_condensed", one_moment)
    assert any(is_noticed(seed) for seed in range(60))


def is_noticed(seed: int) -> bool:
    try:
        return differs(seed) is not None
    except InternalError:
        return True
