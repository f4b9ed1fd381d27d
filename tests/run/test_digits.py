"""The shipped example on this machine: the generated C equals LiteRT on every held-out digit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from support.reference import LiteRt

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "digits"


@pytest.mark.parametrize(
    "options", [BuildOptions(flags=("-O0",), sanitize=True), BuildOptions(flags=("-O3",))], ids=str
)
def test_generated_c_equals_litert_on_all_held_out_digits(tmp_path: Path, options: BuildOptions) -> None:
    bytewright.compile(EXAMPLE / "digits.tflite", target="host").write(tmp_path / "digits")
    with np.load(EXAMPLE / "heldout.npz") as stored:
        images = stored["images"][:, np.newaxis]
    result = run_batch(tmp_path / "digits", [[image] for image in images], options=options)
    reference = LiteRt(EXAMPLE / "digits.tflite")
    actual = np.stack([outputs[0][0] for outputs in result.outputs])
    expected = np.stack([reference.run(image)[0][0] for image in images])
    np.testing.assert_array_equal(actual, expected)
