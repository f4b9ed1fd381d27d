"""Float32 references of the operators that are more than one numpy operation.

Float models agree with a reference within a tolerance (docs/numerics.md), not bit for bit, so these follow the
references' formulas but leave the order of additions and the last bit of `exp` and `tanh` to numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.multiplier import float_activation_range
from bytewright.ops.arithmetic.pooling import Window, windows

Float32 = NDArray[np.float32]


def clamp(values: NDArray[Any], activation: str) -> Float32:
    """A fused activation."""
    low, high = float_activation_range(activation)
    return np.clip(values, np.float32(low), np.float32(high)).astype(np.float32)


def average_pool(
    values: Float32, window: Window, output_height: int, output_width: int, activation: str
) -> Float32:
    """AVERAGE_POOL_2D of [batch, height, width, channels]: the mean of the window's part inside the input."""
    result = np.empty((values.shape[0], output_height, output_width, values.shape[3]), np.float32)
    for row, column, part in windows(values, window, output_height, output_width):
        count = np.float32(part.shape[1] * part.shape[2])
        result[:, row, column] = part.sum(axis=(1, 2), dtype=np.float32) / count
    return clamp(result, activation)


def max_pool(
    values: Float32, window: Window, output_height: int, output_width: int, activation: str
) -> Float32:
    """MAX_POOL_2D of [batch, height, width, channels]."""
    result = np.empty((values.shape[0], output_height, output_width, values.shape[3]), np.float32)
    for row, column, part in windows(values, window, output_height, output_width):
        result[:, row, column] = part.max(axis=(1, 2))
    return clamp(result, activation)


def mean(values: Float32, axes: Sequence[int], keep_dims: bool) -> Float32:
    """MEAN: the sum over `axes`, divided by the number of values."""
    return np.asarray(np.mean(values, axis=tuple(axes), keepdims=keep_dims, dtype=np.float32), np.float32)


def softmax(values: Float32, beta: float) -> Float32:
    """SOFTMAX along the last axis: exp(beta*(x - max)) over its sum."""
    shifted = (values - values.max(axis=-1, keepdims=True)) * np.float32(beta)
    exponentials = np.exp(shifted)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float32), np.float32)


LOGISTIC_IS_EXP_BELOW = -9.0


def logistic(values: Float32) -> Float32:
    """LOGISTIC: 1/(1 + exp(-x)) without overflow; below -9 it is exp(x), as in LiteRT, which is 1e-4 more at most."""
    decay = np.exp(-np.abs(values))
    quotient = np.where(values < 0, decay, np.float32(1)) / (np.float32(1) + decay)
    return np.asarray(np.where(values < LOGISTIC_IS_EXP_BELOW, decay, quotient), np.float32)


def leaky_relu(values: Float32, alpha: float) -> Float32:
    """LEAKY_RELU: x where x > 0, else alpha*x."""
    return np.asarray(np.where(values > 0, values, values * np.float32(alpha)), np.float32)


def hard_swish(values: Float32) -> Float32:
    """HARD_SWISH: x * clamp(x + 3, 0, 6) / 6."""
    gate = np.clip(values + np.float32(3), np.float32(0), np.float32(6))
    return np.asarray(values * gate / np.float32(6), np.float32)
