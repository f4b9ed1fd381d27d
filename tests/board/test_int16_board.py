"""A network of int16 activations and int8 weights on emulated boards: exact, sums and halves too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bytewright
from bytewright.execute.run import run_batch
from support.model_files import EXPORTS
from support.reference import run_litert
from tflite_writer import ModelBuilder

M4, M55 = "mps2-an386", "mps3-an547"
NETWORK = EXPORTS / "litert_torch" / "mbv2_i16.tflite"


@pytest.mark.skipif(
    not NETWORK.exists(), reason="the data that is not part of the project is missing: ../shared/models"
)
@pytest.mark.parametrize("board", [M4, M55])
def test_a_network_is_exact(tmp_path: Path, board: str) -> None:
    with np.load(NETWORK.with_suffix(".npz")) as arrays:
        batch, wanted = (arrays[next(n for n in arrays if n.startswith(letter))][:2] for letter in "xy")
    folder = bytewright.compile(NETWORK, target=board).write(tmp_path / "m")
    found = run_batch(folder, [[x] for x in batch], on="qemu")
    for (y,), beside in zip(found.outputs, wanted, strict=True):
        np.testing.assert_array_equal(y, beside)


@pytest.mark.parametrize("output_scale", [0.125, 0.09, 0.0625, 0.002])
@pytest.mark.parametrize(
    ("board", "of_a_unit", "else_"), [(M55, "mve_real_round", ""), (M4, "scale_symmetric", "real_round")]
)
def test_halves_are_rounded_as_the_reference_does(
    tmp_path: Path, board: str, of_a_unit: str, else_: str, output_scale: float
) -> None:
    """Sums that end in a half, sums that do not, and sums far beyond the output; scales from a half on in doubles."""
    builder, random = ModelBuilder(), np.random.default_rng(0)
    x = builder.tensor("x", (64, 16), "int16", scale=0.25, zero_point=0)
    weights = builder.constant("weights", random.integers(-127, 128, (8, 16)).astype(np.int8), scale=0.125)
    bias = builder.constant("bias", np.zeros(8, np.int64), scale=0.03125)
    y = builder.tensor("y", (64, 8), "int16", scale=output_scale, zero_point=0)
    builder.operator("FULLY_CONNECTED", [x, weights, bias], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x], [y]))
    limits = random.choice([3, 100, 32767], (64, 1))
    values = random.integers(-limits, limits, (64, 16), endpoint=True).astype(np.int16)
    folder = bytewright.compile(path, target=board).write(tmp_path / "m")
    function = else_ if else_ and 0.03125 / output_scale >= 0.5 else of_a_unit
    assert f"{function}(" in (folder / "src" / "m_kernels.c").read_text()
    ((found,),) = run_batch(folder, [[values]], on="qemu").outputs
    np.testing.assert_array_equal(found, run_litert(path.read_bytes(), [values])[0])


@pytest.mark.parametrize("kind", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("scale", [2.0**-12, 0.0002, 0.001])
def test_every_value_of_logistic_and_tanh(tmp_path: Path, kind: str, scale: float) -> None:
    """Scales that take magnitudes to the end of the table, or beyond, and such that do not; with and without lanes."""
    builder = ModelBuilder()
    x = builder.tensor("x", (65536,), "int16", scale=scale, zero_point=0)
    y = builder.tensor("y", (65536,), "int16", scale=2.0**-15, zero_point=0)
    builder.operator(kind, [x], [y])
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.build([x], [y]))
    values = np.arange(-32768, 32768).astype(np.int16)
    (wanted,) = run_litert(path.read_bytes(), [values])
    for board in (M4, M55):
        folder = bytewright.compile(path, target=board).write(tmp_path / board)
        ((found,),) = run_batch(folder, [[values]], on="qemu").outputs
        np.testing.assert_array_equal(found, wanted)
