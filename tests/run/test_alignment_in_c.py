"""Alignment in the C: arrays of kernels have it as an attribute, and the border asks for it at run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from support.c_program import LANGUAGE, WARNINGS, run_command
from support.ir_program import read_module, write_module

pytestmark = pytest.mark.run

TEXT = """module m
input %x : tensor<8xi8>
output %y : tensor<8xi8>
kernel m_k(x : buffer<8xi8, "global", align=64> r activation, y : buffer<8xi8, "global", align=1> w activation) on cpu {
  allocate s : buffer<40xi8, "global.stack", align=256>
  for i : i32 in 0 .. 40 { s[i] = x[i % 8] }
  for j : i32 in 0 .. 8 { y[j] = s[39 - j * 3] }
}
entry main(
    x : buffer<8xi8, "global", align=1> r activation, y : buffer<8xi8, "global", align=128> w activation
) on cpu {
  call_extern m_k(&x, &y)
}
"""

MAIN = """
#include <stdint.h>
#include "m.h"
static int8_t x[256] __attribute__((aligned(128)));
static int8_t y[256] __attribute__((aligned(128)));
static int32_t run_at(int x_offset, int y_offset)
{
    static m_context context;
    m_inputs inputs = {x + x_offset};
    m_outputs outputs = {y + y_offset};
    return m_run(&context, &inputs, &outputs);
}
int main(void)
{
    if (run_at(0, 0) != M_OK || run_at(64, 128) != M_OK) {
        return 1;
    }
    if (run_at(32, 0) != M_ERROR_ALIGN || run_at(1, 0) != M_ERROR_ALIGN) {
        return 2;
    }
    return run_at(0, 64) == M_ERROR_ALIGN ? 0 : 3;
}
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_module(read_module(TEXT), tmp_path_factory.mktemp("aligned") / "bundle")


def test_the_border_asks_for_alignment_at_run(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    sources = sorted(map(str, (bundle / "src").glob("*.c")))
    flags = [*LANGUAGE, *WARNINGS, f"-I{bundle / 'include'}", "-o", "program"]
    run_command(["gcc", *flags, "main.c", *sources], tmp_path)
    run_command(["./program"], tmp_path)
    header = (bundle / "include" / "m.h").read_text()
    assert "const int8_t *x; /* i8[8]; aligned to 64 */" in header
    assert "int8_t *y; /* i8[8]; aligned to 128 */" in header


def test_the_harness_gives_what_is_asked_for(bundle: Path) -> None:
    x = np.arange(8, dtype=np.int8)
    (y,) = run_bundle(bundle, [x]).outputs
    np.testing.assert_array_equal(y, [x[(39 - 3 * j) % 8] for j in range(8)])
    check_bundle(bundle)


def test_an_array_of_a_kernel_is_aligned(bundle: Path) -> None:
    assert "int8_t s[40] __attribute__((aligned(256)));" in (bundle / "src" / "m_kernels.c").read_text()


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_the_stack_of_an_aligned_array_is_within_its_bound(target: str, tmp_path: Path) -> None:
    folder = write_module(read_module(TEXT), tmp_path / "bundle", target)
    checked = CliRunner().invoke(bytewright, ["check", str(folder), "--stack"])
    assert checked.exit_code == 0, checked.output
    assert "40 B of arrays planned" in checked.output


def test_nothing_is_asked_of_an_input_that_no_step_touches(tmp_path: Path) -> None:
    """The C refused what `run` gave: plan.json, which says what it has to give, does not list such an input."""
    unused = TEXT.replace("input", "input %z : tensor<8xi8>\ninput", 1)
    unused = unused.replace("    x :", '    z : buffer<8xi8, "global", align=4096> r activation, x :')
    folder = write_module(read_module(unused), tmp_path / "bundle")
    x = np.arange(8, dtype=np.int8)
    (y,) = run_bundle(folder, [x, x]).outputs
    np.testing.assert_array_equal(y, [x[(39 - 3 * j) % 8] for j in range(8)])
    header = (folder / "include" / "m.h").read_text()
    assert "const int8_t *z; /* i8[8] */" in header
