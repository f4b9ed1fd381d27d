"""A network of int16 activations and int8 weights on emulated boards: exact, by kernels in portable C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from support.model_files import EXPORTS

NETWORK = EXPORTS / "litert_torch" / "mbv2_i16.tflite"


@pytest.mark.skipif(
    not NETWORK.exists(), reason="the data that is not part of the project is missing: ../shared/models"
)
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_a_network_is_exact(tmp_path: Path, board: str) -> None:
    with np.load(NETWORK.with_suffix(".npz")) as arrays:
        batch, wanted = (arrays[next(n for n in arrays if n.startswith(letter))][:2] for letter in "xy")
    folder = bytewright.compile(NETWORK, target=board).write(tmp_path / "m")
    found = run_batch(folder, [[x] for x in batch], on="qemu")
    for (y,), beside in zip(found.outputs, wanted, strict=True):
        np.testing.assert_array_equal(y, beside)
