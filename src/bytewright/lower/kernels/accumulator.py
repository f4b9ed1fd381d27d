"""Bounds of accumulators and folded biases, computed from the weights themselves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright.ir.where import Where
from bytewright.lower.scalar import require_i32
from bytewright.ops.arithmetic.sums import sums_by_sign

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
    weights: NDArray[np.generic], bias: Int64, zero_point: int, offset: int, where: Where, what: str
) -> Folded:
    """Folds `- zero_point * sum(w)` into the bias, for activations that are read as `x + offset`.

    Args:
        weights: Per output channel, [OC, K], of any integer type.
        bias: i64[OC].
        zero_point: Of the input; padded taps hold it too.
        offset: What the kernel adds to every activation, 0 or 128.
        where: For the error.
        what: For the error.

    Raises:
        CompileError: BW110 if a partial sum could leave 32 bits.
    """
    positive, negative = sums_by_sign(weights)
    folded = bias - (zero_point + offset) * (positive + negative)
    first, last = -128 + offset, 127 + offset
    # Partial sums, in whatever order, stay between the sums of the negative and of the positive products.
    lowest, highest = folded + positive * first + negative * last, folded + positive * last + negative * first
    low, high = int(min(lowest.min(), folded.min())), int(max(highest.max(), folded.max()))
    require_i32(low, high, what, where)
    return Folded(folded, int(lowest.min()), int(highest.max()))
