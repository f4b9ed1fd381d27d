"""REAL_ROUND by two multiplications of 32 bits, for cores that have no unit for double precision.

A scale has 53 bits, so a magnitude times it has at most 84, of which the lower ones are cut off. Rounded half up, with
the sign given back, that is rounding half away from zero. REAL_ROUND differs where its product in double precision,
itself rounded, becomes a half that it has not reached: what is added before the shift makes up for that. The two are
compared at every step of the staircase, which proves them equal for all accumulators.
"""

import math
from dataclasses import dataclass

import numpy as np

from bytewright.ops.arithmetic.rescale import Int64, real_round


@dataclass(frozen=True, slots=True)
class SymmetricRescale:
    """`(a * high + (a * low >> 32) + addend) >> (32 + shift)` of the magnitude a, with the accumulator's sign.

    Attributes:
        high: Below 2^31.
        low: Of 32 bits, with its sign.
        addend: About a half, which is `2^(31 + shift)`.
        shift: 0 to 30.
    """

    high: int
    low: int
    addend: int
    shift: int

    def scaled(self, magnitudes: Int64) -> Int64:
        """What it makes of magnitudes below 2^31."""
        return (_product(magnitudes, self.high, self.low) + self.addend) >> (32 + self.shift)


def fit_symmetric(scale: float, most: int, limit: int) -> SymmetricRescale | None:
    """A SymmetricRescale equal to `real_round` by a scale up to a limit, beyond which it gives no less.

    Args:
        scale: Above 0.
        most: The largest magnitude of an accumulator, below 2^31.
        limit: The largest magnitude of an output that matters.

    Returns:
        None for scales that are not below a half, or below 2^-32, and where no addend meets all steps.
    """
    mantissa, exponent = math.frexp(scale)
    # The scale times 2^(64 + shift), a whole number below 2^63.
    whole, shift = int(math.ldexp(mantissa, 63)), -exponent - 1
    high = (whole + (1 << 31)) >> 32
    if not 0 <= shift <= 30 or high >= 1 << 31:
        return None
    low = whole - (high << 32)
    levels = np.arange(1, min(limit, int(real_round(most, scale))) + 1, dtype=np.int64)
    steps = _steps(scale, levels)
    thresholds = levels << (32 + shift)
    least = int((thresholds - _product(steps, high, low)).max(initial=0))
    greatest = int((thresholds - _product(steps - 1, high, low)).min(initial=1 << (32 + shift))) - 1
    addend = min(max(1 << (31 + shift), least), greatest)
    return None if addend < least else SymmetricRescale(high, low, addend, shift)


def _product(magnitudes: Int64, high: int, low: int) -> Int64:
    """Magnitudes times the scale, in steps of 2^-(32 + shift), rounded down."""
    return magnitudes * high + (magnitudes * low >> 32)


def _steps(scale: float, levels: Int64) -> Int64:
    """For each level the smallest magnitude that reaches it."""
    near = np.ceil((levels - 0.5) / scale).astype(np.int64) - 1
    below = sum((real_round(near + i, scale) < levels).astype(np.int64) for i in range(3))
    return near + below
