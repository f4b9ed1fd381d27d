"""Instructions in programs: their text, what they mean to the evaluator, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ir.prim import For, InstructionCall
from bytewright.ir.text.modules import print_module
from bytewright.ir.verify.admit import faults_of_program
from bytewright.ir.walk import expressions, loaded_buffers, stored_buffers, walk_statements
from bytewright.target import load_target
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module

TEXT = """module m

instruction sum_pairs(
    total : buffer<i32, "local", align=4> rw activation,
    left : buffer<4xi8, "local", align=1, register="int32_t"> r activation,
    scale : i32
  ) feature(dsp, "defined(__ARM_FEATURE_DSP)", "arm_acle.h") text("return total + scale;") comment("Adds.") {
  for "sum_pairs.lane" : i32 in 0 .. 4 {
    total[] = total[] + i32(left["sum_pairs.lane"]) * scale
  }
}

instruction take(
    values : buffer<4xi8, "local", align=1, register="int32_t"> w activation,
    elements : buffer<4xi8, "global", align=1> r activation
  ) feature(dsp, "defined(__ARM_FEATURE_DSP)", "") text("return 0;") {
  for "take.lane" : i32 in 0 .. 4 {
    values["take.lane"] = elements["take.lane"]
  }
}

kernel m_k(
    x : buffer<2x4xi8, "global", align=1> r activation,
    y : buffer<2xi32, "global", align=4> w activation
) on cpu template("dsp.k") remark("not by mve.k: no reason") {
  for row : i32 in 0 .. 2 {
    allocate total : buffer<i32, "local", align=4>
    total[] = row
    allocate left : buffer<4xi8, "local", align=1, register="int32_t">
    execute take(&left, &x[row, 0])
    execute sum_pairs(&total, &left, row + 2)
    y[row] = total[]
  }
}

entry main(
    x : buffer<2x4xi8, "global.workspace", align=16> r activation,
    y : buffer<2xi32, "global.workspace", align=16> w activation
) on cpu {
  call_extern m_k(&x, &y)
}
"""


def reprinted(text: str) -> str:
    return print_module(parse_module(text, {}, {}))


def test_what_is_printed_is_read_again() -> None:
    once = reprinted(TEXT)
    assert reprinted(once) == once
    assert "execute sum_pairs(&total, &left, row + 2)" in once
    assert parse_module(once, {}, {}) == parse_module(TEXT, {}, {})


def test_the_evaluator_reads_what_instructions_mean() -> None:
    x = np.array([[1, -2, 3, 4], [100, 100, -128, 7]], dtype=np.int8)
    found = Evaluator(parse_module(TEXT, {}, {})).run("main", {"x": x})["y"]
    assert found.tolist() == [6 * 2, 1 + 79 * 3]


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("instruction take(", 'instruction "take it"(', "its name is no name of a C function"),
        (
            "in 0 .. 4 {\n    values",
            "in 0 .. elements[0] {\n    values",
            "a loop has bounds that are not constant",
        ),
        (
            'elements : buffer<4xi8, "global"',
            'elements : buffer<4xi8, "local"',
            "registers and variables are local",
        ),
        ("y[row] = total[]", "y[row] = i32(left[0])", "only instructions touch registers"),
        ("execute take(&left, &x[row, 0])", "execute take(&left, &x)", "takes memory from an element on"),
        (
            'allocate left : buffer<4xi8, "local", align=1, register="int32_t">',
            'allocate left : buffer<4xi8, "local", align=1, register="uint32_t">',
            "it is uint32_t, int32_t is wanted",
        ),
        (
            'allocate left : buffer<4xi8, "local", align=1, register="int32_t">',
            'allocate left : buffer<4xi8, "global", align=1, register="int32_t">',
            "is a register, so its scope is 'local'",
        ),
    ],
)
def test_a_mistake_is_refused(before: str, after: str, fault: str) -> None:
    text = TEXT.replace(before, after)
    if "take it" in after:
        text = text.replace("execute take(", 'execute "take it"(')
    assert text != TEXT
    faults = faults_of_program(parse_module(text, {}, {}), load_target("host"))
    assert any(fault in violation.text for violation in faults), [violation.text for violation in faults]


def test_names_of_a_body_do_not_capture_those_of_arguments() -> None:
    """The loop of the kernel is called as that of the instruction."""
    text = TEXT.replace('"take.lane"', "row").replace('"sum_pairs.lane"', "row")
    x = np.array([[1, -2, 3, 4], [100, 100, -128, 7]], dtype=np.int8)
    found = Evaluator(parse_module(text, {}, {})).run("main", {"x": x})["y"]
    assert found.tolist() == [6 * 2, 1 + 79 * 3]


def test_a_call_is_one_statement_that_says_what_it_touches() -> None:
    body = parse_module(TEXT, {}, {}).kernels[0].body
    take, sum_pairs = (s for s in walk_statements(body) if isinstance(s, InstructionCall))
    assert [buffer.name for buffer in loaded_buffers(take)] == ["x"]
    assert [buffer.name for buffer in stored_buffers(take)] == ["left"]
    assert [buffer.name for buffer in loaded_buffers(sum_pairs)] == ["total", "left"]
    assert [buffer.name for buffer in stored_buffers(sum_pairs)] == ["total"]
    # A variable lies in memory, where a register does not.
    assert (take.touches_memory, sum_pairs.touches_memory) == (True, True)
    assert expressions(sum_pairs) == (sum_pairs.arguments[2],)  # it evaluates what it is given
    loops = [s for call in (take, sum_pairs) for s in call.statements]
    assert [type(loop) for loop in loops] == [For, For]
    assert not any(loop in tuple(walk_statements(body)) for loop in loops)
