"""Layers of float32 activations and integer weights on emulated boards: exact, and quicker than float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.result import BatchResult
from bytewright.execute.run import run_batch
from support.hybrid_layers import EXACT, inputs
from support.model_files import EXPORTS
from support.reference import run_litert
from support.tiers import some

M55, M4 = "mps3-an547", "mps2-an386"
FORMS = ("convolution", "depthwise", "layer of one scale", "layer with zero points")
NETWORK = EXPORTS / "litert_torch" / "resnet_dyn8.tflite"


@pytest.mark.parametrize("board", [M55, M4])
@pytest.mark.parametrize("name", some(list(FORMS), every=2))
def test_results_are_litert_s(tmp_path: Path, name: str, board: str) -> None:
    content, batch = EXACT[name].model(), inputs(EXACT[name].source, 5)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    folder = bytewright.compile(path, target=board).write(tmp_path / "m")
    found = run_batch(folder, [[x] for x in batch], on="qemu")
    for x, (y,) in zip(batch, found.outputs, strict=True):
        np.testing.assert_array_equal(y, run_litert(content, [x])[0])


@pytest.mark.skipif(
    not NETWORK.exists(), reason="the data that is not part of the project is missing: ../shared/models"
)
@pytest.mark.parametrize(("board", "most"), [(M55, 0.7), (M4, 1.15)])
def test_a_network_is_exact_and_takes_few_instructions_beside_float32(
    tmp_path: Path, board: str, most: float
) -> None:
    """On the M4 activations cost as much to quantise as products of bytes save beside a unit for floats."""
    with np.load(NETWORK.with_suffix(".npz")) as arrays:
        batch, wanted = (arrays[next(n for n in arrays if n.startswith(letter))][:1] for letter in "xy")

    def run(**options: str) -> BatchResult:
        folder = bytewright.compile(NETWORK, target=board, **options).write(tmp_path / str(len(options)))
        return run_batch(folder, [[x] for x in batch], on="qemu")

    hybrid, expanded = run(), run(weights="expand")
    (found,) = hybrid.outputs[0]
    assert np.abs(found - wanted[0]).max() <= 1e-5 * np.abs(wanted).max()
    assert hybrid.instructions[0] < most * expanded.instructions[0]
