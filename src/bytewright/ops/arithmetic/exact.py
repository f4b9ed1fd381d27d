"""Transcendental functions of float32 values, correctly rounded to float32 on every machine.

`decimal` computes `exp` and `ln` with a given number of digits and a correct last one, in integers; what remains is one
rounding to 24 bits, done in integers too. A C library's `expf` and `tanhf` may be off by a unit in the last
place, differently on different machines; so the double of its `erfc` serves only where thousands of such units would
round alike.
"""

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

_QUICK_DIGITS = decimal.Context(prec=34, Emin=-(10**6), Emax=10**6)
"""Enough for nearly every value; the rest is done again with `_DIGITS`."""
_QUICK_MARGIN = 2.0**-50
"""Relative distance of a quick result, as a double, from the true one: far more than it can be."""
_DIGITS = decimal.Context(prec=60, Emin=-(10**6), Emax=10**6)
_FLOAT32_DIGITS = 24
_FLOAT32_MIN_EXPONENT = -149
_FLOAT32_MAX = (2 - Fraction(1, 1 << 23)) * (1 << 127)
_ERFC_MARGIN = 2.0**-40
"""Relative distance of a C library's `erfc`, in double, from the true one: far more than it can be."""
_ERFC_DIGITS = decimal.Context(prec=120, Emin=-(10**6), Emax=10**6)
"""Enough for the 45 that `1 - erf` loses where float32 ends, and as many as `_DIGITS` besides."""
_EXP_OVERFLOW = 89.0
"""Above this, exp exceeds every float32."""
_TANH_LINEAR = 1e-6
"""Below this, tanh(x) = x - x**3/3 is as precise as the 60 digits are good for, and so are the first terms of expm1."""
_ERFC_UNDERFLOW = 10.1
"""Above this, erfc is less than half of the least float32."""


def round_to_single(value: Fraction) -> float:
    """The float32 nearest to an exact value, ties to even, as a Python float; infinite above the range."""
    magnitude = abs(value)
    if magnitude == 0:
        return 0.0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - _FLOAT32_DIGITS + 1, _FLOAT32_MIN_EXPONENT)
    rounded = round(magnitude / unit) * unit
    result = math.inf if rounded > _FLOAT32_MAX else float(rounded)
    return result if value > 0 else -result


def _correctly_rounded(function: Callable[[decimal.Context], decimal.Decimal]) -> float:
    """The float32 nearest to a value that is computed with as many digits as it takes."""
    quick = _if_certain(float(function(_QUICK_DIGITS)), _QUICK_MARGIN)
    return quick if quick is not None else round_to_single(Fraction(function(_DIGITS)))


def _if_certain(value: float, margin: float) -> float | None:
    """The float32 nearest to what a value is relatively so near to; None where that cannot be told."""
    if 2.0**-126 <= abs(value) < 2.0**127:
        low, high = (np.float32(value * factor) for factor in (1 - margin, 1 + margin))
        if low == high:
            return float(low)
    return None


def exp_single(x: float) -> float:
    """The exponential of a float32 value, correctly rounded to float32."""
    if x > _EXP_OVERFLOW:
        return math.inf
    if x < -_EXP_OVERFLOW - 20:
        return 0.0
    return _correctly_rounded(lambda digits: digits.exp(decimal.Decimal(x)))


def tanh_single(x: float) -> float:
    """The hyperbolic tangent of a float32 value, correctly rounded to float32."""
    exact = Fraction(x)
    magnitude = abs(x)
    if magnitude > 20:
        return math.copysign(1.0, x)
    if magnitude < _TANH_LINEAR:
        return round_to_single(exact - exact**3 / 3)

    def quotient(digits: decimal.Context) -> decimal.Decimal:
        decay = digits.exp(decimal.Decimal(-2 * magnitude))
        return digits.divide(digits.subtract(1, decay), digits.add(1, decay))

    return math.copysign(_correctly_rounded(quotient), x)


def expm1_single(x: float) -> float:
    """exp(x) - 1 of a float32 value, correctly rounded to float32."""
    exact = Fraction(x)
    if abs(x) < _TANH_LINEAR:
        return round_to_single(exact + exact**2 / 2 + exact**3 / 6)
    if x > _EXP_OVERFLOW:
        return math.inf
    if x < -_EXP_OVERFLOW:
        return -1.0
    return _correctly_rounded(lambda digits: digits.subtract(digits.exp(decimal.Decimal(x)), 1))


def log_single(x: float) -> float:
    """The natural logarithm of a positive float32 value, correctly rounded to float32."""
    return 0.0 if x == 1.0 else _correctly_rounded(lambda digits: digits.ln(decimal.Decimal(x)))


def erfc_single(x: float) -> float:
    """The complementary error function of a float32 value, correctly rounded to float32."""
    if x > _ERFC_UNDERFLOW:
        return 0.0
    if x < -_ERFC_UNDERFLOW:
        return 2.0
    quick = _if_certain(math.erfc(x), _ERFC_MARGIN)
    return quick if quick is not None else round_to_single(Fraction(_erfc(decimal.Decimal(x), _ERFC_DIGITS)))


def _erfc(x: decimal.Decimal, digits: decimal.Context) -> decimal.Decimal:
    """erf(x) = 2/sqrt(pi) exp(-x^2) (x + 2 x^3/3 + 4 x^5/15 + ...), whose terms have one sign."""
    twice_square = digits.multiply(2, digits.multiply(x, x))
    term = total = x
    odd = 1
    while abs(term) > abs(total).scaleb(-digits.prec):
        odd += 2
        term = digits.divide(digits.multiply(term, twice_square), odd)
        total = digits.add(total, term)
    decay = digits.exp(digits.minus(digits.multiply(x, x)))
    erf = digits.divide(digits.multiply(digits.multiply(2, decay), total), digits.sqrt(_pi(digits)))
    return digits.subtract(1, erf)


def _pi(digits: decimal.Context) -> decimal.Decimal:
    """Machin's formula: 16 arctan(1/5) - 4 arctan(1/239), in integers with ten digits to spare."""
    unit = 10 ** (digits.prec + 10)

    def arctan_of_inverse(n: int) -> int:
        power = total = unit // n
        k = 1
        while power:
            power //= -n * n
            k += 2
            total += power // k
        return total

    pi = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
    return digits.divide(decimal.Decimal(pi), unit)
