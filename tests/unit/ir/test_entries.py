"""Modules of several entries: as text, as programs that are admitted, evaluated, on the clock, and in plans."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from bytewright import ir
from bytewright.compiler.pipeline import compile_model, plan_model
from bytewright.diagnostics import CompileError
from bytewright.ir.analyses.clock import read_clock
from bytewright.ir.text.modules import named_constants, parse_text, print_module
from bytewright.ir.text.reader import Constants
from bytewright.options import Options, Pin
from bytewright.record.plan_file import document_of, plan_of
from bytewright.storage.own_names import own_names
from bytewright.target.registry import load_target
from support.entry_programs import OPEN, WAKE, classified, random_entry_program
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module
from support.row_entries import random_row_entries
from support.tiers import TIMES, some

HOST = load_target("host")
PUSH = "entry push(frame : buffer<4xi8> r activation) on cpu {"
CLASSIFY = "entry classify(loudest : buffer<1xi8> w activation, count : buffer<1xi32> w activation) on cpu {"


def wake(*changes: tuple[str, str]) -> ir.Module:
    text = WAKE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_module(text, {}, {})


def test_the_text_is_read_as_it_is_printed() -> None:
    constants = {data.digest: data for data in named_constants(wake()).values()}
    text = print_module(wake())
    assert print_module(parse_text(text, Constants(by_digest=constants), {}).module) == text


def test_each_entry_has_its_own_ports_and_all_states() -> None:
    push, classify = ir.entries_alone(wake())
    assert [port.name for port in (*push.inputs, *push.outputs)] == ["frame"]
    assert [port.name for port in (*classify.inputs, *classify.outputs)] == ["loudest", "count"]
    assert push.state == classify.state == wake().state
    assert list(ir.border_ports(wake())) == ["frame", "ring", "pushed", "loudest", "count"]


def test_a_module_is_taken_apart_once() -> None:
    module = wake()
    alone = ir.entries_alone(module)
    assert ir.entries_alone(module) is alone
    other = ir.entries_alone(replace(module, name="other"))
    assert [each.name for each in (*alone, *other)] == ["wake", "wake", "other", "other"]
    (single,) = ir.entries_alone(alone[0])
    assert single is alone[0]


def test_the_evaluator_keeps_states_from_entry_to_entry() -> None:
    evaluator, random = Evaluator(wake()), np.random.default_rng(1)
    frames = [random.integers(-128, 128, 4).astype(np.int8) for _ in range(4)]
    for number, frame in enumerate(frames, 1):
        assert evaluator.run("push", {"frame": frame}) == {}
        found = evaluator.run("classify", {})
        for name, wanted in zip(("loudest", "count"), classified(frames[:number]), strict=True):
            np.testing.assert_array_equal(found[name], wanted)


@pytest.mark.parametrize("seed", range(8 * TIMES))
def test_the_planned_module_computes_what_numpy_does(seed: int) -> None:
    program, random = random_entry_program(seed), Random(seed)
    planned = plan_model(parse_module(program.text(), {}, {}), HOST).module
    evaluator, kept = Evaluator(planned), program.begun()
    for name, inputs in program.calls(random, 6):
        entry = next(entry for entry in planned.entries if entry.name == name)
        given = dict(zip((b.name for b in ir.border_buffers(entry, ir.Border.INPUT)), inputs, strict=True))
        found = evaluator.run(name, given)
        for value, wanted in zip(found.values(), program.run(kept, name, inputs), strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("io", ["caller", "workspace"])
@pytest.mark.parametrize("seed", range(12 * TIMES))
def test_entries_need_as_much_as_the_largest_of_them(seed: int, io: str) -> None:
    """Nothing of one lives in another, so the optimum of all is the largest optimum of one."""
    program, options = random_entry_program(seed), Options(io=ir.Io(io))
    plan = plan_model(parse_module(program.text(), {}, {}), HOST, options).plan
    alone = [
        plan_model(parse_module(program.alone(entry.name).text(), {}, {}), HOST, options).plan
        for entry in program.entries
    ]
    assert all(pool.optimal for pool in plan.pools.values())
    assert plan.workspace_bytes == max(each.workspace_bytes for each in alone)
    assert plan.state_bytes == alone[0].state_bytes
    assert plan_of(document_of(plan)) == plan


@pytest.mark.parametrize("seed", some(range(0, 48 * TIMES, 2), every=8))
def test_entries_by_rows_need_as_much_as_the_largest_of_them(seed: int) -> None:
    program = random_row_entries(seed)
    plan = plan_model(parse_module(program.text(), {}, {}), HOST).plan
    alone = [
        plan_model(parse_module(program.alone(entry.name).text(), {}, {}), HOST).plan
        for entry in program.entries
    ]
    assert plan.workspace_bytes == max(each.workspace_bytes for each in alone)
    for segment in plan.segments:
        first, last = segment.steps
        assert plan.entry_of(first) == plan.entry_of(last)
    assert plan_of(document_of(plan)) == plan


def test_rows_of_a_state_are_there_before_the_first_run() -> None:
    """An entry may give what is kept row by row before it keeps anything else."""

    def text(state: str, mark: str) -> str:
        row = "for r : i32 in row_begin .. row_end { y[r] = x[r] }"
        return f"""module m
input %x : tensor<6xi32>
output %y : tensor<6xi32>
{state}
kernel m_row(x : buffer<6xi32> r, y : buffer<6xi32> w, row_begin : i32, row_end : i32) on cpu {{ {row} }}
entry main(x : buffer<6xi32> r, y : buffer<6xi32> w) on cpu {{
  allocate s : buffer<6xi32> {mark}
  for t : i32 in 0 .. 6 {{
    call_extern m_row(&s, &y, t, t + 1)
    call_extern m_row(&x, &s, t, t + 1)
  }}
}}
"""

    kept = parse_module(text("state %s : tensor<6xi32>", '{io="state"}'), {}, {})
    evaluator = Evaluator(plan_model(kept, HOST).module)
    for old, new in pairwise((0, 7, 9)):
        found = evaluator.run("main", {"x": np.full(6, new, np.int32)})
        np.testing.assert_array_equal(found["y"], np.full(6, old))
    with pytest.raises(CompileError, match="reads row 0 of 's', which is not made yet"):
        plan_model(parse_module(text("", ""), {}, {}), HOST)


def test_buffers_of_one_name_are_told_apart_and_share_bytes() -> None:
    plan = compile_model(wake(), HOST).plan
    assert [(entry.name, entry.steps, entry.ticks) for entry in plan.entries] == [
        ("push", (0, 2), (0, 6)),
        ("classify", (2, 5), (6, 15)),
    ]
    first, second = plan.buffers["push/t"], plan.buffers["classify/t"]
    assert plan.shared_bytes("push/t", "classify/t") == 4
    assert first.live is not None
    assert second.live is not None
    assert first.live[1] <= 6 <= second.live[0]
    assert plan.buffers["ring"].live == (0, 15)
    pinned = plan_model(wake(), HOST, Options(pins=(Pin("classify/t", "ram", offset=32),))).plan
    assert pinned.buffers["classify/t"].place.offset == 32


def test_one_entry_is_run_and_not_stated() -> None:
    program = random_entry_program(1)
    plan = plan_model(parse_module(program.alone("e0").text(), {}, {}), HOST).plan
    assert [entry.name for entry in plan.entries] == ["run"]
    assert plan.alone(plan.entries[0]) is plan
    assert "entries" not in document_of(plan)


def test_an_entry_without_steps_has_a_tick_for_itself() -> None:
    idle = f"{WAKE}entry idle() on cpu {{\n" + '  allocate ring : buffer<3x4xi8> {io="state"}\n'
    idle += '  allocate pushed : buffer<1xi32> {io="state"}\n}\n'
    plan = compile_model(parse_module(idle, {}, {}), HOST).plan
    assert (plan.entries[2].steps, plan.entries[2].ticks) == ((5, 5), (15, 16))
    assert plan.buffers["ring"].live == (0, 16)


def test_a_state_has_what_all_entries_ask_for() -> None:
    strict = wake()
    push, classify = strict.entries
    asked = classify.body.statements[0]
    assert isinstance(asked, ir.Allocate)
    wide = replace(asked, buffer=replace(asked.buffer, alignment=64))
    classify = replace(classify, body=ir.Seq((wide, *classify.body.statements[1:])))
    changed = own_names(replace(strict, entries=(push, classify)))
    assert [ir.border_buffers(e, ir.Border.STATE)[0].alignment for e in changed.entries] == [64, 64]
    both = [
        replace(
            entry,
            body=ir.Seq(
                (
                    replace(asked, storage=asked.storage.narrowed(candidates=(pool,))),
                    *entry.body.statements[1:],
                )
            ),
        )
        for entry, pool in zip(strict.entries, ("ram", "rodata"), strict=True)
    ]
    with pytest.raises(CompileError) as caught:
        own_names(replace(strict, entries=tuple(both)))
    assert [d.code for d in caught.value.diagnostics] == ["BW301"]
    assert "no pool may hold state 'ring' for all entries" in caught.value.diagnostics[0].message


def test_the_clock_refuses_what_two_entries_call_alike() -> None:
    with pytest.raises(Exception, match="'t' of 'classify' has the name of another's buffer"):
        read_clock(wake(), HOST)


_STATES = '  allocate ring : buffer<3x4xi8> {io="state"}\n  allocate pushed : buffer<1xi32> {io="state"}\n'
_OTHERS = _STATES.replace("ring", "wheel") + "  allocate ring : buffer<3x4xi8>\n"
REFUSED = {
    "other states": (
        (CLASSIFY + "\n" + _STATES, CLASSIFY + "\n" + _OTHERS),
        "BW113",
        "entry 'classify' allocates the states 'wheel', 'pushed', entry 'push' 'ring', 'pushed'",
    ),
    "the name of a function": (("entry push", "entry reset"), "BW117", "an entry cannot be called 'reset'"),
    "no name in C": (("entry push", "entry int"), "BW117", "an entry cannot be called 'int': it is no name"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_several_entries_may_not_be_is_refused(name: str) -> None:
    change, code, message = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        compile_model(wake(change), HOST)
    assert [d.code for d in caught.value.diagnostics][:1] == [code]
    assert any(message in d.message for d in caught.value.diagnostics), caught.value


def test_rows_of_one_run_function_are_refused() -> None:
    with pytest.raises(CompileError) as caught:
        compile_model(wake(), HOST, Options(io=ir.Io.ROWS))
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("BW204", "leave out --io rows")
    assert found.notes[0].startswith("between two rows an image lies in the workspace")
    assert found.message == "--io rows is for a model of one entry; module 'wake' has 2: 'push', 'classify'"


def test_an_entry_on_another_device_is_refused() -> None:
    text = WAKE.replace(PUSH, PUSH.replace("on cpu", "on core1"))
    with pytest.raises(CompileError, match="entry 'classify' runs on 'cpu', entry 'push' on 'core1'"):
        compile_model(parse_module(text, {}, {}), load_target("mps2-an521"))


def test_extents_of_one_name_are_of_one_range() -> None:
    plan = plan_model(parse_module(OPEN, {}, {}), HOST).plan
    assert [(s.name, s.lower, s.upper) for s in plan.symbols] == [("n", 1, 4), ("m", 1, 5)]
    assert [entry.extents for entry in plan.entries] == [("n",), ("m",)]
    assert [plan.alone(entry).run_arguments[-1] for entry in plan.entries] == ["n", "m"]
    assert plan_of(document_of(plan)) == plan
    other = re.sub(r"\bm\b", "n", OPEN)
    alike = other.replace("n[1..5]", "n[1..4]")
    assert [s.name for s in plan_model(parse_module(alike, {}, {}), HOST).plan.symbols] == ["n"]
    with pytest.raises(CompileError) as caught:
        compile_model(parse_module(other, {}, {}), HOST)
    (found,) = [d for d in caught.value.diagnostics if "extent" in d.message]
    assert (found.code, found.message) == (
        "BW113",
        "extent 'n' of entry 'get' is 1 to 5, of another entry 1 to 4",
    )
    assert found.help == "the same bounds, or another name than n"
