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

Float32 = NDArray[np.float32]


def clamp(values: NDArray[Any], activation: str) -> Float32:
    """A fused activation."""
    low, high = float_activation_range(activation)
    return np.clip(values, np.float32(low), np.float32(high)).astype(np.float32)


def mean(values: Float32, axes: Sequence[int], keep_dims: bool) -> Float32:
    """MEAN: the sum over `axes`, divided by the number of values."""
    return np.asarray(np.mean(values, axis=tuple(axes), keepdims=keep_dims, dtype=np.float32), np.float32)


LOGISTIC_IS_EXP_BELOW = -9.0


def logistic(values: Float32) -> Float32:
    """LOGISTIC: 1/(1 + exp(-x)) without overflow; below -9 it is exp(x), as in LiteRT, which is 1e-4 more at most."""
    decay = np.exp(-np.abs(values))
    quotient = np.where(values < 0, decay, np.float32(1)) / (np.float32(1) + decay)
    return np.asarray(np.where(values < LOGISTIC_IS_EXP_BELOW, decay, quotient), np.float32)


def leaky_relu(values: Float32, alpha: float) -> Float32:
    """LEAKY_RELU: x where x > 0, else alpha*x."""
    return np.asarray(np.where(values > 0, values, values * np.float32(alpha)), np.float32)
