"""C functions of the application: prototypes, scratch, status, stack, devices, and their place in plan and checks."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.compiler.pipeline import plan_model
from bytewright.diagnostics import CompileError, Diagnostic, InternalError
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.frontends.text import import_text
from bytewright.inspect.check import check_bundle
from bytewright.inspect.stack.check_stack import check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.ir.module import Module
from bytewright.ir.text.modules import parse_text, print_module
from bytewright.ir.text.reader import Constants
from bytewright.ir.verify.stages import Stage, find_violations
from bytewright.record.plan_file import read_plan
from bytewright.target import Target, load_target
from support.c_program import WARNINGS
from support.compilers import host_build
from support.evaluate.evaluate import Evaluator

HOST = load_target("host")
PROGRAM = """\
module mix

extern app_reverse(x : buffer<8xi16> r, y : buffer<8xi16> w, gain : f32, bias : i64) on cpu stack=256 status {
  allocate work : buffer<8xi32>
  allocate more : buffer<4xi8, align=64>
}

kernel mix_twice(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  for i : i32 in 0 .. 8 {
    y[i] = x[i] * 2:i16
  }
}

entry main(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  allocate t : buffer<8xi16>
  allocate u : buffer<8xi16>
  call_extern mix_twice(&x, &t)
  call_extern app_reverse(&t, &u, 0.5:f32, -3:i64)
  call_extern mix_twice(&u, &y)
}
"""
SOURCE = """\
#include "mix_externals.h"

int32_t app_reverse(const int16_t *x, int16_t *y, float gain, int64_t bias, int32_t *work, int8_t *more)
{
    for (int i = 0; i < 8; ++i) {
        work[i] = x[7 - i];
    }
    for (int i = 0; i < 4; ++i) {
        more[i] = (int8_t)i;
    }
    for (int i = 0; i < 8; ++i) {
        y[i] = (int16_t)((float)work[i] * gain + (float)bias);
    }
    return x[0] == 200 ? 7 : 0;
}
"""
X = np.array([1, -2, 30, -40, 500, -600, 7000, -8000], np.int16)


def result(x: np.ndarray) -> np.ndarray:
    reversed_ = (2 * x).astype(np.int16)[::-1].astype(np.float32)
    return (2 * np.trunc(reversed_ * np.float32(0.5) + np.float32(-3))).astype(np.int16)


def write(folder: Path, text: str = PROGRAM) -> Path:
    path = folder / "mix.bw"
    path.write_text(text)
    (folder / "app.c").write_text(SOURCE)
    return path


def bundle(folder: Path, text: str = PROGRAM, **options: str) -> Path:
    return bytewright.compile(write(folder, text), **options).write(folder / "out")  # type: ignore[arg-type]


def refusals(folder: Path, text: str, target: str | Target = "host") -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(write(folder, text), target=target)
    return caught.value.diagnostics


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_it_is_called_with_its_scratch_and_the_bundle_verifies(tmp_path: Path, io: str):
    folder = bundle(tmp_path, io=io)
    sources = (tmp_path / "app.c",)
    run = run_bundle(folder, [X], options=host_build(flags=WARNINGS, sanitize=True, sources=sources))
    assert np.array_equal(run.outputs[0], result(X))
    assert check_bundle(folder).num_steps == 3
    watched = run_paranoid(folder, [X], options=BuildOptions(sources=sources))
    assert np.array_equal(watched.result.outputs[0], result(X))


def test_its_scratch_is_planned_and_aligned(tmp_path: Path):
    plan = bytewright.compile(write(tmp_path)).plan
    scratch = {b.name.rpartition("/")[2]: b for b in plan.buffers.values() if b.role == "scratch"}
    assert {name: (b.size_bytes, b.place.kind) for name, b in scratch.items()} == {
        "work": (32, "planned"),
        "more": (4, "planned"),
    }
    assert scratch["more"].alignment == 64
    step = plan.steps[1]
    assert (step.kernel, step.device) == ("app_reverse", "cpu")
    assert (step.reads, step.writes) == (("t",), ("u",))
    assert "a function of the application is given its scratch" in scratch["work"].reason
    # All that it is given is needed at once: nothing is known of the order in which it touches it.
    alive = [plan.buffers[name] for name in ("t", "u", *(b.name for b in scratch.values()))]
    body = (step.ticks[0] + 1, step.ticks[1] - 1)
    assert all(b.live is not None and b.live[0] <= body[0] and b.live[1] >= body[1] for b in alive)


def test_from_python_with_sources_and_through_a_pickle(tmp_path: Path):
    model = bytewright.compile(write(tmp_path)).with_sources(tmp_path / "app.c")
    assert np.array_equal(model.run(X), result(X))
    assert pickle.loads(pickle.dumps(model)).sources == model.sources
    with pytest.raises(CompileError, match=r"calls functions that the application brings: 'app_reverse'"):
        bytewright.compile(tmp_path / "mix.bw").run(X)


def test_the_command_takes_sources_and_names_what_is_missing(tmp_path: Path):
    path = write(tmp_path)
    np.save(tmp_path / "x.npy", X)

    def run(*more: object):
        arguments = ["run", path, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", *more]
        return CliRunner().invoke(command, [str(argument) for argument in arguments])

    assert run("--source", tmp_path / "app.c").exit_code == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), result(X))
    missing = run()
    assert (missing.exit_code, "help: --source FILE.c" in missing.stderr) == (1, True)
    assert "there is no C file" in run("--source", tmp_path / "none.c").stderr


def test_a_status_ends_the_run_with_an_error_of_its_own(tmp_path: Path):
    folder = bundle(tmp_path)
    header = (folder / "include" / "mix.h").read_text()
    assert "MIX_ERROR_EXTERNAL = -12" in header
    for options in (BuildOptions(), BuildOptions(flags=("-O0",), sanitize=True)):
        with pytest.raises(CompileError) as caught:
            run_bundle(folder, [X * 0 + 100], options=replace(options, sources=(tmp_path / "app.c",)))
        (error,) = caught.value.diagnostics
        assert (error.code, error.message) == (
            "BW502",
            "a function of the application ended the run: MIX_ERROR_EXTERNAL (-12)",
        )


def test_a_definition_that_is_not_the_prototype_does_not_compile(tmp_path: Path):
    folder = bundle(tmp_path)
    (tmp_path / "app.c").write_text(SOURCE.replace("const int16_t *x", "int16_t *x"))
    with pytest.raises(CompileError, match="conflicting types for"):
        run_bundle(folder, [X], options=BuildOptions(sources=(tmp_path / "app.c",)))


def test_the_header_is_for_c_and_cpp_and_stands_alone(tmp_path: Path):
    header = (bundle(tmp_path) / "include" / "mix_externals.h").read_text()
    assert (
        "int32_t app_reverse(const int16_t *x, int16_t *y, float gain, int64_t bias, int32_t *work, int8_t *more);"
        in " ".join(header.split())
    )
    assert 'extern "C" {' in header
    assert "It may use 256 bytes of stack" in header
    assert "more: i8[4], scratch, read and written, aligned to 64" in header


# The stack


def test_its_stack_counts_and_check_stack_proves_the_sum(tmp_path: Path):
    with_more = bundle(tmp_path, PROGRAM.replace("stack=256", "stack=9000"))
    plan = read_plan(with_more)
    assert plan.stack["cpu"].size_bytes >= 9000
    proof = check_stack(plan, lambda flags: compile_call_graphs(read_bundle(with_more), flags))
    assert "app_reverse 9000 B" in str(proof.measured)


def test_a_stack_that_nobody_states_is_refused(tmp_path: Path):
    (error,) = refusals(tmp_path, PROGRAM.replace(" stack=256", ""))
    assert (error.code, error.where) == ("BW302", "mix.bw:3")
    assert error.message == "the stack of 'app_reverse', which the application brings, is not stated"
    assert error.help is not None
    assert "extern app_reverse(...) on cpu stack=BYTES" in error.help


def test_the_target_may_state_it_and_the_larger_one_counts(tmp_path: Path):
    from bytewright.target.model import ExternalStack

    for stated, text in ((5000, PROGRAM.replace(" stack=256", "")), (5000, PROGRAM), (100, PROGRAM)):
        target = replace(HOST, external_stacks=(*HOST.external_stacks, ExternalStack("app_reverse", stated)))
        plan = bytewright.compile(write(tmp_path, text), target=target).plan
        found = {entry.symbol: entry.size_bytes for entry in plan.hardware.external_stacks}["app_reverse"]
        assert found == (stated if "stack=" not in text else max(stated, 256))


def test_a_stack_that_does_not_fit_is_refused(tmp_path: Path):
    (error,) = refusals(tmp_path, PROGRAM.replace("stack=256", "stack=9000"), "mps3-an547")
    assert error.code == "BW302"
    assert any("app_reverse 9000 B" in note for note in error.notes)


# The program


def test_the_text_survives_printing(tmp_path: Path):
    module = import_text(write(tmp_path), HOST).module
    again = parse_text(print_module(module), Constants(), {}).module
    assert again == module
    assert "extern app_reverse(" in print_module(module)


def test_a_prototype_alone_needs_no_block():
    text = (
        "module m extern f(x : buffer<4xi8> r) on cpu stack=0 "
        "entry main(x : buffer<4xi8> r, y : buffer<4xi8> w) on cpu {}"
    )
    module = parse_text(text, Constants(), {}).module
    assert module.kernels[0].external is not None
    assert module.kernels[0].external.stack_bytes == 0
    assert parse_text(print_module(module), Constants(), {}).module == module


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("  allocate work : buffer<8xi32>\n", "  x[0] = 1:i16\n", "its body can only allocate scratch"),
        ("buffer<8xi32>", 'buffer<8xi32, "global.stack">', "has scope 'global.stack', but is passed to"),
        ("buffer<8xi32>", 'buffer<8xi32, "local">', "has scope 'local', but is passed to"),
        ("&t, &u, 0.5:f32, -3:i64", "&t, &u, 0.5:f32", "takes 4 arguments, 3 are given"),
        ("0.5:f32", "1", "the argument is i32"),
        ("app_reverse(&t, &u", "app_reverse(&x, &x", "only to be read"),
        ("-3:i64)", '-3:i64) {touched_by=(("cpu",),)}', "touched_by names 1 arguments of 4"),
        ("-3:i64)", '-3:i64) {touched_by=(("npu",), (), (), ())}', "has no device 'npu'"),
    ],
)
def test_a_wrong_call_or_prototype_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, message: str
):
    assert PROGRAM.count(before) == 1
    errors = refusals(tmp_path, PROGRAM.replace(before, after))
    assert any(message in error.message for error in errors), errors
    assert all(error.code == "BW113" for error in errors)


@pytest.mark.parametrize("name", ["int", "mix_run", "stdin", "mix_set_parameters"])
def test_a_name_that_c_or_the_model_has_is_refused(tmp_path: Path, name: str):
    (error,) = refusals(tmp_path, PROGRAM.replace("app_reverse", name))
    assert (error.code, error.where) == ("BW117", "mix.bw:3")
    assert f"a function of the application cannot be called '{name}'" in error.message


def test_names_of_kernels_make_way_for_the_applications(tmp_path: Path):
    text = PROGRAM.replace("app_reverse", "mix_double").replace("mix_twice", "double")
    folder = bundle(tmp_path, text)
    (tmp_path / "app.c").write_text(SOURCE.replace("app_reverse", "mix_double"))
    run = run_bundle(folder, [X], options=BuildOptions(sources=(tmp_path / "app.c",)))
    assert np.array_equal(run.outputs[0], result(X))
    check_bundle(folder)


def test_a_status_is_for_the_entry_alone(tmp_path: Path):
    text = PROGRAM.replace(
        "    y[i] = x[i] * 2:i16\n  }",
        "    y[i] = x[i] * 2:i16\n  }\n  call_extern app_reverse(&x, &y, 1:f32, 0:i64)",
    )
    assert "returns a status, which the entry alone can act on" in refusals(tmp_path, text)[0].message


def test_a_kernel_may_call_one_without_a_status(tmp_path: Path):
    text = PROGRAM.replace(" status {", " {").replace(
        "  for i : i32 in 0 .. 8 {\n    y[i] = x[i] * 2:i16\n  }",
        "  allocate half : buffer<8xi16>\n  call_extern app_reverse(&x, &half, 1:f32, 0:i64)\n"
        "  for i : i32 in 0 .. 8 {\n    y[i] = half[i] * 2:i16\n  }",
    )
    source = SOURCE.replace("int32_t app_reverse", "void app_reverse").replace(
        "    return x[0] == 200 ? 7 : 0;\n", ""
    )
    folder = bundle(tmp_path, text)
    (tmp_path / "app.c").write_text(source)
    run = run_bundle(
        folder, [X], options=BuildOptions(flags=("-O0",), sanitize=True, sources=(tmp_path / "app.c",))
    )
    doubled = (2 * X).astype(np.int16)[::-1]
    halved = np.trunc(doubled[::-1].astype(np.float32) * np.float32(0.5) - 3).astype(np.int16)
    assert np.array_equal(run.outputs[0], (2 * halved).astype(np.int16)[::-1])
    assert check_bundle(folder).num_steps == 3


TWO_DEVICES = """
name = "two"
[memory.shared]
size = "1MiB"
[memory.own]
size = "1MiB"
[memory.rom]
size = "1MiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["shared", "own", "rom"]
stack = "own"
[device.npu]
isa = "ethos-u55"
reach = ["shared", "rom"]
[[workspace]]
name = "own"
memory = "own"
size = "64KiB"
[[workspace]]
name = "shared"
memory = "shared"
[[parameters]]
name = "rom"
memory = "rom"
"""


@pytest.mark.parametrize(
    ("touched_by", "places"),
    [
        ("", {"t": "shared", "u": "shared", "work": "shared"}),
        (' {touched_by=(("cpu",), ("cpu",), (), ())}', {"t": "own", "u": "own", "work": "own"}),
        (
            ' {touched_by=(("cpu",), ("cpu", "npu"), (), ())}',
            {"t": "own", "u": "shared", "work": "shared"},
        ),
    ],
)
def test_the_devices_that_touch_each_argument_decide_where_it_may_lie(
    tmp_path: Path, touched_by: str, places: dict[str, str]
):
    (tmp_path / "two.toml").write_text(TWO_DEVICES)
    text = PROGRAM.replace("-3:i64)", f"-3:i64){touched_by}")
    plan = bytewright.compile(write(tmp_path, text), target=tmp_path / "two.toml").plan
    found = {b.name.rpartition("/")[2]: b.place.name for b in plan.buffers.values()}
    assert {name: found[name] for name in places} == places


# The evaluator


def module_of(folder: Path) -> Module:
    return import_text(write(folder), HOST).module


def reverse(x: np.ndarray, y: np.ndarray, gain: float, bias: int, work: np.ndarray, more: np.ndarray) -> int:
    work[:] = x[::-1]
    more[:] = 1
    y[:] = np.trunc(work.astype(np.float32) * np.float32(gain) + np.float32(bias))
    return 7 if x[0] == 200 else 0


def test_a_numpy_function_stands_in_for_it(tmp_path: Path):
    module = module_of(tmp_path)
    found = Evaluator(module, stand_ins={"app_reverse": reverse}).run("main", {"x": X})["y"]
    assert np.array_equal(found, result(X))
    planned = plan_model(module, HOST).module
    assert not find_violations(planned, Stage.PLANNED, HOST)
    assert np.array_equal(
        Evaluator(planned, stand_ins={"app_reverse": reverse}).run("main", {"x": X})["y"], result(X)
    )


def test_without_a_stand_in_or_with_an_error_the_evaluator_says_so(tmp_path: Path):
    module = module_of(tmp_path)
    with pytest.raises(InternalError, match="'app_reverse' is the application's and has no stand-in"):
        Evaluator(module).run("main", {"x": X})
    with pytest.raises(InternalError, match="'app_reverse' returned 7"):
        Evaluator(module, stand_ins={"app_reverse": reverse}).run("main", {"x": X * 0 + 100})


# Requests at run time


def test_an_error_releases_what_was_requested(tmp_path: Path):
    text = """
module open
extern app_fill(x : buffer<rows[1..8]x4xi8> r, y : buffer<rows[1..8]x4xi8> w, rows : i32) on cpu stack=64 status {
  allocate work : buffer<rows[1..8]x4xi32>
}
entry main(x : buffer<rows[1..8]x4xi8> r, y : buffer<rows[1..8]x4xi8> w, rows : i32) on cpu {
  call_extern app_fill(&x, &y, rows)
}
"""
    (tmp_path / "open.bw").write_text(text)
    (tmp_path / "fill.c").write_text(
        '#include "open_externals.h"\n'
        "int32_t app_fill(const int8_t *x, int8_t *y, int32_t rows, int32_t *work)\n{\n"
        "    for (int32_t i = 0; i < 4 * rows; ++i) {\n        work[i] = x[i];\n    }\n"
        "    for (int32_t i = 0; i < 4 * rows; ++i) {\n        y[i] = (int8_t)-work[i];\n    }\n"
        "    return x[0] == 5;\n}\n"
    )
    folder = bytewright.compile(tmp_path / "open.bw").write(tmp_path / "out")
    source = (folder / "src" / "open.c").read_text()
    assert "request_status = app_fill(" in source
    assert "== 0 ? OPEN_OK : OPEN_ERROR_EXTERNAL;" in source
    check_bundle(folder)
    options = host_build(flags=WARNINGS, sanitize=True, sources=(tmp_path / "fill.c",))
    x = np.arange(12, dtype=np.int8).reshape(3, 4)
    assert np.array_equal(run_bundle(folder, [x], options=options).outputs[0], -x)
    with pytest.raises(CompileError, match="OPEN_ERROR_EXTERNAL"):
        run_bundle(folder, [x + np.int8(5)], options=options)


# One function of C for buffers of several shapes

SHAPES = """\
module two

extern app_neg(x : buffer<8xi8> r, y : buffer<8xi8> w, count : i32) on cpu stack=64 status
extern neg_4(x : buffer<4xi8> r, y : buffer<4xi8> w, count : i32) on cpu stack=9000 status symbol=app_neg

entry main(x : buffer<8xi8> r, z : buffer<4xi8> r, y : buffer<8xi8> w, w : buffer<4xi8> w) on cpu {
  call_extern app_neg(&x, &y, 8)
  call_extern neg_4(&z, &w, 4)
}
"""
NEGATE = """\
#include "two_externals.h"

int32_t app_neg(const int8_t *x, int8_t *y, int32_t count)
{
    for (int32_t i = 0; i < count; ++i) {
        y[i] = (int8_t)-x[i];
    }
    return 0;
}
"""


def test_one_function_serves_prototypes_of_several_shapes(tmp_path: Path):
    (tmp_path / "two.bw").write_text(SHAPES)
    (tmp_path / "neg.c").write_text(NEGATE)
    module = import_text(tmp_path / "two.bw", HOST).module
    assert parse_text(print_module(module), Constants(), {}).module == module
    folder = bytewright.compile(tmp_path / "two.bw").write(tmp_path / "out")
    plan = read_plan(folder)
    assert (plan.externals, [step.kernel for step in plan.steps]) == (("app_neg",), ["app_neg", "app_neg"])
    assert plan.stack["cpu"].size_bytes >= 9000  # the larger of the two counts
    assert (folder / "include" / "two_externals.h").read_text().count("int32_t app_neg(") == 1
    x, z = np.arange(8, dtype=np.int8), np.arange(4, dtype=np.int8)
    options = host_build(flags=WARNINGS, sanitize=True, sources=(tmp_path / "neg.c",))
    run = run_bundle(folder, [x, z], options=options)
    assert [output.tolist() for output in run.outputs] == [(-x).tolist(), (-z).tolist()]
    assert check_bundle(folder).num_steps == 2

    def negate(x: np.ndarray, y: np.ndarray, count: int) -> int:
        y[:count] = -x[:count]
        return 0

    found = Evaluator(module, stand_ins={"app_neg": negate}).run("main", {"x": x, "z": z})
    assert np.array_equal(found["w"], -z)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("count : i32) on cpu stack=9000", "count : i64) on cpu stack=9000"),
        ("neg_4(x : buffer<4xi8> r", "neg_4(x : buffer<4xi8> rw"),
        ("stack=9000 status", "stack=9000"),
        ("symbol=app_neg\n", "symbol=app_neg { allocate s : buffer<4xi8> }\n"),
    ],
)
def test_prototypes_of_one_function_are_alike(tmp_path: Path, before: str, after: str):
    text = SHAPES.replace(before, after)
    text = text.replace("&w, 4)", "&w, 4:i64)") if "i64" in after else text
    (tmp_path / "two.bw").write_text(text)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(tmp_path / "two.bw")
    messages = [error.message for error in caught.value.diagnostics]
    differs = "'neg_4' is 'app_neg' in C as 'app_neg' is, which has another prototype"
    assert differs in messages
