"""Transcendental functions of float32 values, correctly rounded to float32 on every machine.

`decimal` computes `exp` with a given number of digits and a correct last one, in integers; what remains is one
rounding to 24 bits, done in integers too. A C library's `expf` and `tanhf` may be off by a unit in the last
place, differently on different machines.
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
_EXP_OVERFLOW = 89.0
"""Above this, exp exceeds every float32."""
_TANH_LINEAR = 1e-6
"""Below this, tanh(x) = x - x**3/3 is as precise as the 60 digits are good for."""


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
    quick = float(function(_QUICK_DIGITS))
    if 2.0**-126 <= abs(quick) < 2.0**127:
        low, high = (np.float32(quick * factor) for factor in (1 - _QUICK_MARGIN, 1 + _QUICK_MARGIN))
        if low == high:
            return float(low)
    return round_to_single(Fraction(function(_DIGITS)))


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
