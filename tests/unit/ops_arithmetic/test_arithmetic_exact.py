"""Correct rounding of exp and tanh to float32, against double precision and by bounds."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from bytewright.ops.arithmetic.exact import (
    _ERFC_DIGITS,
    _erfc,
    erfc_single,
    exp_single,
    expm1_single,
    log_single,
    round_to_single,
    tanh_single,
)


def neighbours(value: float) -> tuple[float, float]:
    single = np.float32(value)
    return float(np.nextafter(single, np.float32(-np.inf))), float(np.nextafter(single, np.float32(np.inf)))


@pytest.mark.parametrize(
    ("function", "double"),
    [
        (exp_single, math.exp),
        (tanh_single, math.tanh),
        (expm1_single, math.expm1),
        (erfc_single, math.erfc),
        (lambda x: log_single(abs(x)), lambda x: math.log(abs(x))),
    ],
)
def test_nearest_float32(function, double) -> None:
    """No other float32 is nearer to the double-precision value, up to that value's own error."""
    generator = np.random.default_rng(1)
    points = np.concatenate([generator.uniform(-20, 20, 300), 2.0 ** generator.uniform(-30, 4, 100)])
    for x in points.astype(np.float32).tolist():
        result, truth = function(x), double(x)
        below, above = neighbours(result)
        tolerance = 4 * math.ulp(truth)
        assert abs(result - truth) <= min(abs(below - truth), abs(above - truth)) + tolerance


def test_special_values() -> None:
    assert exp_single(0.0) == 1.0
    assert exp_single(200.0) == math.inf
    assert exp_single(-200.0) == 0.0
    assert exp_single(-103.0) == 2.0**-149
    assert exp_single(88.75) == math.inf
    assert math.isfinite(exp_single(88.5))
    assert tanh_single(0.0) == 0.0
    assert tanh_single(30.0) == 1.0
    assert tanh_single(-30.0) == -1.0
    assert tanh_single(2.0**-30) == 2.0**-30


def test_special_values_of_the_others() -> None:
    assert (expm1_single(0.0), expm1_single(-200.0), expm1_single(200.0)) == (0.0, -1.0, math.inf)
    assert (log_single(1.0), erfc_single(0.0)) == (0.0, 1.0)
    assert (erfc_single(11.0), erfc_single(-11.0)) == (0.0, 2.0)
    assert erfc_single(10.05) == 2.0**-149  # 7.6e-46, more than half of it
    assert erfc_single(10.06) == 0.0


def test_erfc_with_all_its_digits() -> None:
    """The long way agrees with double precision, where the quick one would have taken that."""
    for x in (-3.0, -0.5, 0.25, 2.0, 5.0, 9.5):
        assert float(_erfc(Decimal(x), _ERFC_DIGITS)) == pytest.approx(math.erfc(x), rel=1e-14)


def test_round_to_single_is_numpys_rounding() -> None:
    generator = np.random.default_rng(2)
    for value in (generator.normal(size=200) * 2.0 ** generator.uniform(-150, 120, 200)).tolist():
        assert round_to_single(Fraction(value)) == float(np.float32(value))
    assert round_to_single(Fraction(1) + Fraction(1, 1 << 24)) == 1.0, "ties to even"
    assert round_to_single(Fraction(1) + Fraction(3, 1 << 24)) == 1.0 + 2.0**-22
    assert round_to_single(Fraction(2) ** 128) == math.inf
