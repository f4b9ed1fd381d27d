"""Biases that have taken in the zero point, and bounds of accumulators, computed from the weights themselves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.where import Where
from bytewright.lower.scalar import ChannelBounds, Scalar, require_fits
from bytewright.ops.arithmetic.sums import sums_by_sign

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Folded:
    """A bias that has taken in the zero point, and the bounds of every accumulator that starts from it.

    Attributes:
        bias: i64[OC], within the type of the sums.
        low, high: Bounds of the finished accumulators over all channels.
        channels: Those of each channel.
    """

    bias: Int64
    low: int
    high: int
    channels: ChannelBounds


def fold_zero_point(
    weights: NDArray[np.generic],
    bias: Int64,
    zero_point: int,
    offset: int,
    types: tuple[ir.DType, ir.DType],
    where: Where,
) -> Folded:
    """Folds `- zero_point * sum(w)` into the bias, for activations that are read as `x + offset`.

    Args:
        weights: Per output channel, [OC, K], of any integer type.
        bias: i64[OC].
        zero_point: Of the input; padded taps hold it too.
        offset: What the kernel adds to every activation, 0 or 128.
        types: Of activations and of sums.
        where: For the error.

    Raises:
        CompileError: BW110 if a partial sum could leave its type.
    """
    held, sums = types
    positive, negative = sums_by_sign(weights)
    folded = bias - (zero_point + offset) * (positive + negative)
    first, last = (bound + offset for bound in held.bounds)
    # Partial sums, in whatever order, stay between the sums of the negative and of the positive products.
    lowest, highest = folded + positive * first + negative * last, folded + positive * last + negative * first
    reach = int(min(lowest.min(), folded.min())), int(max(highest.max(), folded.max()))
    require_fits(reach, sums, "the accumulator", where)
    channels = ChannelBounds(tuple(lowest.tolist()), tuple(highest.tolist()))
    return Folded(folded, int(lowest.min()), int(highest.max()), channels)


@dataclass(frozen=True, slots=True)
class Bias:
    """The bias of a convolution as a parameter of its kernel, and what is known of its channels' sums.

    Attributes:
        values: [OC], of the sums' type; that of integers has taken in the zero point.
        low, high: Bounds of every finished sum of integers.
        channels: Those of each channel's.
    """

    values: ir.Buffer
    low: int = 0
    high: int = 0
    channels: ChannelBounds | None = None

    @property
    def is_float(self) -> bool:
        """Whether the sums are of floats, which may not be reordered: the reference adds their bias last."""
        return not self.values.dtype.is_integer

    def initial(self, channel: ir.Expr) -> ir.Expr:
        """What the sum of a channel starts from."""
        return ir.const(0, self.values.dtype) if self.is_float else load(self.values, channel)

    def finished(self, total: ir.Expr, channel: ir.Expr) -> Scalar:
        """The sum of a channel, where all products have been added."""
        if self.is_float:
            return Scalar(total + load(self.values, channel))
        return Scalar(total, self.low, self.high, self.channels)
