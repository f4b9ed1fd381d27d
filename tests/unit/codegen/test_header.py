"""The contracts of the header: each says what holds for the pools and extents that it is about."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.codegen.run_contracts import what_extents_mean
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.border import Io
from bytewright.options import Options, Pin
from bytewright.record.names import Names
from bytewright.target import Target, load_text
from bytewright.target.registry import load_target
from support import two_devices
from support.digits_bundle import DIGITS
from support.ir_program import read_module
from support.state_programs import ACCUMULATOR
from tflite_writer import ModelBuilder

MACHINE = """
name = "machine"
[memory.ram]
size = "unlimited"
[memory.rom]
size = "unlimited"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "rom"]
stack = "ram"
"""
OWN_AND_LENT = """
[[workspace]]
name = "own"
memory = "ram"
size = "64KiB"
provider = "generated"
[[workspace]]
name = "lent"
memory = "ram"
[[parameters]]
name = "rom"
memory = "rom"
"""
EACH_KIND = """
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "own"
memory = "ram"
size = "8KiB"
load = "copy"
from = "rom"
[[parameters]]
name = "copied"
memory = "ram"
size = "2KiB"
provider = "caller"
load = "copy"
[[parameters]]
name = "lent"
memory = "rom"
provider = "caller"
"""


def contracts(
    target: Target, *, io: Io = Io.CALLER, pins: tuple[Pin, ...] = (), batch_max: int | None = None
) -> dict[str, str]:
    """The comment above each function of the header, as one line."""
    files = compile_model(DIGITS, target, Options(io=io, pins=pins, batch_max=batch_max)).files
    header = files["include/digits.h"].decode()
    found = re.findall(r"/\* ((?:[^*]|\*(?!/))*) \*/\n[\w ]+\*?(digits_\w+)\(", header)
    return {name: re.sub(r"\s*\n \* ", " ", text) for text, name in found}


def test_addresses_say_what_the_pool_of_each_needs() -> None:
    pins = (Pin("image", "own"), Pin("softmax_8/out", "lent"))
    found = contracts(load_text(MACHINE + OWN_AND_LENT, "machine.toml"), io=Io.WORKSPACE, pins=pins)
    assert found["digits_input_image"].endswith("NULL only for a context that is NULL.")
    assert found["digits_output_probabilities"].endswith("NULL until digits_set_workspaces has succeeded.")
    assert "Workspace 'own' is an array of the generated code: one run at a time." in found["digits_run"]


def test_a_workspace_of_the_application_leaves_runs_apart() -> None:
    assert "threads of their own" in contracts(load_target("host"))["digits_run"]


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_a_batch_is_a_number_of_samples_up_to_its_macro(io: Io) -> None:
    run = contracts(load_target("host"), io=io, batch_max=4)["digits_run"]
    assert run.startswith("Runs one inference of 'batch' samples")
    assert (
        "'batch' is 1 to DIGITS_BATCH_MAX; inputs and outputs hold so many samples, and need no bytes" in run
    )
    assert "samples" not in contracts(load_target("host"), io=io)["digits_run"]


def test_an_open_first_axis_is_no_number_of_samples(tmp_path: Path) -> None:
    """Windows or reductions may be over it, so that what has two elements is not two results."""
    builder = ModelBuilder()
    x = builder.tensor("x", (12, 6), "float32")
    y = builder.tensor("y", (12, 6), "float32")
    builder.operator("ADD", [x, x], [y])
    file = tmp_path / "m.tflite"
    file.write_bytes(builder.build([x], [y]))
    model = bytewright.compile(file, open="0=time:1..9")
    header = model.files["include/m.h"].decode()
    run = re.sub(r"\s*\n \* ", " ", header)
    assert "Runs one inference. " in run
    assert "'time' is 1 to M_TIME_MAX; inputs and outputs have so many elements along the first axis" in run
    assert "samples" not in run
    alone = replace(model.plan, inputs=(), outputs=())
    assert what_extents_mean(alone, Names("m")) == "'time' is 1 to M_TIME_MAX.\n"


def test_each_kind_of_parameters_is_named() -> None:
    """Three ways to bring them, in one function."""
    pins = (Pin("conv2d_4/*", "own"), Pin("conv2d_[02]/*", "copied"), Pin("softmax*", "lent"))
    text = contracts(load_text(MACHINE + EACH_KIND, "machine.toml"), pins=pins)["digits_set_parameters"]
    assert text.startswith(
        "Lends 'lent' to the context until the next call. Copies 'copied' to the memory that is lent"
    )
    assert "too small" in text
    assert "Copies 'own' to an array of the generated code, which all contexts share" in text


def test_parameters_that_are_lent_cannot_be_too_small() -> None:
    lent = EACH_KIND[: EACH_KIND.index("[[parameters]]")] + EACH_KIND[EACH_KIND.rindex("[[parameters]]") :]
    text = contracts(load_text(MACHINE + lent, "machine.toml"))["digits_set_parameters"]
    assert text.startswith(
        "Lends 'lent' to the context until the next call. Refuses memory that is NULL, misaligned"
    )
    assert not re.search("too small|[Cc]opied|array", text)


def macros(header: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+) (.+)$", header, re.MULTILINE))


def test_macros_say_what_an_application_must_know_of_inputs_and_outputs() -> None:
    """The digits are 8 x 8 pixels of 1/16, the results ten probabilities of 1/256, which begin at -128."""
    files = compile_model(DIGITS, load_target("host")).files
    found = macros(files["include/digits.h"].decode())
    assert {name: value for name, value in found.items() if re.match("DIGITS_(IN|OUT)PUT_", name)} == {
        "DIGITS_INPUT_IMAGE_SIZE": "64",
        "DIGITS_INPUT_IMAGE_ELEMENTS": "64",
        "DIGITS_INPUT_IMAGE_RANK": "4",
        "DIGITS_INPUT_IMAGE_SHAPE": "{1, 8, 8, 1}",
        "DIGITS_INPUT_IMAGE_SCALE": "0.0625f",
        "DIGITS_INPUT_IMAGE_ZERO_POINT": "(0)",
        "DIGITS_OUTPUT_PROBABILITIES_SIZE": "10",
        "DIGITS_OUTPUT_PROBABILITIES_ELEMENTS": "10",
        "DIGITS_OUTPUT_PROBABILITIES_RANK": "2",
        "DIGITS_OUTPUT_PROBABILITIES_SHAPE": "{1, 10}",
        "DIGITS_OUTPUT_PROBABILITIES_SCALE": "0.00390625f",
        "DIGITS_OUTPUT_PROBABILITIES_ZERO_POINT": "(-128)",
    }
    assert found["DIGITS_BYTEWRIGHT_VERSION"] == f'"{bytewright.__version__}"'
    numbers = [found[f"DIGITS_BYTEWRIGHT_VERSION_{part}"] for part in ("MAJOR", "MINOR", "PATCH")]
    assert ".".join(numbers) == bytewright.__version__


def test_macros_of_a_batch_are_for_the_largest() -> None:
    files = compile_model(DIGITS, load_target("host"), Options(batch_max=3)).files
    found = macros(files["include/digits.h"].decode())
    assert found["DIGITS_INPUT_IMAGE_SIZE"] == "192"
    assert found["DIGITS_OUTPUT_PROBABILITIES_SHAPE"] == "{3, 10}"


PORTS = """module m
input %x : tensor<2xi16>
input %X : tensor<i32>
output %y : tensor<3xf32>
kernel m_k(x : buffer<2xi16, align=2> r activation, X : buffer<i32, align=4> r activation,
           y : buffer<3xf32, align=4> w activation) on cpu {
    for i : i32 in 0 .. 3 {
        y[i] = 1.0:f32
    }
}
entry main(x : buffer<2xi16, align=2> r activation, X : buffer<i32, align=4> r activation,
           y : buffer<3xf32, align=4> w activation) on cpu {
    call_extern m_k(&x, &X, &y)
}
"""


def test_inputs_that_differ_in_capitals_have_macros_of_their_own() -> None:
    files = compile_model(read_module(PORTS), load_target("host")).files
    found = macros(files["include/m.h"].decode())
    sizes = [value for name, value in found.items() if re.fullmatch(r"M_INPUT_X_X[0-9A-F]{8}_SIZE", name)]
    assert sizes == ["4", "4"]
    assert found["M_OUTPUT_Y_SIZE"] == "12"
    shapes = [name for name in found if name.endswith("_SHAPE")]
    assert len(shapes) == 2  # a scalar has no extents, and C99 no empty initializer
    assert not [name for name in found if name.endswith(("_SCALE", "_ZERO_POINT"))]


def errors_in(source: str, function: str) -> set[str]:
    """The errors that a function and the static functions that it calls return."""
    bodies = dict(re.findall(r"^[\w ]+?\*?(\w+)\([^;{]*\) \{\n(.*?)^\}", source, re.MULTILINE | re.DOTALL))
    seen, open_names = set[str](), [function]
    while open_names:
        name = open_names.pop()
        if name not in seen:
            seen.add(name)
            open_names += [word for word in re.findall(r"\w+", bodies[name]) if word in bodies]
    return {error for name in seen for error in re.findall(r"DIGITS_ERROR_(\w+)", bodies[name])}


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("pools", [OWN_AND_LENT, EACH_KIND])
@pytest.mark.parametrize("batch_max", [None, 4])
def test_each_function_says_which_errors_it_returns(io: Io, pools: str, batch_max: int | None) -> None:
    target = load_text(MACHINE + pools, "machine.toml")
    pins = (Pin("conv2d_4/*", "own"), Pin("conv2d_[02]/*", "copied")) if pools is EACH_KIND else ()
    options = Options(io=io, pins=pins, batch_max=batch_max)
    source = compile_model(DIGITS, target, options).files["src/digits.c"].decode()
    for name, text in contracts(target, io=io, pins=pins, batch_max=batch_max).items():
        if "_input_" not in name and "_output_" not in name:
            said = re.search(r"Returns DIGITS_OK, or the error ([\w, ]+)\.$", text)
            assert said is not None, name
            assert set(re.findall(r"[A-Z_]+", said[1])) == errors_in(source, name), name


def test_without_a_pool_nothing_is_said_of_what_pools_hold() -> None:
    text = """module copy
      input %x : tensor<8xi8>
      output %y : tensor<8xi8>
      kernel copy_all(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
        for i : i32 in 0 .. 8 {
          y[i] = x[i]
        }
      }
      entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
        call_extern copy_all(&x, &y)
      }"""
    files = compile_model(read_module(text), load_target("host"), Options()).files
    header = files["include/copy.h"].decode()
    assert "WORKSPACE_SIZE" not in header
    assert "what each pool holds" not in header


def test_headers_of_cpp_include_nothing_with_c_linkage() -> None:
    """A header of the C library may have templates where C++ reads it, which cannot stand in `extern "C"`."""
    files = two_devices.compiled().files
    headers = {file: text.decode() for file, text in files.items() if file.endswith(".h")}
    linked = {file: text.partition('extern "C"')[2] for file, text in headers.items() if 'extern "C"' in text}
    assert set(linked) == {"include/pair.h", "include/pair_core1.h"}
    assert [file for file, text in linked.items() if re.search("^ *#include", text, re.M)] == []


def test_that_spans_of_a_job_may_share_bytes_is_said_since_they_do() -> None:
    """An input dies within the call, and the result takes its bytes: a driver must not protect each by itself."""
    program = """
module m
input %x : tensor<8xi8>
output %y : tensor<8xi8>
kernel m_turn(x : buffer<8xi8> r, y : buffer<8xi8> w) on core1 {
  allocate s : buffer<8xi8>
  for i : i32 in 0 .. 8 { s[i] = x[i] }
  for j : i32 in 0 .. 8 { y[j] = s[7 - j] }
}
kernel m_move(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
  for i : i32 in 0 .. 8 { y[i] = x[i] }
}
entry main(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu {
  allocate t : buffer<8xi8>
  allocate u : buffer<8xi8>
  call_extern m_move(&x, &t)
  call_extern m_turn(&t, &u)
  call_extern m_move(&u, &y)
}
"""
    compiled = two_devices.compiled(program)
    (step,) = (step for step in compiled.plan.steps if step.device == "core1")
    places = [compiled.plan.buffers[span.buffer].place for span in step.spans]
    assert len(places) > len(set(places))
    assert "Spans may share bytes" in " ".join(compiled.files["include/m.h"].decode().split("\n * ")).replace(
        "  ", " "
    )


def test_a_run_is_given_no_structure_of_inputs_where_there_are_none(tmp_path: Path) -> None:
    text = re.sub(r"^input .*\n", "", ACCUMULATOR, flags=re.MULTILINE)
    text = text.replace("    x : buffer<8xi32> r activation,\n", "").replace(
        "x : buffer<8xi32> r activation, ", ""
    )
    (tmp_path / "acc.bw").write_text(text.replace("x[i]", "3").replace("&x, ", ""))
    model = bytewright.compile(tmp_path / "acc.bw")
    header = model.files["include/acc.h"].decode()
    assert "int32_t acc_run(acc_context *context, const acc_outputs *outputs);" in header
    assert "acc_inputs" not in header
    session = model.session()
    assert [int(np.asarray(session.run())[0]) for _ in range(2)] == [3 + 1 * 4, 6 + 2 * 4]
