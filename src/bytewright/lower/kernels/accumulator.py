"""Bounds of accumulators and folded biases, computed from the weights themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright.ir.where import Where
from bytewright.lower.scalar import require_i32

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Folded:
    """A bias that has taken in the zero point, and the bounds of every accumulator that starts from it.

    Attributes:
        bias: i64[OC], within 32 bits.
        low, high: Bounds of the finished accumulators over all channels.
    """

    bias: Int64
    low: int
    high: int


def fold_zero_point(
    weights: Int64, bias: Int64, zero_point: int, offset: int, where: Where, what: str
) -> Folded:
    """Folds `- zero_point * sum(w)` into the bias, for activations that are read as `x + offset`.

    Args:
        weights: Per output channel, i64[OC, K].
        bias: i64[OC].
        zero_point: Of the input; padded taps hold it too.
        offset: What the kernel adds to every activation, 0 or 128.
        where: For the error.
        what: For the error.

    Raises:
        CompileError: BW110 if a partial sum could leave 32 bits.
    """
    folded = bias - (zero_point + offset) * weights.sum(axis=1)
    first, last = -128 + offset, 127 + offset
    rising = np.where(weights > 0, weights * last, weights * first)
    falling = np.where(weights > 0, weights * first, weights * last)
    # Partial sums, in whatever order, stay between the sums of the negative and of the positive products.
    lowest = folded + np.minimum(falling, 0).sum(axis=1)
    highest = folded + np.maximum(rising, 0).sum(axis=1)
    low, high = int(min(lowest.min(), folded.min())), int(max(highest.max(), folded.max()))
    require_i32(low, high, what, where)
    return Folded(folded, int((folded + falling.sum(axis=1)).min()), int((folded + rising.sum(axis=1)).max()))
