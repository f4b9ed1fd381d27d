"""gemmlowp's fixed-point exp, logistic and tanh, as the references have them; a logarithm and a root of 32 bits.

A raw int32 in format Qi.(31-i) stands for `raw / 2**(31-i)`, a raw int16 in Qi.(15-i) for `raw / 2**(15-i)`. The
sequences of operations below are those of gemmlowp's `fixedpoint.h` and give the same bits; each is plain 32-bit
integer work apart from the 64-bit product in `high_multiply`, so C99 does it without floating point.
"""

from collections.abc import Callable
from dataclasses import dataclass

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


FARTHEST_BITS = 5
"""The exponential of what is below -2^5 is 0."""


@dataclass(frozen=True, slots=True)
class Width:
    """Numbers of 32 or of 16 bits.

    Attributes:
        bits: Of a fraction, beside its sign.
        multiply: The product of two fractions, rounded half up.
    """

    bits: int
    multiply: Callable[[Int64, Int64 | int], Int64]

    @property
    def greatest(self) -> int:
        """What stands for 1."""
        return (1 << self.bits) - 1

    def constant(self, value: int) -> int:
        """A constant of 32 bits, rounded."""
        return int(rounding_shift_right(value, WIDE.bits - self.bits))

    def saturate(self, values: Int64) -> Int64:
        """The nearest values that there are."""
        return np.clip(values, -self.greatest - 1, self.greatest)


WIDE = Width(31, high_multiply)


def _saturating_shift_left(values: Int64, bits: int) -> Int64:
    return WIDE.saturate(values << bits)


def _exp_near_zero(values: Int64, width: Width) -> Int64:
    """The exponential on [-1/4, 0) of fractions: a polynomial around -1/8."""
    x = values + (1 << width.bits - 3)
    x2 = width.multiply(x, x)
    x3, x4 = width.multiply(x2, x), width.multiply(x2, x2)
    cubic = width.multiply(rounding_shift_right(x4, 2) + x3, width.constant(ONE_THIRD))
    tail = rounding_shift_right(cubic + x2, 1)
    around = width.constant(EXP_MINUS_ONE_EIGHTH)
    return width.saturate(around + width.multiply(x + tail, around))


def exp_on_negative_values(values: Int64, integer_bits: int, width: Width = WIDE) -> Int64:
    """The exponential, a fraction, of values <= 0 with so many integer bits; exp(0) is the greatest fraction.

    The value is split into a multiple of -1/4 and a rest in [-1/4, 0); the multiple's exponential is a product
    of constants, one for each bit that is set.
    """
    first_bit = width.bits - integer_bits - 2
    quarter = 1 << first_bit
    rest = (values & (quarter - 1)) - quarter
    result = _exp_near_zero(width.saturate(rest << integer_bits), width)
    quarters = (rest - values) >> first_bit
    for bit, constant in enumerate(EXP_OF_MINUS_POWERS):
        result = np.where((quarters >> bit) & 1, width.multiply(result, width.constant(constant)), result)
    if integer_bits > FARTHEST_BITS:
        result = np.where(values < -(1 << (width.bits + FARTHEST_BITS - integer_bits)), 0, result)
    return np.where(values == 0, width.greatest, result)


def reciprocal_of_mean_with_one(values: Int64, width: Width = WIDE) -> Int64:
    """1 / ((1 + a) / 2) for fractions a in [0, 1], with two integer bits: three Newton steps from a linear guess."""
    half_sum = (values + width.greatest + 1) >> 1
    slope = width.constant(MINUS_THIRTY_TWO_OVER_SEVENTEEN)
    x = width.constant(FORTY_EIGHT_OVER_SEVENTEEN) + width.multiply(half_sum, slope)
    for _ in range(3):
        error = (1 << width.bits - 2) - width.multiply(half_sum, x)
        x = x + width.saturate(width.multiply(x, error) << 2)
    return x


def one_over_one_plus(values: Int64, width: Width = WIDE) -> Int64:
    """1 / (1 + a) for fractions a in [0, 1], as a fraction."""
    return width.saturate(reciprocal_of_mean_with_one(values, width) << 1)


def logistic(values: Int64, integer_bits: int = 4, width: Width = WIDE) -> Int64:
    """The logistic function of numbers with so many integer bits, as fractions."""
    upper_half = one_over_one_plus(exp_on_negative_values(-np.abs(values), integer_bits, width), width)
    result = np.where(values > 0, upper_half, width.greatest - upper_half)
    return np.where(values == 0, 1 << width.bits - 1, result)


def tanh(values: Int64, integer_bits: int = 4, width: Width = WIDE) -> Int64:
    """The hyperbolic tangent of numbers with so many integer bits, as fractions."""
    decay = exp_on_negative_values(-np.abs(values), integer_bits + 1, width)
    magnitude = width.saturate((reciprocal_of_mean_with_one(decay, width) - (1 << width.bits - 2)) << 2)
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
