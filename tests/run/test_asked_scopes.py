"""Random programs whose kernels ask for places, compiled, checked, watched and run: the C computes what numpy does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir import Io
from bytewright.options import Options
from support.asked_scopes import POOLS, asking_program, expected_of_reusing, pools, reusing_program
from support.c_program import WARNINGS
from support.compilers import QUICK, host_build
from support.parsing import parse_module
from support.random_entries import expected
from support.tiers import THOROUGH

pytestmark = [pytest.mark.run, pytest.mark.slow]

SEEDS = range(100) if THOROUGH else range(3)


def compiled(text: str, io: Io) -> Compiled | None:
    """None where a call passes one memory for two places."""
    try:
        return compile_model(parse_module(text, {}, {}), pools(), Options(io=io))
    except CompileError as error:
        if all(diagnostic.code == "BW705" for diagnostic in error.diagnostics):
            return None
        raise


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_c_of_what_was_placed_computes_what_the_program_says(seed: int, io: Io, tmp_path: Path) -> None:
    numbers = range(seed * 1000, seed * 1000 + 50)
    form = reusing_program if seed % 2 else asking_program
    programs = map(form, numbers)
    (_, python), model = next((p, m) for p in programs if (m := compiled(p[0], io)) is not None)
    asked = {
        name: b for name, b in model.plan.buffers.items() if (b.scope or "").removeprefix("global.") in POOLS
    }
    assert asked
    assert all(buffer.place.name == (buffer.scope or "").removeprefix("global.") for buffer in asked.values())
    write_bundle(model.files, tmp_path)
    check_bundle(tmp_path)
    size = 4 if seed % 2 else 24
    x = np.random.default_rng(seed).integers(0, 50, size).astype(np.int16)
    values = expected_of_reusing(python, x) if seed % 2 else expected(python, x)
    result = run_batch(tmp_path, [[x], [x]], options=host_build(flags=WARNINGS, sanitize=True))
    np.testing.assert_array_equal([run[0] for run in result.outputs], [values, values])
    np.testing.assert_array_equal(run_paranoid(tmp_path, [x], options=QUICK).result.outputs[0], values)


UNREAD = """module r
input %x : tensor<4xi16>
output %y : tensor<4xi16>
kernel r_fill(out : buffer<4xi16, "global.far"> w) on cpu {
  for c : i32 in 0 .. 4 { out[c] = i16(c) }
}
kernel r_copy(a : buffer<4xi16> r, out : buffer<4xi16> w) on cpu {
  for c : i32 in 0 .. 4 { out[c] = a[c] }
}
entry main(x : buffer<4xi16> r, y : buffer<4xi16> w) on cpu {
  allocate t : buffer<24xi16, "global.wide">
  for i : i32 in 0 .. 2 { call_extern r_fill(&t[i * 4]) }
  call_extern r_copy(&x, &y)
}
"""


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_a_buffer_that_is_written_elsewhere_and_never_read_has_no_bytes(io: Io, tmp_path: Path) -> None:
    """An internal error once: its allocation was left without a use when the copies back to it went."""
    model = compiled(UNREAD, io)
    assert model is not None
    assert "t" not in model.plan.buffers
    assert model.plan.pools["far"].used_bytes == 8
    assert model.plan.pools["wide"].used_bytes == 0
    write_bundle(model.files, tmp_path)
    check_bundle(tmp_path)
