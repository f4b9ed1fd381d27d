"""gemmlowp's fixed-point exp, logistic, tanh, a logarithm and a root, as the references have them for int8.

A raw int32 in format Qi.(31-i) stands for `raw / 2**(31-i)`. The sequences of operations below are those of
gemmlowp's `fixedpoint.h` and give the same bits; each is plain 32-bit integer work apart from the 64-bit product
in `high_multiply`, so C99 does it without floating point.
"""

import numpy as np

from bytewright.ops.arithmetic.multiplier import INT32_MAX, INT32_MIN
from bytewright.ops.arithmetic.rescale import Int64, double_round, high_multiply, rounding_shift_right

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
ROOT_BITS = 20
"""Fractional bits of the integer roots of RSQRT."""
LOG_2 = 1488522236
"""log(2) in Q0.31."""
SQRT_HALF = 1518500250
"""The square root of 1/2 in Q0.31."""
FOURTH_ROOT_OF_HALF = 1805811301
"""(1/2)**(1/4) in Q0.31."""
LOG_NUMERATOR = 117049297
"""11/240 * 2**(1/4) in Q0.31: with the next three, the logarithm as a quotient of polynomials."""
LOG_DENOMINATOR_SQUARE = 127690142
"""1/20 * 2**(1/4) in Q0.31."""
LOG_DENOMINATOR_CONSTANT = 1057819769
"""2**(3/4) - 2**(1/4) in Q0.31."""
LOG_DENOMINATOR_LINEAR = 638450708
"""1/4 * 2**(1/4) in Q0.31."""


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


def num_leading_zeros(values: Int64) -> Int64:
    """Of positive 32-bit numbers."""
    # frexp's exponent is the bit length, exactly.
    return 32 - np.frexp(values.astype(np.float64))[1].astype(np.int64)


def log_of_one_and_more(values: Int64) -> Int64:
    """The natural logarithm of values from 1 on in Q12.19, as Q5.26.

    A power of two, once as it is and once times sqrt(1/2), is taken out, so that what remains lies around 2**(-1/4);
    the logarithm of that is a quotient of polynomials. The sum is kept in Q6.25 until the end.
    """
    headroom = num_leading_zeros(values) - 1
    times_root = _saturating_shift_left(high_multiply(values << headroom, SQRT_HALF), 1)
    power = (12 - (headroom + 1) << 25) + (1 << 23)
    other_headroom = num_leading_zeros(high_multiply(values, SQRT_HALF)) - 1
    other = np.clip(values << other_headroom, INT32_MIN, INT32_MAX)
    other_power = (12 - other_headroom << 25) - (1 << 23)
    rest, power = np.minimum(times_root, other), np.maximum(power, other_power)
    middle = (rest + FOURTH_ROOT_OF_HALF + 1) // 2
    twice = (rest - FOURTH_ROOT_OF_HALF) * 2
    square = high_multiply(twice, twice)
    numerator = high_multiply(twice, rest) + high_multiply(high_multiply(twice, square), LOG_NUMERATOR)
    inner = LOG_DENOMINATOR_CONSTANT + twice + high_multiply(LOG_DENOMINATOR_SQUARE, square)
    denominator = high_multiply(middle, inner) + high_multiply(LOG_DENOMINATOR_LINEAR, twice)
    quotient = high_multiply(rounding_shift_right(numerator, 6), one_over_one_plus(denominator))
    return _saturating_shift_left(high_multiply(power, LOG_2) + quotient, 1)


def inverse_square_root(values: Int64) -> tuple[Int64, Int64]:
    """1/sqrt of integers below 2^31 as multipliers and exponents, which stand for `multiplier * 2**(e - 31)`.

    Five Newton steps in Q3.28 from the guess 1, on values shifted by pairs of bits into [1/2, 2). 0 counts as 1.
    """
    is_large = values >= 1 << 29
    scaled = np.where(is_large, values >> 2, values)
    exponents = np.where(is_large, -12, -11)
    for _ in range(13):
        is_small = scaled < 1 << 27
        scaled, exponents = np.where(is_small, scaled << 2, scaled), exponents + is_small
    half = rounding_shift_right(scaled >> 1, 1)
    x = np.full(values.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = _saturating_shift_left(high_multiply(high_multiply(x, x), x), 6)
        x = _saturating_shift_left(high_multiply(3 << 27, x) - high_multiply(half, cube), 3)
    multipliers = high_multiply(x, SQRT_HALF) << np.maximum(exponents, 0)
    is_one = values <= 1
    return np.where(is_one, INT32_MAX, multipliers), np.where(is_one, 0, np.minimum(exponents, 0))


def inverse_root(values: Int64) -> Int64:
    """1/sqrt of integers with 20 fractional bits."""
    multipliers, exponents = inverse_square_root(values)
    return double_round(1, multipliers, exponents + ROOT_BITS, 0)
