"""What survives runs, on a board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch, run_bundle
from support.state_programs import ACCUMULATOR, accumulated

pytestmark = pytest.mark.board


def test_the_board_keeps_it(tmp_path: Path) -> None:
    text = tmp_path / "acc.bw"
    text.write_text(ACCUMULATOR)
    bytewright.compile(text, target="mps3-an547").write(tmp_path / "acc")
    random = np.random.default_rng(5)
    inputs = [random.integers(-999, 999, 8).astype(np.int32) for _ in range(4)]
    found = run_batch(tmp_path / "acc", [[array] for array in inputs], on="qemu", keep_state=True)
    for (value,), wanted in zip(found.outputs, accumulated(inputs), strict=True):
        np.testing.assert_array_equal(value, wanted)
    again = run_bundle(tmp_path / "acc", [inputs[0]], on="qemu", repeat=2)
    np.testing.assert_array_equal(again.outputs[0], accumulated(inputs[:1])[0])
