"""Sums of weights by sign: what all bounds of accumulators follow from."""

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.rescale import Int64


def sums_by_sign(weights: NDArray[np.generic]) -> tuple[Int64, Int64]:
    """The sums of the positive and of the negative weights of each channel; `weights` is [channels, taps].

    Weights stay in their type, whatever their number: int8 ones take a copy of their own size and no more.
    """
    total = weights.sum(axis=1, dtype=np.int64)
    negative = np.minimum(weights, 0).sum(axis=1, dtype=np.int64)
    return total - negative, negative
