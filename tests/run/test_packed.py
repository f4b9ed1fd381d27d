"""Packed calls on the host: models and programs give what they give without, in stack that is accounted to the byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch, run_bundle
from bytewright.inspect.c_source import CSource
from bytewright.inspect.check import check_bundle
from bytewright.inspect.read_entry import read_entry
from bytewright.inspect.stack.check_stack import check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.ir.border import Io
from bytewright.ir.packed import Form
from bytewright.options import Options
from bytewright.record.names import names_of
from bytewright.target import load_target
from bytewright.target.options import Overrides, apply_overrides
from support.arena_cases import ALL_EXTENTS, CASES, case_of, expected_of, outputs_shown, program
from support.c_program import run_c
from support.digits_bundle import DIGITS
from support.packed_program import APPLICATION, INPUT, MOST_ARGUMENTS, PROGRAM, bundle, compiled, result
from support.reference import LiteRt

HOST = load_target("host")
PACKED = Options(calling_form=Form.PACKED, entry_form=Form.PACKED)
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc")
ALLOWANCE = HOST.device("cpu").stack_allowance_per_call_bytes
BYTES_OF_AN_ARGUMENT = 8 + 4


def images(num: int) -> np.ndarray:
    return np.random.default_rng(4).integers(-128, 128, (num, 1, 8, 8, 1), np.int8)


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_a_model_computes_what_litert_does(tmp_path: Path, io: Io) -> None:
    write_bundle(compile_model(DIGITS, HOST, replace(PACKED, io=io)).files, tmp_path / "out")
    reference, given = LiteRt(DIGITS), images(5)
    run = run_batch(tmp_path / "out", [[image] for image in given], options=SANITIZED)
    for image, outputs in zip(given, run.outputs, strict=True):
        assert np.array_equal(outputs[0], reference.run(image)[0])
    assert check_bundle(tmp_path / "out").num_steps == 7
    watched = run_paranoid(tmp_path / "out", [given[0]])
    assert np.array_equal(watched.result.outputs[0], reference.run(given[0])[0])


EXTENTS = """
#include "digits_packed.h"

static digits_context context;

int main(void)
{
    static int8_t images[4][64], given[4][10];
    const digits_workspaces workspaces = {.ram = {
        block(DIGITS_RAM_WORKSPACE_ALIGN, DIGITS_RAM_WORKSPACE_SIZE), DIGITS_RAM_WORKSPACE_SIZE}};
    digits_argument arguments[4] = {{.pointer = &context}, {.constant = images}, {.pointer = given}, {.integer = 3}};
    int32_t codes[4] = {DIGITS_ARG_POINTER, DIGITS_ARG_POINTER, DIGITS_ARG_POINTER, DIGITS_ARG_INT};

    SHOW("not set", digits_run_packed(arguments, codes, 4, NULL, NULL, NULL));
    SHOW("set", digits_set_workspaces(&context, &workspaces));
    SHOW("run", digits_run_packed(arguments, codes, 4, NULL, NULL, NULL));
    SHOW("written", given[2][0] + given[2][1] + given[2][2] + given[2][3] + given[2][4] + given[2][5] +
        given[2][6] + given[2][7] + given[2][8] + given[2][9]);
    SHOW("not written", given[3][0] | given[3][9]);
    arguments[3].integer = 5;
    SHOW("extent", digits_run_packed(arguments, codes, 4, NULL, NULL, NULL));
    arguments[3].integer = (int64_t)1 << 32 | 3;
    SHOW("wide", digits_run_packed(arguments, codes, 4, NULL, NULL, NULL));
    free(workspaces.ram.base);
    return 0;
}
"""


def test_an_open_batch_is_an_argument_of_the_packed_run(tmp_path: Path) -> None:
    write_bundle(compile_model(DIGITS, HOST, replace(PACKED, batch_max=4)).files, tmp_path / "out")
    shown = run_c(tmp_path / "out", EXTENTS, tmp_path)
    zeros = np.zeros((1, 8, 8, 1), np.int8)
    written = int(LiteRt(DIGITS).run(zeros)[0].astype(np.int64).sum())
    assert shown == {
        "not set": -7,
        "set": 0,
        "run": 0,
        "written": written,
        "not written": 0,
        "extent": -10,
        "wide": -13,
    }
    given = images(3)
    run = run_bundle(tmp_path / "out", [np.concatenate(list(given))], options=SANITIZED)
    expected = [LiteRt(DIGITS).run(image)[0] for image in given]
    assert np.array_equal(run.outputs[0], np.concatenate(expected))


@pytest.mark.parametrize("name", sorted(CASES))
def test_what_is_requested_is_passed_and_released(tmp_path: Path, name: str) -> None:
    case = case_of(name)
    write_bundle(compile_model(case.module, case.target, PACKED).files, tmp_path / "out")
    check_bundle(tmp_path / "out")
    shown = run_c(tmp_path / "out", program(case, ALL_EXTENTS), tmp_path)
    assert shown.pop("set") == 0
    assert "refused" not in shown
    for rows in range(1, case.module.main.buffer_parameters[0].buffer.shape[0].upper + 1):  # type: ignore[union-attr]
        assert outputs_shown(shown, "y", rows) == expected_of(case, rows)


def test_a_status_of_the_application_ends_the_run(tmp_path: Path) -> None:
    folder = bundle(tmp_path, calling_form=Form.PACKED)
    source = tmp_path / "app.c"
    source.write_text(APPLICATION)
    with pytest.raises(CompileError, match=r"MIX_ERROR_EXTERNAL \(-12\)"):
        run_bundle(folder, [INPUT * 0 + 100], options=replace(SANITIZED, sources=(source,)))


def test_calls_by_hand_in_loops_and_branches_beside_plain_ones(tmp_path: Path) -> None:
    text = PROGRAM.replace(
        "call_extern mix_shift(&u, &y, -1:i16, true)",
        """allocate v : buffer<8xi16>
  call_cpacked mix_shift(&u, &v, 0:i16, false)
  for turn : i32 in 0 .. 3 {
    if turn < 2 {
      call_cpacked mix_shift(&v, &y, i16(turn), turn > 0)
    } else {
      call_extern mix_shift(&y, &v, 5:i16, true)
    }
  }
  call_cpacked mix_shift(&v, &y, 1:i16, true)""",
    )
    folder = bundle(tmp_path, text)
    source = tmp_path / "app.c"
    source.write_text(APPLICATION)
    run = run_bundle(folder, [INPUT], options=replace(SANITIZED, sources=(source,)))
    assert np.array_equal(run.outputs[0], result(INPUT) + 1 + 1 + 5 + 1)
    check_bundle(folder)
    entry = (folder / "src" / "mix.c").read_text()
    assert entry.count("mix_shift_packed(") == 3
    assert "app_reverse_packed" not in entry


NAMES = """\
module m

input %x : tensor<4xi16>
output %y : tensor<4xi16>

extern run(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu stack=64 {}
extern m_twice_packed(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu stack=64 {}

kernel m_twice(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {
  for i : i32 in 0 .. 4 {
    y[i] = x[i] * 2:i16
  }
}

kernel twice_packed(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {
  for i : i32 in 0 .. 4 {
    y[i] = x[i] * 3:i16
  }
}

kernel m_extern_run(packed_arguments : buffer<4xi16> r, resource : buffer<4xi16> w) on cpu {
  for values : i32 in 0 .. 4 {
    resource[values] = packed_arguments[values] + 7:i16
  }
}

kernel m_argument(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {
  for i : i32 in 0 .. 4 {
    y[i] = x[i] - 1:i16
  }
}

entry main(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {
  allocate a : buffer<4xi16>
  allocate b : buffer<4xi16>
  for packed_status : i32 in 0 .. 1 {
    call_extern m_twice(&x, &a)
  }
  call_extern twice_packed(&a, &b)
  call_extern run(&b, &a)
  call_extern m_extern_run(&a, &b)
  call_extern m_twice_packed(&b, &a)
  call_extern m_argument(&a, &y)
}
"""
OWN = """
#include "m_externals.h"
void run(const int16_t *x, int16_t *y) { for (int i = 0; i < 4; ++i) { y[i] = (int16_t)(x[i] + 100); } }
void m_twice_packed(const int16_t *x, int16_t *y) { for (int i = 0; i < 4; ++i) { y[i] = (int16_t)(x[i] * 5); } }
"""


@pytest.mark.parametrize("entry_form", list(Form))
def test_names_that_packed_forms_take_are_nobody_elses(tmp_path: Path, entry_form: Form) -> None:
    folder = bundle(tmp_path, NAMES, calling_form=Form.PACKED, entry_form=entry_form)
    source = tmp_path / "own.c"
    source.write_text(OWN)
    x = np.array([1, -2, 3, 40], np.int16)
    run = run_bundle(folder, [x], options=replace(SANITIZED, sources=(source,)))
    assert np.array_equal(run.outputs[0], (x * 6 + 107) * 5 - 1)
    assert check_bundle(folder).num_steps == 6


# The stack


def stack_of(**forms: Form) -> tuple[int, int, tuple[str, ...]]:
    stack = compiled(**forms).plan.stack["cpu"]
    return stack.planned_bytes, stack.size_bytes, stack.path


def test_a_packed_call_takes_a_level_more_and_the_arrays_of_its_arguments() -> None:
    planned, size, path = stack_of()
    assert path == ("main", "app_reverse")
    arrays = MOST_ARGUMENTS * BYTES_OF_AN_ARGUMENT
    packed = stack_of(calling_form=Form.PACKED)
    assert packed == (
        planned + arrays,
        size + arrays + ALLOWANCE,
        ("main", "mix_extern_app_reverse_packed", "app_reverse"),
    )
    both = stack_of(calling_form=Form.PACKED, entry_form=Form.PACKED)
    pointers = 2 * 8  # of the structures of inputs and outputs
    assert both == (packed[0], packed[1] + ALLOWANCE + pointers, ("mix_run_packed", *packed[2]))


@pytest.mark.parametrize("flags", [("-O2",), ("-O0",), ("-Os",)], ids=" ".join)
@pytest.mark.parametrize("entry_form", list(Form))
def test_the_stack_is_proved_with_packed_calls(
    tmp_path: Path, flags: tuple[str, ...], entry_form: Form
) -> None:
    folder = bundle(tmp_path, calling_form=Form.PACKED, entry_form=entry_form)
    plan = check_bundle(folder).plan
    proof = check_stack(plan, lambda given: compile_call_graphs(read_bundle(folder), given), flags)
    assert "app_reverse 4096 B" in str(proof.measured)
    assert ("mix_run_packed" in str(proof.measured)) == (entry_form is Form.PACKED)


def test_a_limit_holds_to_the_byte_and_the_refusal_names_every_level(tmp_path: Path) -> None:
    _, size, _ = stack_of(calling_form=Form.PACKED, entry_form=Form.PACKED)
    (tmp_path / "mix.bw").write_text(PROGRAM)
    forms = {"calling_form": "packed", "entry_form": "packed"}
    fits = bytewright.compile(tmp_path / "mix.bw", max_stack_size=size, **forms)  # type: ignore[arg-type]
    assert fits.plan.stack["cpu"].size_bytes == size
    with pytest.raises(CompileError) as caught:
        bytewright.compile(tmp_path / "mix.bw", max_stack_size=size - 1, **forms)  # type: ignore[arg-type]
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.notes[0]) == (
        "BW302",
        f"worst path, arrays + allowance: mix_run_packed {ALLOWANCE + 16} B -> main 72 B + {ALLOWANCE} B -> "
        f"mix_extern_app_reverse_packed {ALLOWANCE} B -> app_reverse 4096 B",
    )


def test_scratch_leaves_a_stack_that_packed_calls_fill() -> None:
    """A kernel's array goes to the workspace where the level of a packed call leaves no room for it."""
    text = (
        PROGRAM.replace(
            "kernel mix_twice(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {",
            """kernel mix_twice(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  allocate scratch : buffer<512xi16>
  for k : i32 in 0 .. 512 {
    scratch[k] = x[k % 8]
  }""",
        )
        .replace("y[i] = x[i] * 2", "y[i] = scratch[i] * 2")
        .replace("stack=4096", "stack=64")
    )
    limited = apply_overrides(HOST, Overrides(max_stack_size=3 * ALLOWANCE + 500))
    places = [
        {name: buffer.place.kind.value for name, buffer in plan.buffers.items() if name.endswith("scratch")}
        for plan in (
            compiled(text, limited).plan,
            compiled(text, limited, calling_form=Form.PACKED).plan,
        )
    ]
    assert [set(place.values()) for place in places] == [{"stack"}, {"planned"}]


# Reading it back


def test_a_packed_call_that_was_changed_is_found() -> None:
    made = compiled(calling_form=Form.PACKED)
    names = names_of(made.plan)
    entry = made.files["src/mix.c"].decode()

    def called(text: str) -> list[tuple[str, frozenset[str]]]:
        calls = read_entry(CSource(text), names, made.plan.externals).calls
        return [(call.kernel, call.names) for call in calls]

    planned = [
        (step.kernel, frozenset(names.argument(made.plan.buffers[name]) for name in step.touched))
        for step in made.plan.steps
    ]
    assert called(entry) == planned
    for old, new in (
        ("packed_codes[2] = MIX_ARG_FLOAT;", "packed_codes[2] = MIX_ARG_INT;"),
        ("packed_arguments[1].pointer", "packed_arguments[0].pointer"),
        ("packed_arguments, packed_codes, 6, NULL", "packed_arguments, packed_codes, 5, NULL"),
        ("packed_arguments, packed_codes, 2, NULL", "packed_arguments, NULL, 2, NULL"),
        ("    packed_codes[0] = MIX_ARG_POINTER;\n", ""),
        ("mix_twice_packed(", "mix_shift_packed("),
    ):
        assert old in entry
        assert called(entry.replace(old, new, 1)) != planned, new
