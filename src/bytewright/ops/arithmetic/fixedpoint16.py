"""gemmlowp's logistic and tanh in 16 bits, as the gates of quantised LSTMs have them.

A raw int16 in format Qi.(15-i) stands for `raw / 2**(15-i)`. The operations are those of `fixedpoint.py`, on numbers
of half the width: each constant is the 32-bit one, rounded.
"""

import numpy as np

from bytewright.ops.arithmetic.fixedpoint import (
    EXP_MINUS_ONE_EIGHTH,
    EXP_OF_MINUS_POWERS,
    FORTY_EIGHT_OVER_SEVENTEEN,
    MINUS_THIRTY_TWO_OVER_SEVENTEEN,
    ONE_THIRD,
)
from bytewright.ops.arithmetic.rescale import Int64, rounding_shift_right

LOW, HIGH = -(1 << 15), (1 << 15) - 1
GATE_BITS = 3
"""Integer bits of what a gate is before its activation: Q3.12."""
FARTHEST_BITS = 5
"""The exponential of what is below -2^5 is 0."""


def narrow(constant: int) -> int:
    """A 32-bit constant in 16 bits."""
    return int(rounding_shift_right(np.int64(constant), 16))


def saturate(values: Int64) -> Int64:
    """The nearest values of int16."""
    return np.clip(values, LOW, HIGH)


def multiply(left: Int64, right: Int64 | int) -> Int64:
    """The product of two numbers in Q0.15, rounded half up; never of two that are -1."""
    return (left * right + (1 << 14)) >> 15


def _exp_near_zero(values: Int64) -> Int64:
    """The exponential on [-1/4, 0) in Q0.15."""
    x = values + (1 << 12)
    x2 = multiply(x, x)
    x3, x4 = multiply(x2, x), multiply(x2, x2)
    cubic = multiply(rounding_shift_right(x4, 2) + x3, narrow(ONE_THIRD))
    tail = rounding_shift_right(cubic + x2, 1)
    around = narrow(EXP_MINUS_ONE_EIGHTH)
    return saturate(around + multiply(x + tail, around))


def exp_on_negative_values(values: Int64, integer_bits: int) -> Int64:
    """The exponential of values <= 0 in Q(integer_bits).(15-integer_bits), as Q0.15; exp(0) is 2**15 - 1."""
    first_bit = 13 - integer_bits
    quarter = 1 << first_bit
    rest = (values & (quarter - 1)) - quarter
    result = _exp_near_zero(saturate(rest << integer_bits))
    quarters = (rest - values) >> first_bit
    for bit, constant in enumerate(EXP_OF_MINUS_POWERS):
        result = np.where((quarters >> bit) & 1, multiply(result, narrow(constant)), result)
    if integer_bits > FARTHEST_BITS:
        result = np.where(values < -(1 << (15 + FARTHEST_BITS - integer_bits)), 0, result)
    return np.where(values == 0, HIGH, result)


def _reciprocal_of_mean_with_one(values: Int64) -> Int64:
    """1 / ((1 + a) / 2) for a in [0, 1] in Q0.15, as Q2.13."""
    half_sum = (values + HIGH + 1) >> 1
    x = narrow(FORTY_EIGHT_OVER_SEVENTEEN) + multiply(half_sum, narrow(MINUS_THIRTY_TWO_OVER_SEVENTEEN))
    for _ in range(3):
        error = (1 << 13) - multiply(half_sum, x)
        x = x + saturate(multiply(x, error) << 2)
    return x


def logistic(values: Int64) -> Int64:
    """The logistic function, Q3.12 to Q0.15."""
    decay = exp_on_negative_values(-np.abs(values), GATE_BITS)
    upper_half = saturate(_reciprocal_of_mean_with_one(decay) << 1)
    result = np.where(values > 0, upper_half, HIGH - upper_half)
    return np.where(values == 0, 1 << 14, result)


def tanh(values: Int64, integer_bits: int) -> Int64:
    """The hyperbolic tangent, Q(integer_bits).(15-integer_bits) to Q0.15."""
    decay = exp_on_negative_values(-np.abs(values), integer_bits + 1)
    magnitude = saturate((_reciprocal_of_mean_with_one(decay) - (1 << 13)) << 2)
    return np.where(values < 0, -magnitude, np.where(values == 0, 0, magnitude))
