"""The float32 references, tensor-wise against LiteRT (docs/numerics.md gives the tolerance)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arithmetic_formulas import Window, average_pool, hard_swish, max_pool, softmax

from bytewright.ops.arithmetic import float32
from support.reference import run_litert
from tflite_writer import ModelBuilder

SHAPE = (2, 7, 5, 3)
VALUES = (np.random.default_rng(1).normal(size=SHAPE) * 4).astype(np.float32)


def litert(
    operator: str, output_shape: tuple[int, ...], axes: list[int] | None = None, **options: Any
) -> np.ndarray:
    builder = ModelBuilder()
    x = builder.tensor("x", SHAPE, "float32")
    inputs = [x] if axes is None else [x, builder.constant("axes", np.array(axes, np.int32))]
    y = builder.tensor("y", output_shape, "float32")
    builder.operator(operator, inputs, [y], **options)
    return run_litert(builder.build([x], [y]), [VALUES])[0]


def assert_close(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.dtype == np.float32
    assert actual.shape == expected.shape
    assert np.max(np.abs(actual - expected)) <= 1e-6 * np.max(np.abs(expected))


@pytest.mark.parametrize(
    ("operator", "reference", "options"),
    [
        ("SOFTMAX", lambda x: softmax(x, 0.7), {"beta": 0.7}),
        ("LOGISTIC", float32.logistic, {}),
        ("LEAKY_RELU", lambda x: float32.leaky_relu(x, 0.3), {"alpha": 0.3}),
        ("HARD_SWISH", hard_swish, {}),
        ("RELU", lambda x: float32.clamp(x, "RELU"), {}),
        ("RELU6", lambda x: float32.clamp(x, "RELU6"), {}),
        ("RELU_N1_TO_1", lambda x: float32.clamp(x, "RELU_N1_TO_1"), {}),
    ],
)
def test_unary(operator: str, reference: Callable[[np.ndarray], np.ndarray], options: dict[str, Any]) -> None:
    assert_close(reference(VALUES), litert(operator, SHAPE, **options))


@pytest.mark.parametrize(
    ("operator", "reference"), [("AVERAGE_POOL_2D", average_pool), ("MAX_POOL_2D", max_pool)]
)
def test_pools(operator: str, reference: Callable[..., np.ndarray]) -> None:
    options = {"padding": "SAME", "stride_h": 2, "stride_w": 1, "filter_height": 3, "filter_width": 2}
    expected = litert(operator, (2, 4, 5, 3), activation="RELU", **options)
    assert_close(reference(VALUES, Window(3, 2, 2, 1, 1, 0), 4, 5, "RELU"), expected)


def test_mean() -> None:
    assert_close(float32.mean(VALUES, [1, 2], False), litert("MEAN", (2, 3), [1, 2], keep_dims=False))
    assert_close(float32.mean(VALUES, [3], True), litert("MEAN", (2, 7, 5, 1), [3], keep_dims=True))


def test_logistic_does_not_overflow() -> None:
    with np.errstate(over="raise"):
        assert float32.logistic(np.array([-500, 500], np.float32)).tolist() == [0.0, 1.0]
