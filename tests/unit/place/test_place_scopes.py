"""Random programs whose kernels ask for places, before and after placement ran on their calls."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ir import Io
from bytewright.ir.module import Module
from bytewright.ir.prim import If
from bytewright.ir.rewrite import folded, with_body
from bytewright.ir.text.modules import print_module
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import calls, walk_statements
from bytewright.scopes.place_scopes import place_scopes
from support.asked_scopes import asking_program, expected_of_reusing, pools, reusing_program
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module
from support.random_entries import expected
from support.tiers import THOROUGH
from support.traced_copies import Trace

TARGET = pools()
SEEDS = st.integers(0, 1 << 32)
BORDERS = st.sampled_from((Io.CALLER, Io.WORKSPACE))
FORMS = st.sampled_from((asking_program, reusing_program))
FEW = settings(max_examples=100 if THOROUGH else 12)
Form = Callable[[int], tuple[str, str]]


def with_folded(module: Module) -> Module:
    """As the frontend of IR text has it: branches on constants are resolved."""
    kernels, entries = (
        tuple(with_body(function, folded(function.body)) for function in functions)
        for functions in (module.kernels, module.entries)
    )
    return replace(module, kernels=kernels, entries=entries)


def placed_or_refused(text: str, io: Io) -> Module | None:
    """None where a call passes one memory for two places, or not all of what is to be copied is written."""
    module = with_folded(parse_module(text, {}, {}))
    verify(module, Stage.OPEN, TARGET)
    try:
        return place_scopes(module, TARGET, io)
    except CompileError as error:
        if {diagnostic.code for diagnostic in error.diagnostics} == {"BW705"}:
            return None
        raise


def placed(form: Form, seed: int, io: Io) -> tuple[Module, str]:
    text, python = form(seed)
    module = placed_or_refused(text, io)
    assume(module is not None)
    assert module is not None
    return module, python


def test_most_random_programs_can_be_placed() -> None:
    """So that what the properties say is said of something: of programs with copies, in loops and in kernels too."""
    texts = [form(seed)[0] for seed in range(20) for form in (asking_program, reusing_program)]
    found = [module for text in texts if (module := placed_or_refused(text, Io.CALLER))]
    assert len(found) > 22
    printed = [print_module(module) for module in found]
    assert sum(text.count("call_extern r_copy") for text in printed) > 100
    assert (
        sum(re.search(r"^    +call_extern r_copy", text, re.MULTILINE) is not None for text in printed) > 10
    )
    kernels = [kernel for module in found for kernel in module.kernels if kernel.name.startswith("r_passes")]
    assert sum(call.callee.startswith("r_copy") for kernel in kernels for call in calls(kernel)) > 3
    assert sum(Trace(module).run().is_whole for module in found) > 3


@FEW
@given(FORMS, SEEDS, BORDERS)
def test_what_is_placed_verifies_and_computes_the_same(form: Form, seed: int, io: Io) -> None:
    module, python = placed(form, seed, io)
    verify(module, Stage.LOWERED, TARGET, parse_module(form(seed)[0], {}, {}), "place_scopes")
    size = module.main.buffer_parameters[0].buffer.shape[0]
    x = np.random.default_rng(seed).integers(0, 50, size).astype(np.int16)
    values = (expected if form is asking_program else expected_of_reusing)(python, x)
    np.testing.assert_array_equal(Evaluator(module).run("main", {"x": x})["y"], values)


@FEW
@given(FORMS, SEEDS, BORDERS)
def test_placing_again_changes_nothing(form: Form, seed: int, io: Io) -> None:
    module, _ = placed(form, seed, io)
    assert place_scopes(module, TARGET, io) is module


@FEW
@given(FORMS, SEEDS, BORDERS)
def test_all_that_is_passed_is_where_it_is_asked_for(form: Form, seed: int, io: Io) -> None:
    assert Trace(placed(form, seed, io)[0]).run().misplaced == []


def test_no_copy_finds_always_what_it_brings() -> None:
    """In programs whose run takes all ways; what is under a condition may be of use on others together."""
    num_copies = 0
    for seed in range(40):
        for form in (asking_program, reusing_program):
            module = placed_or_refused(form(seed)[0], Io.CALLER)
            trace = None if module is None else Trace(module).run()
            if module is None or trace is None or not trace.is_whole:
                continue
            branches = [s for s in walk_statements(module.main.body) if isinstance(s, If)]
            guarded = {id(s) for branch in branches for s in walk_statements(branch)}
            num_copies += len(trace.made)
            assert [text for copy, text in trace.made.items() if copy not in trace.useful | guarded] == []
    assert num_copies > 100


@FEW
@given(FORMS, SEEDS, BORDERS)
def test_names_change_nothing_but_names(form: Form, seed: int, io: Io) -> None:
    text, _ = form(seed)
    names = sorted(set(re.findall(r"\br_\w+", text)), reverse=True)
    renamed = {name: f"r_{number:04}k" for number, name in enumerate(names)}
    renamed |= {"t": "zt", "u": "cu", "v": "av"}

    def rename(given: str) -> str:
        given = re.sub(r"\b([tuv])_in_", lambda match: f"{renamed[match[1]]}_in_", given)
        return re.sub(r"\b\w+\b", lambda match: renamed.get(match[0], match[0]), given)

    first, second = placed_or_refused(text, io), placed_or_refused(rename(text), io)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert print_module(second).split() == rename(print_module(first)).split()
