"""The three ways an accumulator becomes an output value, on numpy arrays.

Arguments broadcast, so per-channel multipliers are arrays along the last axis. Accumulators are int32 values in
any integer array; results are int64 before zero point and clamp.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bytewright.ops.arithmetic.multiplier import INT32_MAX, Multiplier

Int64 = NDArray[np.int64]


def high_multiply(a: ArrayLike, b: ArrayLike) -> Int64:
    """The rounded high half of a doubled 32-bit product: `(a*b + 2**30) >> 31`, saturated at 2**31 - 1.

    Ties go up. It equals gemmlowp's SaturatingRoundingDoublingHighMul for all int32 arguments.
    """
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.minimum((product + (1 << 30)) >> 31, INT32_MAX)


def rounding_shift_right(values: ArrayLike, shift: ArrayLike) -> Int64:
    """`values / 2**shift` rounded half away from zero (gemmlowp's RoundingDivideByPOT)."""
    array = np.asarray(values, np.int64)
    bits = np.asarray(shift, np.int64)
    half = (np.int64(1) << bits) >> 1
    magnitude = (np.abs(array) + half) >> bits
    return np.where(array >= 0, magnitude, -magnitude)


def double_round(
    accumulator: ArrayLike, multiplier: ArrayLike, left_shift: ArrayLike, right_shift: ArrayLike
) -> Int64:
    """DOUBLE_ROUND: shift left, high multiply (ties up), shift right (ties away from zero).

    CONV_2D, DEPTHWISE_CONV_2D and nearly every other int8 operator of both sets; FULLY_CONNECTED of `tflm`.
    The caller has shown that the left shift stays within 32 bits (`multiplier.require_left_shift`).
    """
    shifted = np.asarray(accumulator, np.int64) << np.asarray(left_shift, np.int64)
    return rounding_shift_right(high_multiply(shifted, multiplier), right_shift)


def double_round_by(values: ArrayLike, factor: Multiplier) -> Int64:
    """The same by one multiplier, which may be a left shift or a right shift."""
    return double_round(values, factor.multiplier, factor.left_shift, factor.right_shift)


def single_round(accumulator: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Int64:
    """SINGLE_ROUND: `(accumulator*multiplier + 2**(shift-1)) >> shift`, with shift = 31 - exponent >= 1.

    Sums of 64 bits, with a multiplier of 16 (`multiplier.reduced`). It is TOSA's default, too, and the linear forms of
    `fit` generalise it.
    """
    bits = np.asarray(shift, np.int64)
    product = np.asarray(accumulator, np.int64) * np.asarray(multiplier, np.int64)
    return (product + (np.int64(1) << (bits - 1))) >> bits


def real_round(accumulator: ArrayLike, scale: ArrayLike) -> Int64:
    """REAL_ROUND: `round(double(accumulator) * scale)`, half away from zero (FULLY_CONNECTED of `litert-ref`).

    `scale` is `multiplier.convolution_scale`. Products beyond int32 are undefined in the reference.
    """
    return round_away(np.asarray(accumulator, np.float64) * np.asarray(scale, np.float64)).astype(np.int64)


def round_away(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """C's `round`: the nearest whole number, half away from zero."""
    magnitude = np.floor(np.abs(values))
    # The difference is exact below 2**52, where halves exist at all; adding 0.5 first would not be.
    magnitude += np.abs(values) - magnitude >= 0.5
    return np.where(values >= 0, magnitude, -magnitude)
