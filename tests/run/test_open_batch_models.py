"""Models that are converted with an open batch, as every tutorial does it: for one sample and for several, in C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from support.reference import LiteRt

SHARED = Path(__file__).resolve().parents[3] / "shared"
MODELS = (
    "cases/keras3/tutorial_open_batch_int8",
    "models/exports/keras/cnn_open",
    "models/exports/keras/se_open",
)


@pytest.mark.parametrize("batch_max", [None, 3])
@pytest.mark.parametrize("name", MODELS)
def test_keras_with_an_open_batch(name: str, batch_max: int | None) -> None:
    path = SHARED / f"{name}.tflite"
    if not path.exists():
        pytest.skip(f"{path} is missing")
    model = bytewright.compile(path, batch_max=batch_max)
    reference = LiteRt(path)
    (tensor,) = model.plan.inputs
    generator = np.random.default_rng(7)
    for batch in (1,) if batch_max is None else (2, 3):
        shape = (batch, *tensor.shape[1:])
        x: NDArray[Any] = generator.normal(size=shape).astype(np.float32)
        if tensor.dtype.is_integer:
            x = generator.integers(-128, 128, shape).astype(np.int8)
        (wanted,) = reference.run(x)
        found = model.run(x)
        assert isinstance(found, np.ndarray)
        assert found.dtype == wanted.dtype
        tolerance = 0.0 if tensor.dtype.is_integer else 1e-5 * float(np.abs(wanted).max())
        np.testing.assert_allclose(
            found.astype(np.float64), wanted.astype(np.float64), rtol=0, atol=tolerance
        )
