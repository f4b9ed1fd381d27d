"""C7: constants come to devices that have memory of their own alone, once for each device, by jobs that copy."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.diagnostics import CompileError
from bytewright.ir.walk import calls
from bytewright.scopes.fetch_constants import fetch_constants, lacks_constants
from support.device_memory import ALONE, PRIVATE, TARGET, replaced
from support.evaluate.evaluate import Evaluator
from support.two_devices import INPUT, PROGRAM, bench, compiled, evaluated, program

FILTER = "call_extern pair_filter(&lent, &taps, &filtered, 7, true)"
# The taps twice: once more in a loop before, and beside themselves.
TWICE = replaced(
    PRIVATE,
    (
        "taps_of : buffer<4xi16> r parameter,",
        "taps_of : buffer<4xi16> r parameter, same : buffer<4xi16> r parameter,",
    ),
    ("i32(taps_of[tap])", "i32((taps_of[tap] + same[tap]) / 2:i16)"),
    (
        f"  {FILTER}\n",
        "  for turn : i32 in 0 .. 2 {\n"
        "    call_extern pair_filter(&lent, &taps, &taps, &filtered, 7, true)\n  }\n"
        "  call_extern pair_filter(&lent, &taps, &taps, &filtered, 7, true)\n",
    ),
)


def fetched(text: str, target: str = ALONE) -> ir.Module:
    module = program(text)
    assert lacks_constants(module, bench(target))
    return fetch_constants(module, bench(target))


@pytest.mark.parametrize("text", [PRIVATE, TWICE], ids=["once", "twice"])
def test_each_constant_is_copied_once_before_it_is_needed(text: str) -> None:
    module = fetched(text)
    (fetch,) = [kernel for kernel in module.kernels if kernel.name == "pair_fetch_1"]
    assert (fetch.device, fetch.job) == ("dma", ir.Job.COPY)
    names = [call.callee for call in calls(module.main)]
    assert names.count("pair_fetch_1") == 1
    assert names.index("pair_fetch_1") < names.index("pair_filter")
    given = [
        argument.buffer.name
        for call in calls(module.main)
        if call.callee == "pair_filter"
        for argument in call.arguments
        if isinstance(argument, ir.Region)
    ]
    assert "taps" not in given
    assert "taps_on_core1" in given
    body = module.main.body.statements
    place = next(i for i, s in enumerate(body) if isinstance(s, ir.Call) and s.callee == "pair_fetch_1")
    assert isinstance(body[place + 1], ir.For if text == TWICE else ir.Call), "outside of the loop"


@pytest.mark.parametrize("text", [PRIVATE, TWICE], ids=["once", "twice"])
def test_the_program_computes_the_same(text: str) -> None:
    outputs = Evaluator(fetched(text)).run("main", {"x": INPUT})
    np.testing.assert_array_equal(outputs["y"], evaluated(PROGRAM, {"x": INPUT})["y"])


def test_once_done_there_is_nothing_left_and_where_all_is_reached_there_was_nothing() -> None:
    assert not lacks_constants(fetched(PRIVATE), bench(ALONE))
    assert not lacks_constants(program(PRIVATE), bench(TARGET))


def test_a_constant_that_no_device_copies_there_is_refused() -> None:
    target = replaced(ALONE, ('reach = ["ram", "shared", "local", "flash"]', 'reach = ["ram", "local"]'))
    with pytest.raises(CompileError) as caught:
        compiled(PRIVATE, target)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == (
        "BW301",
        "'taps' cannot be placed in any parameter pool",
    )
    assert "flash  is in memory 'flash', which device 'core1' does not reach" in diagnostic.notes


def test_parameters_are_not_put_where_the_program_has_no_address() -> None:
    own = '[[parameters]]\nname = "own"\nmemory = "local"\nsize = "4KiB"\n'
    plan = compiled(PRIVATE, ALONE + own).plan
    assert plan.buffers["taps"].candidates == ("flash",)
    assert plan.buffers["taps_on_core1"].place.name == "local"
