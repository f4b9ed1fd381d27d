"""Convolutions and fully connected layers: multiplier, rounding and clamp, against both references."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from arithmetic_models import BOTH, accumulators, on_line, run, single, to_int8
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bytewright.ops.arithmetic.fit import fit_linear
from bytewright.ops.arithmetic.multiplier import (
    INT32_MAX,
    INT32_MIN,
    Multiplier,
    activation_range,
    convolution_scale,
    quantize_multiplier,
    require_left_shift,
    round_half_away,
)
from bytewright.ops.arithmetic.numerics import Numerics, Rounding, convolution_rounding
from bytewright.ops.arithmetic.rescale import (
    double_round,
    high_multiply,
    real_round,
    rounding_shift_right,
    single_round,
)

OPERATORS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
COUNT = 400


def scales_of(kind: str, generator: np.random.Generator) -> tuple[float, np.ndarray, float]:
    """Input, weight and output scales: powers of two give exact ties, the others near ones."""
    if kind == "powers of two":
        exponents = generator.integers(4, 14, size=COUNT)
        return (
            2.0 ** -int(generator.integers(0, 6)),
            2.0**-exponents,
            2.0 ** -int(generator.integers(0, 6)),
        )
    low, high = {"usual": (-16, -4), "tiny": (-30, -18), "above one": (0, 3)}[kind]
    weights = (2.0 ** generator.uniform(low, high, size=COUNT)).astype(np.float32).astype(np.float64)
    return single(2.0 ** generator.uniform(-8, 0)), weights, single(2.0 ** generator.uniform(-6, 1))


def near_ties(factors: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Accumulators next to the boundary between two outputs, within 32 bits."""
    levels = generator.integers(-126, 126, size=COUNT) + 0.5
    offsets = generator.integers(-1, 2, size=COUNT)
    return np.clip(np.round(levels / factors) + offsets, INT32_MIN, INT32_MAX).astype(np.int64)


def rounded(rounding: Rounding, values: np.ndarray, factors: np.ndarray) -> np.ndarray:
    if rounding is Rounding.REAL_ROUND:
        return real_round(values, factors)
    multipliers = [quantize_multiplier(float(factor)) for factor in factors]
    columns = [
        np.array([getattr(m, name) for m in multipliers])
        for name in ("multiplier", "left_shift", "right_shift")
    ]
    return double_round(values, *columns)


@pytest.mark.parametrize("kind", ["powers of two", "usual", "tiny", "above one"])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("operator", OPERATORS)
def test_layer_equals_the_reference_at_ties(operator: str, per_channel: bool, kind: str) -> None:
    generator = np.random.default_rng(17)
    for _ in range(3):
        input_scale, weights, output_scale = scales_of(kind, generator)
        weights = weights if per_channel else np.full(COUNT, weights[0])
        factors = np.array([convolution_scale(input_scale, w, output_scale) for w in weights])
        values = near_ties(factors, generator)
        zero_point = int(generator.integers(-20, 20))
        scales = (input_scale, weights if per_channel else weights[:1], output_scale)
        model, x = accumulators(operator, values, scales, zero_point)
        for numerics in BOTH:
            expected = rounded(convolution_rounding(operator, numerics), values, factors)
            actual = run(numerics, model, x).ravel()
            np.testing.assert_array_equal(actual, to_int8(expected, zero_point, -128, 127), str(numerics))


def test_the_ties_tell_the_roundings_apart() -> None:
    """The comparison above can fail: on its inputs the other formulas give other results."""
    generator = np.random.default_rng(17)
    apart = {"double and real": 0, "single and real": 0, "products in float32 and double": 0}
    for kind in ("powers of two", "usual", "tiny"):
        input_scale, weights, output_scale = scales_of(kind, generator)
        factors = np.array([convolution_scale(input_scale, w, output_scale) for w in weights])
        values = near_ties(factors, generator)
        doubled = rounded(Rounding.DOUBLE_ROUND, values, factors)
        real = rounded(Rounding.REAL_ROUND, values, factors)
        quantized = [quantize_multiplier(float(f)) for f in factors]
        columns = (
            np.array([m.multiplier for m in quantized]),
            np.array([31 - m.exponent for m in quantized]),
        )
        product = np.float32(input_scale) * weights.astype(np.float32)
        single_products = rounded(Rounding.DOUBLE_ROUND, values, product.astype(np.float64) / output_scale)
        apart["double and real"] += int(np.sum(doubled != real))
        apart["single and real"] += int(np.sum(single_round(values, *columns) != real))
        apart["products in float32 and double"] += int(np.sum(single_products != doubled))
    assert min(apart.values()) > 10, apart


@pytest.mark.parametrize("numerics", BOTH)
def test_largest_accumulators_and_vanishing_scales(numerics: Numerics) -> None:
    """Exponents of -31 and below, at the ends of int32: below -31 the factor is zero."""
    exponents = np.arange(-38, -26)
    weights = np.repeat(2.0**exponents * 0.75, 2)
    values = np.tile(np.array([INT32_MIN, INT32_MAX]), len(exponents))
    for operator in OPERATORS:
        model, x = accumulators(operator, values, (1.0, weights, 1.0))
        expected = rounded(convolution_rounding(operator, numerics), values, weights)
        np.testing.assert_array_equal(run(numerics, model, x).ravel(), to_int8(expected, 0, -128, 127))


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize(("activation", "bound"), [("RELU6", 6.0), ("RELU_N1_TO_1", 1.0), ("RELU", 0.0)])
def test_activation_range_at_ties(activation: str, bound: float, numerics: Numerics) -> None:
    """Output scales whose quotient with the bound is next to a half: the division is in float32."""
    float32_matters = 0
    for level in range(0, 120, 5):
        scale = np.float32((bound or 1.0) / (level + 0.5))
        for output_scale in (np.nextafter(scale, np.float32(0)), scale, np.nextafter(scale, np.float32(9))):
            zero_point = -128 if activation == "RELU6" else -level // 2
            values = np.array([100000, -100000])
            scales = (1.0, np.array([1.0]), float(output_scale))
            model, x = accumulators("CONV_2D", values, scales, zero_point, activation)
            low, high = activation_range(activation, float(output_scale), zero_point)
            assert run(numerics, model, x).ravel().tolist() == [high, low]
            double = round_half_away(Fraction(bound) / Fraction(float(output_scale)))
            float32_matters += bound > 0 and min(127, zero_point + double) != high
    assert float32_matters > 0 or activation == "RELU"


def test_quantize_multiplier() -> None:
    assert quantize_multiplier(0.0) == Multiplier(0, 0)
    assert quantize_multiplier(1.0) == Multiplier(1 << 30, 1)
    assert quantize_multiplier(-0.5) == Multiplier(-(1 << 30), 0)
    assert quantize_multiplier(1.0 - 2.0**-40) == Multiplier(1 << 30, 1), "rounding up to 2**31 carries"
    assert quantize_multiplier(2.0**-32) == Multiplier(1 << 30, -31)
    assert quantize_multiplier(math.nextafter(2.0**-32, 0)) == Multiplier(1 << 30, -31)
    assert quantize_multiplier(2.0**-33) == Multiplier(0, 0)
    assert quantize_multiplier(0.5 + 2.0**-32) == Multiplier((1 << 30) + 1, 0), "half away from zero"
    with pytest.raises(ValueError, match="finite"):
        quantize_multiplier(math.inf)


def test_require_left_shift() -> None:
    require_left_shift(Multiplier(1 << 30, 3), (1 << 28) - 1, "ADD")
    with pytest.raises(ValueError, match=r"ADD: .* overflows 32 bits"):
        require_left_shift(Multiplier(1 << 30, 3), 1 << 28, "ADD")
    require_left_shift(Multiplier(1 << 30, -3), INT32_MAX, "ADD")


@given(st.integers(INT32_MIN, INT32_MAX), st.integers(0, INT32_MAX), st.integers(0, 31))
@settings(max_examples=300, deadline=None)
def test_double_round_is_two_exact_roundings(value: int, multiplier: int, shift: int) -> None:
    high = math.floor(Fraction(value * multiplier, 1 << 31) + Fraction(1, 2))
    assert int(high_multiply(value, multiplier)) == high
    assert int(rounding_shift_right(high, shift)) == round_half_away(Fraction(high, 1 << shift))
    assert int(double_round(value, multiplier, 0, shift)) == round_half_away(Fraction(high, 1 << shift))


def test_high_multiply_saturates() -> None:
    assert int(high_multiply(INT32_MIN, INT32_MIN)) == INT32_MAX


@given(st.integers(INT32_MIN, INT32_MAX), st.floats(2.0**-40, 2.0**8))
@settings(max_examples=300, deadline=None)
def test_real_round_rounds_the_double_product(value: int, scale: float) -> None:
    assert int(real_round(value, scale)) == round_half_away(Fraction(value * scale))


def test_real_round_just_below_a_half() -> None:
    """Where adding 0.5 in double precision would round up."""
    assert int(real_round(1, math.nextafter(0.5, 0))) == 0
    assert int(real_round(-1, 0.5)) == -1


@st.composite
def linear_cases(draw: st.DrawFn) -> tuple[float, int, int, int]:
    simple = st.builds(
        lambda a, b, e: a / b * 2.0**e, st.integers(1, 9), st.integers(1, 40), st.integers(-20, 0)
    )
    scale = draw(st.one_of(simple, st.floats(2.0**-30, 4.0)))
    return scale, -draw(st.integers(0, 1 << 30)), draw(st.integers(0, 1 << 30)), draw(st.integers(-128, 127))


@given(linear_cases())
@example((3 / 22, 0, 77, 0))
@settings(max_examples=150, deadline=None)
def test_fit_equals_real_round(case: tuple[float, int, int, int]) -> None:
    scale, low, high, zero_point = case
    outputs = (-128 - zero_point, 127 - zero_point)
    near = np.round((np.arange(outputs[0], outputs[1] + 1) + 0.5) / scale).astype(np.int64)
    values = np.concatenate([near - 2, near - 1, near, near + 1, near + 2, [low, high, 0]])
    values = np.clip(values, low, high)
    fitted = fit_linear(lambda values: real_round(values, scale), (low, high), outputs)
    if fitted is None:
        # Double precision makes a half of a product that is none; of others beside it that are alike it does not.
        products = ((int(value), float(value) * scale) for value in values)
        assert any(real % 1 == 0.5 and Fraction(scale) * value != real for value, real in products)
        return
    assert 0 <= fitted.multiplier < 1 << 31
    assert max(-low, high) * fitted.multiplier + abs(fitted.addend) < 1 << 63
    np.testing.assert_array_equal(
        np.clip(on_line(values, fitted), *outputs),
        np.clip(real_round(values, scale), *outputs),
    )


@pytest.mark.parametrize("scale", [2.0**-6, 1 / 3, 1 / 6, 0.0123, 1.0])
def test_fit_on_every_accumulator(scale: float) -> None:
    values = np.arange(-20000, 20001)
    fitted = fit_linear(lambda points: real_round(points, scale), (-20000, 20000), (-100, 155))
    assert fitted is not None
    np.testing.assert_array_equal(
        np.clip(on_line(values, fitted), -100, 155),
        np.clip(real_round(values, scale), -100, 155),
    )


def test_fit_of_a_constant_and_of_no_line() -> None:
    constant = fit_linear(lambda values: values * 0 + 7, (-50, 50), (-128, 127))
    assert constant is not None
    assert on_line(np.array([-50, 0, 50]), constant).tolist() == [7] * 3
    assert fit_linear(lambda values: np.sign(values) * values**2, (-9, 9), (-128, 127)) is None


def test_litert_fully_connected_as_a_line() -> None:
    """The fitted line against LiteRT itself, on ties of a power-of-two scale."""
    values = np.arange(-300, 300)
    model, x = accumulators("FULLY_CONNECTED", values, (0.5, np.array([0.25]), 0.5))
    fitted = fit_linear(lambda points: real_round(points, 0.25), (-300, 299), (-128, 127))
    assert fitted is not None
    outputs = on_line(values, fitted)
    np.testing.assert_array_equal(run(Numerics.LITERT_REF, model, x).ravel(), outputs)
