"""A C function of the application, on an emulated board: the same output, and a stack within the promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle

PROGRAM = """\
module mix
extern app_negate(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu stack=64 status {
  allocate work : buffer<8xi32>
}
entry main(x : buffer<8xi16> r, y : buffer<8xi16> w) on cpu {
  call_extern app_negate(&x, &y)
}
"""
SOURCE = """\
#include "mix_externals.h"
int32_t app_negate(const int16_t *x, int16_t *y, int32_t *work)
{
    for (int i = 0; i < 8; ++i) {
        work[i] = -x[i];
        y[i] = (int16_t)work[i];
    }
    return 0;
}
"""


def test_a_board_runs_it_as_the_host_does(tmp_path: Path) -> None:
    (tmp_path / "mix.bw").write_text(PROGRAM)
    (tmp_path / "negate.c").write_text(SOURCE)
    model = bytewright.compile(tmp_path / "mix.bw", target="mps3-an547")
    folder = model.write(tmp_path / "out")
    x = np.arange(-4, 4, dtype=np.int16)
    run = run_bundle(folder, [x], on="qemu", options=BuildOptions(sources=(tmp_path / "negate.c",)))
    assert np.array_equal(run.outputs[0], -x)
    assert run.stack_bytes is not None
    assert run.stack_bytes <= model.plan.stack["cpu"].size_bytes
