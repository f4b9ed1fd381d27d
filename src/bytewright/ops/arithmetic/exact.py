"""Transcendental functions of float32 values, correctly rounded to float32 on every machine.

`decimal` computes `exp` with a given number of digits and a correct last one, in integers; what remains is one
rounding to 24 bits, done in integers too. A C library's `expf` and `tanhf` may be off by a unit in the last
place, differently on different machines.
"""

import decimal
import math
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


def _exp(value: Fraction | float) -> Fraction:
    exact = Fraction(value)
    argument = _DIGITS.divide(decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator))
    return Fraction(_DIGITS.exp(argument))


def _settled(value: decimal.Decimal) -> float | None:
    """The float32 that a quick result rounds to, unless its error could change that."""
    double = float(value)
    if not 2.0**-126 <= abs(double) < 2.0**127:
        return None
    low, high = (np.float32(double * factor) for factor in (1 - _QUICK_MARGIN, 1 + _QUICK_MARGIN))
    return float(low) if low == high else None


def exp_single(x: float) -> float:
    """The exponential of a float32 value, correctly rounded to float32."""
    if x > _EXP_OVERFLOW:
        return math.inf
    if x < -_EXP_OVERFLOW - 20:
        return 0.0
    quick = _settled(_QUICK_DIGITS.exp(decimal.Decimal(x)))
    return round_to_single(_exp(x)) if quick is None else quick


def tanh_single(x: float) -> float:
    """The hyperbolic tangent of a float32 value, correctly rounded to float32."""
    exact = Fraction(x)
    magnitude = abs(exact)
    if magnitude > 20:
        result = Fraction(1)
    elif magnitude < _TANH_LINEAR:
        result = magnitude - magnitude**3 / 3
    else:
        quick = _quick_tanh(x)
        if quick is not None:
            return quick
        decay = _exp(-2 * magnitude)
        result = (1 - decay) / (1 + decay)
    return round_to_single(result if exact >= 0 else -result)


def _quick_tanh(x: float) -> float | None:
    """The hyperbolic tangent of a value of ordinary size; None where more digits are needed."""
    decay = _QUICK_DIGITS.exp(decimal.Decimal(-2 * abs(x)))
    value = _QUICK_DIGITS.divide(_QUICK_DIGITS.subtract(1, decay), _QUICK_DIGITS.add(1, decay))
    return _settled(value if x >= 0 else value.copy_negate())
