"""An open batch on emulated boards: samples of every batch equal the reference's, and cost what they cost alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.run import run_batch
from bytewright.ir.border import Io
from bytewright.options import Options
from bytewright.target.registry import load_target
from support import shared_models as models
from support.reference import LiteRt

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"


def bundle(model: Path, folder: Path, target: str, io: Io = Io.CALLER) -> Path:
    write_bundle(compile_model(model, load_target(target), Options(batch_max=3, io=io)).files, folder)
    return folder


@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("target", ["mps3-an547", "mps2-an386"])
def test_a_batch_on_the_board(target: str, io: Io, tmp_path: Path) -> None:
    reference = LiteRt(DIGITS)
    samples = np.random.default_rng(1).integers(-128, 128, (6, 1, 8, 8, 1)).astype(np.int8)
    expected = [np.array(reference.run(sample)[0]) for sample in samples]
    parts = [slice(0, 1), slice(1, 4), slice(4, 6)]
    batch = [[np.concatenate(list(samples[part]))] for part in parts]
    batch += [[np.concatenate([samples[0]] * number)] for number in (1, 2, 3)]
    result = run_batch(bundle(DIGITS, tmp_path / "bundle", target, io), batch, on="qemu")
    for (output,), part in zip(result.outputs, parts, strict=False):
        np.testing.assert_array_equal(output, np.concatenate(expected[part]))
    one, two, three = result.instructions[3:]
    # The same sample costs the same each time; what is left are the run's checks and its calls of the kernels.
    assert three - two == two - one
    assert two < 2 * one


def test_kws_on_the_board(tmp_path: Path) -> None:
    folder = bundle(models.model_path(models.KWS), tmp_path / "bundle", models.BOARD)
    samples = models.random_inputs(models.KWS, 2, seed=3)
    reference = LiteRt(models.model_content(models.KWS))
    expected = np.concatenate([np.array(reference.run(*inputs)[0]) for inputs in samples])
    result = run_batch(folder, [[np.concatenate([x for (x,) in samples])]], on="qemu")
    np.testing.assert_array_equal(result.outputs[0][0], expected)
