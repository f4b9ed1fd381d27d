"""Entries that are programs: loops, branches, names, and parts of tensors, compiled, checked, watched and run.

Expected values are worked out by hand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ir.module import Module
from bytewright.options import Options
from bytewright.target import load_target, load_text
from support.c_program import WARNINGS
from support.compilers import host_build
from support.parsing import parse_module

KERNELS = """
kernel p_add(
    a : buffer<4xi16, "global"> r, b : buffer<4xi16, "global"> r, sum : buffer<4xi16, "global"> w
) on cpu {
  for c : i32 in 0 .. 4 { sum[c] = a[c] + b[c] }
}
kernel p_fill(out : buffer<4xi16, "global"> w, value : i32) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16(value + c) }
}
"""
PROGRAM = """
module p
input %x : tensor<12xi16>
output %y : tensor<12xi16>
{kernels}
entry main(x : buffer<12xi16, "global"> r, y : buffer<12xi16, "global"> w) on cpu {{
{body}
}}
"""
# Rows of four: each the row of x plus (row, row + 1, row + 2, row + 3), by way of a tensor that is born in the loop.
LOOP = """
  for row : i32 in 0 .. 3 {
    let begin : i32 = row * 4
    allocate t : buffer<4xi16, "global.workspace", align=16>
    call_extern p_fill(&t, row)
    call_extern p_add(&x[begin], &t, &y[begin])
  }
"""
# A running sum: what a turn leaves in `total` the next one finds there, and `other` must not lie in its bytes.
CARRIED = """
  allocate total : buffer<4xi16, "global.workspace", align=16>
  call_extern p_fill(&total, 100)
  for row : i32 in 0 .. 3 {
    allocate other : buffer<4xi16, "global.workspace", align=16>
    call_extern p_add(&x[row * 4], &total, &y[row * 4])
    call_extern p_fill(&other, row)
    call_extern p_add(&y[row * 4], &other, &total)
  }
"""
BRANCHES = """
  for outputs : i32 in 0 .. 3 unrolled {
    if outputs < 1 {
      call_extern p_fill(&y[outputs * 4], 7)
    } else {
      call_extern p_add(&x[outputs * 4], &x[min(outputs, 1) * 4], &y[outputs * 4])
    }
  }
"""
# Names that the run function has for other things; one that nothing uses, and branches without a call.
NAMES = """
  for context : i32 in 0 .. 3 {
    let request_scratch : i32 = context * 4
    let p_run : i32 = context + 1
    let P_OK : i32 = p_run * 2
    let min_i32 : i32 = min(P_OK, 5)
    let own_request_scratch : i32 = min_i32 + 0
    let unused : i32 = min_i32 - 1
    if context < 1 {} else {
      allocate t : buffer<4xi16, "global.workspace">
      call_extern p_fill(&t, own_request_scratch)
      call_extern p_add(&x[request_scratch], &t, &y[request_scratch])
    }
    if context < 1 { call_extern p_fill(&y, p_run) } else {}
  }
"""
X = np.arange(10, 130, 10, dtype=np.int16)
ROWS = X.reshape(3, 4)
STEPS = np.arange(4, dtype=np.int16)


def carried() -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    total, rows = 100 + STEPS, []
    for row in range(3):
        rows.append(ROWS[row] + total)
        total = rows[-1] + row + STEPS
    return np.concatenate(rows)


EXPECTED = {
    LOOP: (ROWS + np.arange(3, dtype=np.int16)[:, None] + STEPS).ravel(),
    CARRIED: carried(),
    BRANCHES: np.concatenate([7 + STEPS, ROWS[1] + ROWS[1], ROWS[2] + ROWS[1]]),
    NAMES: np.concatenate([1 + STEPS, ROWS[1] + 4 + STEPS, ROWS[2] + 5 + STEPS]),
}


def program(body: str, kernels: str = KERNELS) -> Module:
    return parse_module(PROGRAM.format(kernels=kernels, body=body), {}, {})


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("body", list(EXPECTED), ids=["loop", "carried", "branches", "names"])
def test_programs_run_check_and_keep_to_their_plan(body: str, io: Io, tmp_path: Path) -> None:
    write_bundle(compile_model(program(body), load_target("host"), Options(io=io)).files, tmp_path / "out")
    check_bundle(tmp_path / "out")
    result = run_batch(
        tmp_path / "out", [[X], [X[::-1].copy()]], options=host_build(flags=WARNINGS, sanitize=True)
    )
    assert (result.outputs[0][0] == EXPECTED[body]).all()
    watched = run_paranoid(tmp_path / "out", [X])
    assert (watched.result.outputs[0] == EXPECTED[body]).all()


TWO_DEVICES = """
name = "two"
[memory.ram]
size = "unlimited"
[memory.rom]
size = "unlimited"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "rom"]
stack = "ram"
[device.dsp]
isa = "host"
reach = ["ram", "rom"]
stack = "ram"
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "rom"
memory = "rom"
"""


def test_an_entry_on_another_device_than_the_targets_first(tmp_path: Path) -> None:
    text = PROGRAM.format(kernels=KERNELS, body=LOOP).replace("on cpu", "on dsp")
    module = parse_module(text, {}, {})
    write_bundle(compile_model(module, load_text(TWO_DEVICES, "two.toml")).files, tmp_path / "out")
    plan = check_bundle(tmp_path / "out").plan
    assert (plan.device.name, list(plan.stack)) == ("dsp", ["dsp"])
    assert (run_paranoid(tmp_path / "out", [X]).result.outputs[0] == EXPECTED[LOOP]).all()
    proof = CliRunner().invoke(bytewright, ["check", str(tmp_path / "out"), "--stack"])
    assert proof.exit_code == 0, proof.output
