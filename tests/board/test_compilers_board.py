"""Emulated boards by gcc and by clang: the same output, that of LiteRT, from code that differs."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.execute.tools import find_cross_compiler, find_cross_linker
from bytewright.target.isa.find import require_isa
from bytewright.target.registry import load_target
from support.digits_bundle import DIGITS
from support.reference import LiteRt
from support.shared_models import INT8, bundle, model_content, random_inputs
from support.tiers import some
from support.tiny_bundle import COUNT, expected_sum, write_tiny_bundle

pytestmark = [
    pytest.mark.board,
    pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed"),
]
BOARDS = ("mps3-an547", "mps2-an521", "mps2-an500", "mps2-an386")
COMPILERS = ("gcc", "clang")
# Functions of the C library and of libgcc: a division of 64 bits, and of floats without a unit for them.
HELPERS = """\
#include <stdint.h>
#include <string.h>
int64_t quotient(int64_t a, int64_t b) { return a / b; }
float sum(const float *x, int32_t n) { float s = 0.0f; for (int32_t i = 0; i < n; ++i) s += x[i] / 3.0f; return s; }
void copy(void *to, const void *from, size_t size) { memcpy(to, from, size); }
int main(void) { float x = 1.0f, y; copy(&y, &x, sizeof x); return (int)(quotient(9, 4) + (int64_t)sum(&y, 1)); }
"""


@cache
def digits_inputs() -> tuple[np.ndarray, ...]:
    model = LiteRt(DIGITS)
    generator = np.random.default_rng(5)
    return tuple(generator.integers(-128, 128, model.inputs[0]["shape"], np.int8) for _ in range(3))


@pytest.mark.parametrize("board", BOARDS)
def test_both_compilers_give_the_output_of_the_reference(board: str, tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target=board).write(tmp_path / "digits")
    reference = LiteRt(DIGITS)
    counts: list[int] = []
    for compiler in COMPILERS:
        batch = [[array] for array in digits_inputs()]
        result = run_batch(folder, batch, on="qemu", options=BuildOptions(compiler=compiler))
        for inputs, outputs in zip(batch, result.outputs, strict=True):
            np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
        counts.append(result.instructions[-1])
    assert counts[0] != counts[1]  # it is not the same compiler twice


@pytest.mark.parametrize(("name", "board"), some(product(INT8, ["mps3-an547", "mps2-an386"]), every=2))
def test_models_by_clang(name: str, board: str) -> None:
    target = load_target(board)
    batch = random_inputs(name, 3, 31)
    result = run_batch(bundle(name, target), batch, on="qemu", options=BuildOptions(compiler="clang"))
    reference = LiteRt(model_content(name))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


def test_the_command_takes_a_compiler(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, target="mps2-an386")
    np.save(tmp_path / "x.npy", (np.arange(COUNT) - 9).astype(np.int8).reshape(1, COUNT))
    for compiler in (*COMPILERS, shutil.which("arm-none-eabi-gcc"), shutil.which("clang")):
        command = ["run", str(tmp_path), "--on", "qemu", "--compiler", f"{compiler}"]
        command += ["--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy")]
        result = CliRunner().invoke(command_line, command)
        assert result.exit_code == 0, result.output
        assert (np.load(tmp_path / "y.npy") == expected_sum(np.load(tmp_path / "x.npy"))).all()


@pytest.mark.parametrize(
    "core", ["cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"]
)
def test_every_core_links_with_the_helpers_of_the_library(core: str, tmp_path: Path) -> None:
    isa = require_isa(core)
    (tmp_path / "main.c").write_text(HELPERS)
    compile_it = [
        *find_cross_compiler(isa, "clang"),
        "-std=c99",
        "-O2",
        "-Werror",
        "-c",
        "main.c",
        "-o",
        "main.o",
    ]
    link = [*find_cross_linker(isa, "clang"), "--specs=nosys.specs", "main.o", "-o", "main"]
    for command in (compile_it, link):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
