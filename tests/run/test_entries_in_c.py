"""Several entries over one state and one workspace: from IR text to C, in any order, against numpy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright import ir
from bytewright.cli.main import bytewright as commands
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.profile.measure import profile_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.inspect.stack.check_stack import check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, run_c, run_command
from support.entry_programs import (
    OPEN,
    WAKE,
    EntryProgram,
    classified,
    opened,
    opened_calls,
    random_entry_program,
)
from support.parsing import parse_module
from support.row_entries import RowEntries, random_row_entries, two_chains
from support.tiers import TIMES, some

pytestmark = pytest.mark.run

PLAIN = BuildOptions(flags=("-O0",))
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


def wake(folder: Path, **options: str | int) -> bytewright.CompiledModel:
    text = folder / "wake.bw"
    text.write_text(WAKE)
    model = bytewright.compile(text, **options)  # type: ignore[arg-type]
    model.write(folder / "wake")
    return model


def frames(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(3)
    return [random.integers(-128, 128, 4).astype(np.int8) for _ in range(count)]


def test_a_ring_is_pushed_by_one_entry_and_read_by_another(tmp_path: Path) -> None:
    model = wake(tmp_path)
    session, given = model.session(), frames(5)
    other = model.session()
    for number, frame in enumerate(given, 1):
        assert session.run(frame, entry="push") == ()
        found = session.run(entry="classify")
        for value, wanted in zip(found, classified(given[:number]), strict=True):
            np.testing.assert_array_equal(value, wanted)
    assert other.run(entry="classify")[1] == 0
    session.reset()
    np.testing.assert_array_equal(session.run(given[0])[0], classified(given[:1])[0])
    session.reset()
    np.testing.assert_array_equal(session.run(entry="classify")[1], [0])
    np.testing.assert_array_equal(model.run(frame=given[0])[0], classified(given[:1])[0])
    with pytest.raises(CompileError, match="has no entry 'run'; it has 'push', 'classify'"):
        session.run(entry="run")
    with pytest.raises(ValueError, match="an input of that name stands in a mapping"):
        session.run(entry=given[0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(CompileError, match="has 1 inputs, 0 were given"):
        session.run(entry="push")


def test_inputs_have_any_name(tmp_path: Path) -> None:
    """Those of the interface's own arguments too."""
    text = tmp_path / "m.bw"
    taken = "a : buffer<4xi32> r activation, b : buffer<4xi32> r activation"
    kernel = f"kernel add({taken}, c : buffer<4xi32> w activation)"
    text.write_text(
        "module m input %entry : tensor<4xi32> input %self : tensor<4xi32> output %y : tensor<4xi32>\n"
        f"{kernel} on cpu {{ for i : i32 in 0 .. 4 {{ c[i] = a[i] - b[i] }} }}\n"
        "entry minus(entry : buffer<4xi32> r activation, self : buffer<4xi32> r activation, "
        "y : buffer<4xi32> w activation) on cpu { call_extern add(&entry, &self, &y) }\n"
    )
    model = bytewright.compile(text)
    first, second = np.array([5, 6, 7, 8], np.int32), np.arange(4, dtype=np.int32)
    named = {"self": second, "entry": first}
    for found in (
        model.run(named),
        model.run(entry=first, self=second),
        model.session().run(named),
        model.session().run({"entry": first}, self=second),
    ):
        np.testing.assert_array_equal(found, first - second)


@pytest.mark.parametrize("options", [SANITIZED, PLAIN], ids=["sanitized", "plain"])
@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_entries_run_in_any_order_in_one_process(tmp_path: Path, io: str, options: BuildOptions) -> None:
    wake(tmp_path, io=io)
    given = frames(4)
    calls = [("push", [frame]) for frame in given]
    calls[2:2] = [("classify", [])]
    calls.append(("classify", []))
    found = run_batch(
        tmp_path / "wake",
        [arrays for _, arrays in calls],
        options=options,
        keep_state=True,
        entries=[name for name, _ in calls],
    )
    for number, pushed in ((2, 2), (-1, 4)):
        for value, wanted in zip(found.outputs[number], classified(given[:pushed]), strict=True):
            np.testing.assert_array_equal(value, wanted)
    whole = run_bundle(tmp_path / "wake", [given[0]], options=options, repeat=3)
    np.testing.assert_array_equal(whole.outputs[0], classified(given[:1])[0])
    check_bundle(tmp_path / "wake")
    run_paranoid(tmp_path / "wake", [given[0]])


def test_each_entry_requests_from_an_arena_of_its_own(tmp_path: Path) -> None:
    """What is requested of one is as large as its calls need, in bytes that both have in turn."""
    text = WAKE
    for entry, size, name, made in (("push", 4, "halved", "halved"), ("classify", 4, "sums", "sums")):
        kind = "i8" if entry == "push" else "i32"
        head = f"{made} : buffer<{size}x{kind}> w activation) on cpu {{\n"
        scratch = f"  allocate s : buffer<{size}x{kind}>\n"
        copy = f"  for d : i32 in 0 .. {size} {{ {made}[d] = s[d] }}\n}}\n"
        before, found, after = text.partition(head)
        body, end, rest = after.partition("\n}\n")
        assert (bool(found), bool(end)) == (True, True)
        text = f"{before}{head}{scratch}{body.replace(f'{name}[', 's[')}\n{copy}{rest}"
    (tmp_path / "wake.bw").write_text(text)
    model = bytewright.compile(tmp_path / "wake.bw", use_backend_alloc_workspace=True)
    model.write(tmp_path / "wake")
    header = (tmp_path / "wake/include/wake.h").read_text()
    sizes = [line for line in header.splitlines() if "ARENA_SIZE" in line]
    assert sizes == ["#define WAKE_PUSH_RAM_ARENA_SIZE 4", "#define WAKE_CLASSIFY_RAM_ARENA_SIZE 16"]
    check_bundle(tmp_path / "wake")
    session, given = model.session(), frames(4)
    for number, frame in enumerate(given, 1):
        session.run(frame, entry="push")
        for value, wanted in zip(session.run(entry="classify"), classified(given[:number]), strict=True):
            np.testing.assert_array_equal(value, wanted)
    run_paranoid(tmp_path / "wake", [given[0]])
    source = tmp_path / "wake/src/wake.c"
    source.write_text(
        source.read_text().replace("= WAKE_PUSH_RAM_ARENA_SIZE", "= WAKE_CLASSIFY_RAM_ARENA_SIZE")
    )
    with pytest.raises(CompileError) as caught:
        check_bundle(tmp_path / "wake")
    notes = [note for diagnostic in caught.value.diagnostics for note in diagnostic.notes]
    assert "src/wake.c does not set the arenas of the plan: ram_arena" in notes


PACKED = r"""
#include "wake_packed.h"

static wake_context context;

int main(void)
{
    const wake_workspaces workspaces = {
        .ram = {block(WAKE_RAM_WORKSPACE_ALIGN, WAKE_RAM_WORKSPACE_SIZE), WAKE_RAM_WORKSPACE_SIZE},
        .kept = {block(WAKE_KEPT_STATE_ALIGN, WAKE_KEPT_STATE_SIZE), WAKE_KEPT_STATE_SIZE}};
    static const int8_t frames[2][4] = {{9, -7, 100, 3}, {8, 127, -128, 2}};
    int8_t loudest = -1;
    int32_t count = -1;
    wake_argument given[2] = {{.pointer = &context}, {.constant = frames[0]}};
    wake_argument taken[3] = {{.pointer = &context}, {.pointer = &loudest}, {.pointer = &count}};
    int32_t codes[3] = {WAKE_ARG_POINTER, WAKE_ARG_POINTER, WAKE_ARG_POINTER};

    SHOW("not set", wake_push_packed(given, codes, 2, NULL, NULL, NULL));
    SHOW("set", wake_set_workspaces(&context, &workspaces));
    SHOW("not reset", wake_classify_packed(taken, codes, 3, NULL, NULL, NULL));
    SHOW("reset", wake_reset(&context));
    SHOW("another number", wake_push_packed(given, codes, 3, NULL, NULL, NULL));
    SHOW("the other entry's number", wake_classify_packed(taken, codes, 2, NULL, NULL, NULL));
    SHOW("pushed", wake_push_packed(given, codes, 2, NULL, NULL, NULL));
    given[1].constant = frames[1];
    SHOW("pushed again", wake_push_packed(given, codes, 2, NULL, NULL, NULL));
    SHOW("classified", wake_classify_packed(taken, codes, 3, NULL, NULL, NULL));
    SHOW("loudest", loudest);
    SHOW("count", count);
    free(workspaces.ram.base);
    free(workspaces.kept.base);
    return 0;
}
"""


@pytest.mark.parametrize("calling_form", ["plain", "packed"])
def test_each_entry_has_a_packed_form(tmp_path: Path, calling_form: str) -> None:
    wake(tmp_path, entry_form="packed", calling_form=calling_form)
    check_bundle(tmp_path / "wake")
    frames = [np.array(frame, np.int8) for frame in ([9, -7, 100, 3], [8, 127, -128, 2])]
    loudest, count = classified(frames)
    errors = {"not set": -7, "not reset": -7, "another number": -13, "the other entry's number": -13}
    done = dict.fromkeys(("set", "reset", "pushed", "pushed again", "classified"), 0)
    shown = run_c(tmp_path / "wake", PACKED, tmp_path)
    assert shown == errors | done | {"loudest": int(loudest[0]), "count": int(count[0])}
    entry, header = (
        (tmp_path / "wake" / path).read_text() for path in ("src/wake.c", "include/wake_packed.h")
    )
    assert ("packed" in entry) == (calling_form == "packed")
    assert "  frame: const int8_t *" in header
    assert "inputs" not in header


def test_the_stack_of_packed_entries_is_that_of_the_deepest(tmp_path: Path) -> None:
    """Each has a frame of its own above it, with the addresses of its inputs and outputs."""
    (tmp_path / "plain").mkdir()
    plain, packed = (
        wake(tmp_path / "plain").plan.stack["cpu"],
        wake(tmp_path, entry_form="packed").plan.stack["cpu"],
    )
    allowance = load_target("host").device("cpu").stack_allowance_per_call_bytes
    assert (packed.planned_bytes, packed.size_bytes) == (
        plain.planned_bytes,
        plain.size_bytes + allowance + 2 * 8,
    )
    assert packed.path[0] == "wake_classify_packed"
    bundle = read_bundle(tmp_path / "wake")
    for flags in (("-O0",), ("-O2",)):
        proof = check_stack(bundle.plan, lambda given: compile_call_graphs(bundle, given), flags)
        assert "_packed " in str(proof.measured)


def test_an_entry_is_not_called_as_the_packed_form_of_another() -> None:
    text = WAKE.replace("entry classify(", "entry push_packed(")
    compile_model(parse_module(text, {}, {}), load_target("host"))
    with pytest.raises(CompileError, match="an entry cannot be called 'push_packed'") as caught:
        compile_model(parse_module(text, {}, {}), load_target("host"), Options(entry_form=ir.Form.PACKED))
    assert [d.code for d in caught.value.diagnostics] == ["BW117"]


SELF_TEST = r"""
#include "wake_self_test.h"

static wake_context context;

int main(void)
{
    const wake_workspaces workspaces = {@pools@};
    @outputs@

    SHOW("not set", wake_self_test(&context@given@));
    SHOW("set", wake_set_workspaces(&context, &workspaces));
    SHOW("tested", wake_self_test(&context@given@));
    SHOW("tested again", wake_self_test(&context@given@));
    @free@
    return 0;
}
"""


def fnv1a(data: bytes) -> int:
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_a_self_test_runs_every_entry(tmp_path: Path, io: str) -> None:
    """From the state before the first run on; what is expected is numpy's, and what is wrong is found."""
    model = wake(tmp_path, io=io, self_test=3)
    text = (tmp_path / "wake" / "src" / "wake_self_test.c").read_text()
    stored, expected = (
        re.search(r"stored_frame.*?};", text, re.DOTALL),
        re.search(r"expected.*?};", text, re.DOTALL),
    )
    assert stored is not None
    assert expected is not None
    frames = [
        np.array(row.split(","), np.uint8).view(np.int8) for row in re.findall(r"[\d, ]+(?=,\n)", stored[0])
    ]
    sums = [fnv1a(value.tobytes()) for frame in frames for value in classified([frame])]
    assert [int(value, 16) for value in re.findall(r"0x(\w+)u", expected[0])] == sums
    pools = [pool.c_name for pool in model.plan.caller_workspaces]
    sizes = {pool: f"WAKE_{pool.upper()}_{'STATE' if pool == 'kept' else 'WORKSPACE'}" for pool in pools}
    memory = (f".{pool} = {{block({name}_ALIGN, {name}_SIZE), {name}_SIZE}}" for pool, name in sizes.items())
    outputs = "int8_t loudest; int32_t count; const wake_classify_outputs outputs = {&loudest, &count};"
    is_lent = io == "caller"
    program = SELF_TEST.replace("@pools@", ", ".join(memory)).replace("@outputs@", outputs if is_lent else "")
    program = program.replace("@given@", ", &outputs" if is_lent else "")
    program = program.replace("@free@", "".join(f"free(workspaces.{pool}.base);" for pool in pools))
    check_bundle(tmp_path / "wake")
    shown = run_c(tmp_path / "wake", program, tmp_path)
    assert shown == {"not set": -7, "set": 0, "tested": 0, "tested again": 0}
    kernels = tmp_path / "wake" / "src" / "wake_kernels.c"
    kernels.write_text(kernels.read_text().replace("count[0] = ", "count[0] = 1 + "))
    assert run_c(tmp_path / "wake", program, tmp_path)["tested"] == 1


def test_a_report_and_a_run_say_which_entries_there_are(tmp_path: Path) -> None:
    wake(tmp_path)
    bundle, runner = str(tmp_path / "wake"), CliRunner()
    said = runner.invoke(commands, ["report", bundle]).output
    assert (
        "entries, of which one runs at a time: push (frame; steps 0..1), classify (loudest, count; steps 2..4)"
        in said
    )
    alone = runner.invoke(commands, ["run", bundle, "--entry", "classify", "--json"])
    assert json.loads(alone.output)["outputs"] == [[0], [0]]
    wrong = runner.invoke(commands, ["run", bundle, "--entry", "judge"])
    assert (wrong.exit_code, "help: --entry push" in wrong.output) == (1, True)
    both = runner.invoke(commands, ["run", bundle, "--entry", "push", "--paranoid"])
    assert "a paranoid run is of all entries, in their order" in both.output


@pytest.mark.parametrize(
    "more",
    [
        "wake_halve((const int8_t *)(ram + WAKE_AT_RAM_PUSH__T), (int8_t *)(ram + WAKE_AT_RAM_PUSH__T));",
        "if (wake_push(context, NULL) != WAKE_OK) { return WAKE_ERROR_NULL; }",
    ],
)
def test_an_entry_that_does_more_than_its_steps_is_refused(tmp_path: Path, more: str) -> None:
    wake(tmp_path)
    source = tmp_path / "wake/src/wake.c"
    text = source.read_text()
    assert "    wake_sums((const" in text
    source.write_text(text.replace("    wake_sums((const", f"    {more}\n    wake_sums((const"))
    with pytest.raises(CompileError) as caught:
        check_bundle(tmp_path / "wake")
    (found,) = caught.value.diagnostics
    assert "src/wake.c calls 4 kernels, not those of the plan's 3 steps in order" in found.notes


def test_a_profile_is_of_all_entries(tmp_path: Path) -> None:
    wake(tmp_path)
    profile = profile_bundle(tmp_path / "wake", repeat=3)
    assert [step.num_calls for step in profile.steps] == [1] * 5


def test_the_c_of_several_entries_compiles_without_a_warning(tmp_path: Path) -> None:
    wake(tmp_path)
    for source in sorted((tmp_path / "wake/src").glob("*.c")):
        for compiler in ("gcc", "clang"):
            flags = [*LANGUAGE, *WARNINGS, "-pedantic", "-fsyntax-only", "-Iinclude"]
            run_command([compiler, *flags, source.relative_to(tmp_path / "wake")], tmp_path / "wake")


@pytest.mark.parametrize(("io", "asks"), [("caller", False), ("workspace", True)])
def test_each_run_is_given_the_extents_of_its_entry(tmp_path: Path, io: str, asks: bool) -> None:
    (tmp_path / "o.bw").write_text(OPEN)
    model = bytewright.compile(tmp_path / "o.bw", io=io, use_backend_alloc_workspace=asks)
    model.write(tmp_path / "o")
    check_bundle(tmp_path / "o")
    calls = opened_calls(7, 12)
    found = run_batch(
        tmp_path / "o",
        [arrays for _, arrays in calls],
        options=SANITIZED,
        keep_state=True,
        entries=[name for name, _ in calls],
    )
    for outputs, wanted in zip(found.outputs, opened(calls), strict=True):
        np.testing.assert_array_equal(outputs[0], wanted)
    if asks:
        run_paranoid(tmp_path / "o")
        return
    header = (tmp_path / "o/include/o.h").read_text()
    assert "int32_t o_get(o_context *context, " in header
    assert "'put' is given 'n': 1 to this." in header
    assert "'m' is 1 to O_M_MAX; inputs and outputs have so many elements along the first axis" in header
    session = model.session()
    three, one = (session.run(calls_of_get(rows), entry="get") for rows in (3, 1))
    assert (three.shape, one.shape) == ((3, 3), (1, 3))
    with pytest.raises(CompileError, match=r"input 'c' must be int32\[1..5, 3\], the array is int32\[6, 3\]"):
        session.run(calls_of_get(6), entry="get")


def calls_of_get(rows: int) -> np.ndarray:
    return np.arange(rows * 3, dtype=np.int32).reshape(rows, 3)


def assert_runs_equal(
    folder: Path, program: EntryProgram | RowEntries, random: Random, options: BuildOptions
) -> None:
    """Twelve runs of entries in any order compute what numpy does, with what they keep."""
    calls, kept = program.calls(random, 12), program.begun()
    found = run_batch(
        folder,
        [arrays for _, arrays in calls],
        options=options,
        keep_state=True,
        entries=[name for name, _ in calls],
    )
    for (name, inputs), outputs in zip(calls, found.outputs, strict=True):
        for value, wanted in zip(outputs, program.run(kept, name, inputs), strict=True):
            np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("seed", some(range(32 * TIMES), every=8))
def test_random_entries_compute_what_numpy_does(tmp_path: Path, seed: int) -> None:
    program, random = random_entry_program(seed), Random(seed)
    text, io = tmp_path / "r.bw", random.choice(["caller", "workspace"])
    text.write_text(program.text())
    asks = random.random() < 0.5  # every second kernel requests its scratch at run time
    bytewright.compile(text, io=io, use_backend_alloc_workspace=asks).write(tmp_path / "r")
    check_bundle(tmp_path / "r")
    assert_runs_equal(tmp_path / "r", program, random, SANITIZED if seed % 4 == 0 else PLAIN)
    if seed % 4 == 1:
        run_paranoid(tmp_path / "r", seed=seed)


@pytest.mark.parametrize("seed", some(range(32 * TIMES), every=16))
def test_random_entries_by_rows_compute_what_numpy_does(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows, io = random.choice(["auto", "max", "max"]), random.choice(["caller", "workspace"])
    program, text = random_row_entries(seed), tmp_path / "r.bw"
    text.write_text(program.text())
    bytewright.compile(text, rows=rows, io=io).write(tmp_path / "r")
    check_bundle(tmp_path / "r")
    assert_runs_equal(tmp_path / "r", program, random, SANITIZED if seed % 4 == 0 else PLAIN)
    if seed // 16 % 2:
        run_paranoid(tmp_path / "r", seed=seed)


def test_entries_have_rings_of_their_own(tmp_path: Path) -> None:
    """Three rows of each of two tensors: 72 B for either entry, where whole tensors lie 12 B apart over one another."""
    text = tmp_path / "r.bw"
    text.write_text(two_chains().text())
    bytewright.compile(text).write(tmp_path / "r")
    check_bundle(tmp_path / "r")
    plan = json.loads((tmp_path / "r/plan.json").read_text())
    assert [segment["steps"] for segment in plan["segments"]] == [[0, 2], [4, 6]]
    whole = json.loads(bytewright.compile(text, rows="off").files["plan.json"])
    used = [sum(p["used_bytes"] for p in one["pools"] if p["role"] == "workspace") for one in (plan, whole)]
    assert used == [72, plan["plain_workspace_bytes"]] == [72, 204]
    source = (tmp_path / "r/src/r.c").read_text()
    assert "Steps 4 to 6 run together, row by row" in source
    assert " *   right/t0: 3 of 16 rows, as step 5 needs 3 at once" in source
    profile = profile_bundle(tmp_path / "r", repeat=3)
    assert [step.num_calls for step in profile.steps] == [18, 18, 18, 1] * 2


def test_a_row_that_only_the_second_entry_does_not_make_is_found(tmp_path: Path) -> None:
    text = tmp_path / "r.bw"
    text.write_text(two_chains().text())
    bytewright.compile(text).write(tmp_path / "r")
    source = tmp_path / "r/src/r.c"
    before, loop, after = source.read_text().rpartition("turn < 18")
    assert loop
    assert "r_left_2_rows" in before
    source.write_text(f"{before}turn < 17{after}")
    with pytest.raises(CompileError) as caught:
        run_paranoid(tmp_path / "r")
    (found,) = caught.value.diagnostics
    assert found.notes == ("the loop of step 4 (r_right_0_rows) does not make the calls that the plan has",)


def test_a_paranoid_run_lets_rows_of_a_state_live(tmp_path: Path) -> None:
    """The first steps read the state's rows, which the run before has left, in loops over rows."""
    text = tmp_path / "r.bw"
    row = "for r : i32 in row_begin .. row_end { y[r] = x[r] + 1 }"
    text.write_text(
        f"""module m
input %x : tensor<6xi32>
output %y : tensor<6xi32>
state %s : tensor<6xi32>
kernel m_row(x : buffer<6xi32> r, y : buffer<6xi32> w, row_begin : i32, row_end : i32) on cpu {{ {row} }}
entry main(x : buffer<6xi32> r, y : buffer<6xi32> w) on cpu {{
  allocate s : buffer<6xi32> {{io="state"}}
  for t : i32 in 0 .. 6 {{
    call_extern m_row(&s, &y, t, t + 1)
    call_extern m_row(&x, &s, t, t + 1)
  }}
}}
"""
    )
    bytewright.compile(text).write(tmp_path / "m")
    check_bundle(tmp_path / "m")
    found = run_paranoid(tmp_path / "m", [np.full(6, 7, np.int32)])
    np.testing.assert_array_equal(found.result.outputs[0], np.full(6, 1))
