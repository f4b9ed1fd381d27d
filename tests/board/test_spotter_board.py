"""Samples in, classes out, on an emulated board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from run.test_spotter import SPOTTERS, runs
from support.reference import TfLiteMicro
from support.tiers import THOROUGH

pytestmark = pytest.mark.board


@pytest.mark.skipif(not THOROUGH, reason="thorough")
@pytest.mark.parametrize("name", SPOTTERS)
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_a_second_of_sound_is_classified_on_a_board(name: str, target: str, tmp_path: Path) -> None:
    content = SPOTTERS[name]()
    inputs, model = runs(2), TfLiteMicro(content)
    wanted = [model.run(array)[0] for array in inputs]
    path = tmp_path / "spotter.tflite"
    path.write_bytes(content)
    bytewright.compile(path, numerics="tflm", target=target).write(tmp_path / "bundle")
    batch = [[array] for array in inputs]
    found = run_batch(tmp_path / "bundle", batch, on="qemu", keep_state=True).outputs
    np.testing.assert_array_equal([result for (result,) in found], wanted)
