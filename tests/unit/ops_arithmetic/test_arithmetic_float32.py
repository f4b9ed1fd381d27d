"""The float32 operators, tensor-wise against LiteRT (docs/numerics.md gives the tolerance)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arithmetic_models import meaning

from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.float_functions import Sigmoid
from support.reference import run_litert
from tflite_writer import ModelBuilder

SHAPE = (2, 7, 5, 3)
VALUES = (np.random.default_rng(1).normal(size=SHAPE) * 4).astype(np.float32)


def check(
    operator: str, output_shape: tuple[int, ...], axes: list[int] | None = None, **options: Any
) -> None:
    """The operator as Bytewright reads it, and as LiteRT computes it."""
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "float32")
    inputs = [x] if axes is None else [x, builder.constant("axes", np.array(axes, np.int32))]
    y = builder.tensor("y", output_shape, "float32")
    builder.operator(operator, inputs, [y], **options)
    model = builder.build([x], [y])
    assert_close(meaning(Numerics.LITERT_REF, model, VALUES), run_litert(model, [VALUES])[0])


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == np.float32
    assert actual.shape == expected.shape
    assert np.max(np.abs(actual - expected)) <= 1e-6 * np.max(np.abs(expected))


@pytest.mark.parametrize(
    ("operator", "options"),
    [
        ("SOFTMAX", {"beta": 0.7}),
        ("LOGISTIC", {}),
        ("TANH", {}),
        ("LEAKY_RELU", {"alpha": 0.3}),
        ("HARD_SWISH", {}),
        ("RELU", {}),
        ("RELU6", {}),
        ("RELU_N1_TO_1", {}),
    ],
)
def test_unary(operator: str, options: dict[str, Any]) -> None:
    check(operator, SHAPE, **options)


@pytest.mark.parametrize("operator", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools(operator: str) -> None:
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 1, "filter_height": 3, "filter_width": 2}
    check(operator, (2, 4, 5, 3), activation="RELU", **options)


def test_mean() -> None:
    check("MEAN", (2, 3), [1, 2], keep_dims=False)
    check("MEAN", (2, 7, 5, 1), [3], keep_dims=True)


def test_logistic_does_not_overflow() -> None:
    with np.errstate(over="raise"):
        (found,) = Sigmoid().evaluate((np.array([-500, 500], np.float32),))
    assert found.tolist() == [0.0, 1.0]
