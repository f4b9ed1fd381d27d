"""Programs of IR text, compiled and run: the C computes what the text says, and the bundle verifies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from support.ir_program import assert_c_is_the_module
from support.ir_text import small_result, write_small

X = np.array([-128, -5, -1, 0, 1, 6, 100, 127], np.int8)


@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_three_kernels_by_hand_compute_what_they_say(tmp_path: Path, io: str):
    model = bytewright.compile(str(write_small(tmp_path)), io=io)
    assert np.array_equal(model.run(X), small_result(X))
    folder = model.write(tmp_path / "out")
    assert check_bundle(folder).num_steps == 3
    run = run_bundle(folder, [X], options=BuildOptions(flags=("-O0",), sanitize=True))
    assert np.array_equal(run.outputs[0], small_result(X))


def test_run_takes_a_text_and_its_bundle(tmp_path: Path):
    path = write_small(tmp_path)
    np.save(tmp_path / "x.npy", X)
    made = CliRunner().invoke(command, ["compile", str(path), "-o", str(tmp_path / "out")])
    assert made.exit_code == 0
    for source in (path, tmp_path / "out"):
        arguments = [
            "run",
            source,
            "--input",
            tmp_path / "x.npy",
            "--output",
            tmp_path / "y.npy",
            "--paranoid",
        ]
        result = CliRunner().invoke(command, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.stderr
        assert np.array_equal(np.load(tmp_path / "y.npy"), small_result(X))


BORDER = """
module m
kernel m_copy(x : buffer<8xi8> r, y : buffer<8xi8> w) on cpu { for i : i32 in 0 .. 8 { y[i] = x[i] } }
kernel m_ones(y : buffer<8xi8> w) on cpu { for i : i32 in 0 .. 8 { y[i] = 1:i8 } }
entry main(PARAMETERS) on cpu { BODY }
"""


def border_text(folder: Path, body: str, parameters: str = "") -> str:
    path = folder / "m.bw"
    path.write_text(BORDER.replace("PARAMETERS", parameters).replace("BODY", body))
    return str(path)


def test_inputs_and_outputs_that_the_text_allocates(tmp_path: Path):
    body = 'allocate x : buffer<8xi8> {io="input"} allocate y : buffer<8xi8> {io="output"} call_extern m_copy(&x, &y)'
    folder = bytewright.compile(border_text(tmp_path, body)).write(tmp_path / "out")
    check_bundle(folder)
    assert np.array_equal(run_bundle(folder, [X]).outputs[0], X)


@pytest.mark.parametrize(
    ("body", "parameters", "num_outputs"),
    [
        ("call_extern m_ones(&y)", "y : buffer<8xi8> w", 1),
        ("allocate t : buffer<8xi8> call_extern m_copy(&x, &t)", "x : buffer<8xi8> r", 0),
        ("allocate t : buffer<8xi8> call_extern m_ones(&t)", "", 0),
    ],
)
def test_models_without_inputs_or_outputs_run(tmp_path: Path, body: str, parameters: str, num_outputs: int):
    folder = bytewright.compile(border_text(tmp_path, body, parameters)).write(tmp_path / "out")
    check_bundle(folder)
    inputs = [X] if parameters.startswith("x") else []
    run = run_bundle(folder, inputs, options=BuildOptions(flags=("-O0",), sanitize=True))
    assert [output.tolist() for output in run.outputs] == [[1] * 8] * num_outputs


ALLOCATED = 'allocate x : buffer<8xi8> {io="input"} '


@pytest.mark.parametrize(
    ("body", "parameters", "expected"),
    [
        (ALLOCATED + "call_extern m_copy(&x, &y)", "y : buffer<8xi8> w", "and 'y' is a parameter"),
        (
            "for i : i32 in 0 .. 2 { " + ALLOCATED + "call_extern m_ones(&x) }",
            "",
            "allocated within a loop, branch or block",
        ),
        (ALLOCATED + 'allocate y : buffer<8xi8> {io="output"}', "", "output 'y' is not written by every run"),
        (
            'allocate q : buffer<64xi8> allocate t : buffer<8xi8> {arena="q"} '
            "call_extern m_copy(&x, &t) call_extern m_copy(&t, &y)",
            "x : buffer<8xi8> r, y : buffer<8xi8> w",
            "'t' has an arena already",
        ),
    ],
)
def test_borders_and_requests_that_cannot_be(tmp_path: Path, body: str, parameters: str, expected: str):
    with pytest.raises(bytewright.CompileError) as caught:
        bytewright.compile(border_text(tmp_path, body, parameters))
    assert expected in str(caught.value)


MOVING = """
module m
input %x : tensor<4xi32>
output %y : tensor<4x8xi32>
kernel m_k(x : buffer<4xi32> r, y : buffer<4x8xi32> w) on cpu {
  allocate at : buffer<i32, "local">
  for row : i32 in 0 .. 4 { for j : i32 in 0 .. 8 { y[row, j] = 0 } }
  at[] = min(max(x[0], 0), 1)
  for i : i32 in 0 .. 2 {
    y[i, at[]] = 1
    y[i, at[] + 1] = 2
    y[select(x[i] > 0, at[], 0) + i, 6] = 3
    at[] = min(at[] + 1, 2)
    y[i, at[]] = 4
    y[i, at[] + 1] = 5
    y[select(x[i] > 0, at[], 0) + i, 7] = 6
  }
}
entry main(x : buffer<4xi32> r, y : buffer<4x8xi32> w) on cpu { call_extern m_k(&x, &y) }
"""


def test_elements_lie_where_memory_says_at_the_time(tmp_path: Path):
    assert_c_is_the_module(MOVING, tmp_path, [np.array([0, 1, 0, 0], np.int32)])
