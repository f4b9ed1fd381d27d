"""gemmlowp's fixed-point exp, logistic and tanh, which the references use for int8.

A raw int32 in format Qi.(31-i) stands for `raw / 2**(31-i)`. The sequences of operations below are those of
gemmlowp's `fixedpoint.h` and give the same bits; each is plain 32-bit integer work apart from the 64-bit product
in `high_multiply`, so C99 does it without floating point.
"""

import numpy as np

from bytewright.ops.arithmetic.multiplier import INT32_MAX, INT32_MIN
from bytewright.ops.arithmetic.rescale import Int64, high_multiply, rounding_shift_right

EXP_MINUS_ONE_EIGHTH = 1895147668
"""exp(-1/8) in Q0.31."""
ONE_THIRD = 715827883
"""1/3 in Q0.31."""
EXP_OF_MINUS_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""exp(-2**k) in Q0.31, for k = -2 .. 4."""
FORTY_EIGHT_OVER_SEVENTEEN = 1515870810
"""48/17 in Q2.29: with the next one, the linear first guess of a reciprocal on [1/2, 1]."""
MINUS_THIRTY_TWO_OVER_SEVENTEEN = -1010580540
"""-32/17 in Q2.29."""


def _saturating_shift_left(values: Int64, bits: int) -> Int64:
    return np.clip(values << bits, INT32_MIN, INT32_MAX)


def _exp_near_zero(values: Int64) -> Int64:
    """The exponential on [-1/4, 0) in Q0.31: a polynomial around -1/8."""
    x = values + (1 << 28)
    x2 = high_multiply(x, x)
    x3 = high_multiply(x2, x)
    x4 = high_multiply(x2, x2)
    cubic = high_multiply(rounding_shift_right(x4, 2) + x3, ONE_THIRD)
    tail = rounding_shift_right(cubic + x2, 1)
    return EXP_MINUS_ONE_EIGHTH + high_multiply(EXP_MINUS_ONE_EIGHTH, x + tail)


def exp_on_negative_values(values: Int64, integer_bits: int) -> Int64:
    """The exponential of values <= 0 in Q(integer_bits).(31-integer_bits), as Q0.31; exp(0) is 2**31 - 1.

    The value is split into a multiple of -1/4 and a rest in [-1/4, 0); the multiple's exponential is a product
    of constants, one for each bit that is set.
    """
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (values & (quarter - 1)) - quarter
    result = _exp_near_zero(_saturating_shift_left(rest, integer_bits))
    multiple = rest - values
    for bit, constant in zip(range(fraction_bits - 2, 31), EXP_OF_MINUS_POWERS, strict=False):
        result = np.where((multiple >> bit) & 1, high_multiply(result, constant), result)
    return np.where(values == 0, INT32_MAX, result)


def reciprocal_of_mean_with_one(values: Int64) -> Int64:
    """1 / ((1 + a) / 2) for a in [0, 1] in Q0.31, as Q2.29: three Newton steps from a linear guess."""
    half_sum = (values + INT32_MAX + 1) >> 1
    x = FORTY_EIGHT_OVER_SEVENTEEN + high_multiply(half_sum, MINUS_THIRTY_TWO_OVER_SEVENTEEN)
    for _ in range(3):
        error = (1 << 29) - high_multiply(half_sum, x)
        x = x + _saturating_shift_left(high_multiply(x, error), 2)
    return x


def one_over_one_plus(values: Int64) -> Int64:
    """1 / (1 + a) for a in [0, 1], Q0.31 to Q0.31."""
    return _saturating_shift_left(reciprocal_of_mean_with_one(values), 1)


def logistic(values: Int64) -> Int64:
    """The logistic function, Q4.27 to Q0.31."""
    upper_half = one_over_one_plus(exp_on_negative_values(-np.abs(values), 4))
    result = np.where(values > 0, upper_half, INT32_MAX - upper_half)
    return np.where(values == 0, 1 << 30, result)


def tanh(values: Int64) -> Int64:
    """The hyperbolic tangent, Q4.27 to Q0.31."""
    decay = exp_on_negative_values(-np.abs(values), 5)
    magnitude = _saturating_shift_left(reciprocal_of_mean_with_one(decay) - (1 << 29), 2)
    return np.where(values < 0, -magnitude, np.where(values == 0, 0, magnitude))
