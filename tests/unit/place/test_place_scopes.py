"""Random programs whose kernels ask for places, before and after placement ran on their calls."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from bytewright.diagnostics import CompileError
from bytewright.ir import Io
from bytewright.ir.evaluate.evaluate import Evaluator
from bytewright.ir.module import Module
from bytewright.ir.text.modules import print_module
from bytewright.ir.verify.stages import Stage, verify
from bytewright.ir.walk import calls
from bytewright.place.place_scopes import place_scopes
from support.asked_scopes import asking_program, pools
from support.parsing import parse_module
from support.random_entries import expected
from support.traced_copies import Trace

TARGET = pools()
SEEDS = st.integers(0, 1 << 32)
BORDERS = st.sampled_from(Io)


def placed_or_refused(text: str, io: Io) -> Module | None:
    """None where a call passes one memory for two places; nothing else may be wrong with these programs."""
    module = parse_module(text, {}, {})
    verify(module, Stage.OPEN, TARGET)
    try:
        return place_scopes(module, TARGET, io)
    except CompileError as error:
        if all(d.code == "BW705" and "given the same memory" in d.message for d in error.diagnostics):
            return None
        raise


def placed(seed: int, io: Io) -> tuple[Module, str]:
    text, python = asking_program(seed)
    module = placed_or_refused(text, io)
    assume(module is not None)
    assert module is not None
    return module, python


def test_most_random_programs_can_be_placed() -> None:
    """So that what the properties say is said of something: of programs with copies, in loops and in kernels too."""
    found = [m for seed in range(40) if (m := placed_or_refused(asking_program(seed)[0], Io.CALLER))]
    assert len(found) > 25
    texts = [print_module(module) for module in found]
    assert sum(text.count("call_extern r_copy") for text in texts) > 100
    assert sum(re.search(r"^    +call_extern r_copy", text, re.MULTILINE) is not None for text in texts) > 10
    kernels = [kernel for module in found for kernel in module.kernels if kernel.name.startswith("r_passes")]
    assert sum(call.callee.startswith("r_copy") for kernel in kernels for call in calls(kernel)) > 3


@given(SEEDS, BORDERS)
def test_what_is_placed_verifies_and_computes_the_same(seed: int, io: Io) -> None:
    module, python = placed(seed, io)
    verify(module, Stage.LOWERED, TARGET, parse_module(asking_program(seed)[0], {}, {}), "place_scopes")
    x = np.random.default_rng(seed).integers(-50, 50, 24).astype(np.int16)
    np.testing.assert_array_equal(Evaluator(module).run("main", {"x": x})["y"], expected(python, x))


@given(SEEDS, BORDERS)
def test_placing_again_changes_nothing(seed: int, io: Io) -> None:
    module, _ = placed(seed, io)
    assert place_scopes(module, TARGET, io) is module


@given(SEEDS, BORDERS)
def test_all_that_is_passed_is_where_it_is_asked_for_and_every_copy_is_of_use(seed: int, io: Io) -> None:
    module, _ = placed(seed, io)
    trace = Trace(module).run()
    assert trace.misplaced == []
    assert [text for copy, text in trace.made.items() if copy not in trace.useful] == []


@given(SEEDS, BORDERS)
def test_names_change_nothing_but_names(seed: int, io: Io) -> None:
    text, _ = asking_program(seed)
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
