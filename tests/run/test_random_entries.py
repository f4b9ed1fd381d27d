"""Random entries, compiled, checked, watched and run: the C computes what numpy does, whatever the entry's form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.c_program import WARNINGS
from support.compilers import QUICK, host_build
from support.ir_program import expected_outputs, read_module
from support.random_entries import expected, random_entry
from support.tiers import THOROUGH

pytestmark = [pytest.mark.run, pytest.mark.slow]

REQUESTS = apply_overrides(load_target("host"), Overrides(use_backend_alloc_workspace=True))
SEEDS = range(40) if THOROUGH else range(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_c_of_an_entry_computes_what_it_says(seed: int, tmp_path: Path) -> None:
    text, python = random_entry(seed)
    module = read_module(text)
    x = np.random.default_rng(seed).integers(-99, 99, 24).astype(np.int16)
    values = expected(python, x)
    np.testing.assert_array_equal(expected_outputs(module, [x])[0], values)
    for number, (target, io) in enumerate(((load_target("host"), Io.CALLER), (REQUESTS, Io.WORKSPACE))):
        folder = tmp_path / str(number)
        write_bundle(compile_model(module, target, Options(io=io)).files, folder)
        check_bundle(folder)
        result = run_batch(folder, [[x], [x]], options=host_build(flags=WARNINGS, sanitize=True))
        np.testing.assert_array_equal([run[0] for run in result.outputs], [values, values])
        np.testing.assert_array_equal(run_paranoid(folder, [x], options=QUICK).result.outputs[0], values)
