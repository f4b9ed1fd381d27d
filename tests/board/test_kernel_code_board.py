"""`--kernels` on emulated boards: every kind of kernels gives the bytes that the reference does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from support.digits_bundle import DIGITS
from support.reference import LiteRt


@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386", "mps2-an500"])
def test_kernels_of_every_kind_compute_the_same(target: str, tmp_path: Path) -> None:
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        batch = [[image[np.newaxis]] for image in stored["images"][:4]]
    reference = LiteRt(DIGITS)
    wanted = [np.array(reference.run(*inputs)[0]) for inputs in batch]
    instructions: list[int] = []
    for code in ("auto", "intrinsics", "portable"):
        bytewright.compile(DIGITS, target=target, kernel_code=code).write(tmp_path / code)
        result = run_batch(tmp_path / code, batch, on="qemu")
        for (output,), expected in zip(result.outputs, wanted, strict=True):
            np.testing.assert_array_equal(output, expected)
        instructions.append(result.instructions[-1])
    assert instructions[0] < instructions[2]  # what they are for
