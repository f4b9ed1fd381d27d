"""Images that are handed over row by row, on the board: equal to LiteRT, plainly and with dead rows poisoned."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import bytewright
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from support.digits_bundle import DIGITS
from support.reference import LiteRt


def test_the_board_equals_litert(tmp_path: Path) -> None:
    """The harness pushes rows in numbers that follow from the image."""
    bytewright.compile(DIGITS, target="mps3-an547", io="rows").write(tmp_path / "digits")
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        images = stored["images"][-40:, np.newaxis]
    result = run_batch(tmp_path / "digits", [[image] for image in images], on="qemu")
    reference = LiteRt(DIGITS)
    expected = np.stack([reference.run(image)[0] for image in images])
    np.testing.assert_array_equal(np.stack([outputs[0] for outputs in result.outputs]), expected)
    assert result.workspace_bytes < 3 * 1024  # what three whole tensors would need, without the image
    assert run_paranoid(tmp_path / "digits", seed=1, on="qemu").num_steps > 5
