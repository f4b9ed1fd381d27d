"""Sizes that the data decides on an emulated board: as LiteRT's, of none up to the bound, and refused beyond it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from support.computed_sizes import ROWS, WIDTH, Writer, rows_of_a_mask_and_up_to_a_number
from support.reference import LiteRt

pytestmark = pytest.mark.board

BOUND = 6


def test_sizes_are_those_of_the_reference_and_more_is_refused(tmp_path: Path) -> None:
    writer = Writer()
    content = writer.content(*rows_of_a_mask_and_up_to_a_number(writer))
    file, folder = tmp_path / "m.tflite", tmp_path / "bundle"
    file.write_bytes(content)
    bytewright.compile(file, bounds=f"WHERE={BOUND}", target="mps3-an547").write(folder)
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 128, (ROWS, WIDTH), np.int32)
    given = [
        (x, rng.permutation(ROWS) < num_true, np.array(count, np.int32))
        for num_true, count in zip(range(BOUND + 1), (0, ROWS, 3, 1, 7, 9, 2), strict=True)
    ]
    reference = LiteRt(content)
    for inputs, found in zip(given, run_batch(folder, given, on="qemu").outputs, strict=True):
        for own, wanted in zip(found, reference.run(*inputs), strict=False):
            np.testing.assert_array_equal(own, wanted, strict=True)
    more = (x, np.arange(ROWS) <= BOUND, np.array(1, np.int32))
    with pytest.raises(CompileError, match="M_ERROR_BOUND"):
        run_batch(folder, [given[0], more], on="qemu")
