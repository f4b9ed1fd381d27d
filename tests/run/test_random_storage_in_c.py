"""Random programs whose buffers share bytes inside of calls, compiled: the C gives what the program means.

Different compilers and levels, because what is at stake is what they may conclude of pointers to shared bytes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.target.options import Overrides, apply_overrides
from bytewright.target.registry import load_target
from support.compilers import QUICK
from support.ir_program import expected_outputs, read_module
from support.random_storage import ir_text, random_program
from support.tiers import THOROUGH

pytestmark = [pytest.mark.run, pytest.mark.slow]

NO_STACK = apply_overrides(load_target("host"), Overrides(max_stack_alloca_size=0))
SEEDS = range(150) if THOROUGH else (3, 24, 46)
OPTIONS = [BuildOptions(flags=("-O3",)), BuildOptions(flags=("-O0",), sanitize=True)]


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_bytes_keep_their_values_in_c(seed: int, tmp_path: Path) -> None:
    program = random_program(seed, 12)
    module = read_module(ir_text(program))
    dtype = module.inputs[0].type.dtype.numpy
    x = np.random.default_rng(seed).integers(-50, 50, program.source.length).astype(dtype)
    (expected,) = expected_outputs(module, [x])
    folder = tmp_path / "bundle"
    write_bundle(compile_model(module, NO_STACK).files, folder)
    check_bundle(folder)
    for options in OPTIONS:
        (actual,) = run_bundle(folder, [x], options=options).outputs
        np.testing.assert_array_equal(actual, expected)
    (watched,) = run_paranoid(folder, [x], options=QUICK).result.outputs
    np.testing.assert_array_equal(watched, expected)
