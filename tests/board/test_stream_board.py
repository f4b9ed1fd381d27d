"""A network frame by frame on the M55's board, beside LiteRT's on each window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from support.reference import LiteRt
from support.streamed_nets import keyword_net

pytestmark = pytest.mark.board
WINDOW, STEP = 30, 2


def test_the_board_runs_a_keyword_net_frame_by_frame(tmp_path: Path) -> None:
    content = keyword_net(WINDOW, channels=16, blocks=2)
    (tmp_path / "net.tflite").write_bytes(content)
    model = bytewright.compile(tmp_path / "net.tflite", target="mps3-an547", stream="1")
    frames = np.random.default_rng(3).integers(-128, 128, (1, WINDOW + 6, 10, 1)).astype(np.int8)
    runs = [[array] for array in np.split(frames, range(STEP, frames.shape[1], STEP), axis=1)]
    found = run_batch(model.write(tmp_path / "bundle"), runs, on="qemu", keep_state=True).outputs
    reference = LiteRt(content)
    for run in range(WINDOW // STEP - 1, len(runs)):
        end = (run + 1) * STEP
        (wanted,) = reference.run(np.ascontiguousarray(frames[:, end - WINDOW : end]))
        np.testing.assert_array_equal(found[run][0], wanted)
