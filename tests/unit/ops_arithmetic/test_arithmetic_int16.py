"""int16: biases and roundings of layers, sums, products, interpolated tables, and softmax, against the references.

`meaning` is what the graph's operators give; the references are asked in each test.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from arithmetic_models import BOTH, Array, meaning, run, single
from numpy.typing import NDArray

from bytewright.diagnostics import CompileError
from bytewright.ops.arithmetic.interpolation import sigmoid_table
from bytewright.ops.arithmetic.multiplier import convolution_scale, quantize_multiplier, reduced
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import double_round, real_round, single_round
from support.reference import LiteRt
from tflite_writer import ModelBuilder

ALL_INT16 = np.arange(-(1 << 15), 1 << 15).astype(np.int16)
COUNT = 400
LITERT, TFLM = Numerics.LITERT_REF, Numerics.TFLM


def elementwise(
    operator: str,
    shape: Sequence[int],
    sources: Sequence[float],
    target: float,
    *,
    types: tuple[str, str] = ("int16", "int16"),
    zero_points: tuple[int, int] = (0, 0),
    **options: Any,
) -> bytes:
    """An operator whose inputs and output have one shape."""
    builder = ModelBuilder()
    inputs = [
        builder.tensor(f"x{index}", shape, types[0], scale=scale, zero_point=zero_points[0])
        for index, scale in enumerate(sources)
    ]
    y = builder.tensor("y", shape, types[1], scale=target, zero_point=zero_points[1])
    builder.operator(operator, inputs, [y], **options)
    return builder.build(inputs, [y])


def layer(
    operator: str, bias: NDArray[Any] | None, scales: tuple[float, Array, float], stated: str | None
) -> bytes:
    """A layer of one product a channel, with weights of 1; an input of 0 leaves the biases alone."""
    count = len(scales[1])
    shapes = {
        "FULLY_CONNECTED": ([1, 1], [count, 1], [1, count]),
        "CONV_2D": ([1, 1, 1, 1], [count, 1, 1, 1], [1, 1, 1, count]),
        "DEPTHWISE_CONV_2D": ([1, 1, 1, 1], [1, 1, 1, count], [1, 1, 1, count]),
        "TRANSPOSE_CONV": ([1, 1, 1, 1], [count, 1, 1, 1], [1, 1, 1, count]),
    }
    source, weights, result = shapes[operator]
    axis = 3 if operator == "DEPTHWISE_CONV_2D" else 0
    builder = ModelBuilder()
    x = builder.tensor("x", source, "int16", scale=scales[0], zero_point=0)
    values = np.ones(weights, np.int8)
    w = builder.constant("w", values, scale=scales[1].tolist(), quantized_dimension=axis)
    operands = [x, w]
    if operator == "TRANSPOSE_CONV":
        operands = [builder.constant("shape", np.array(result, np.int32)), w, x]
    if bias is not None:
        bias_scales = (scales[0] * scales[1]).astype(np.float32).tolist()
        operands.append(builder.constant("b", bias, scale=bias_scales))
    y = builder.tensor("y", result, "int16", scale=scales[2], zero_point=0)
    options: dict[str, Any] = {"depth_multiplier": count} if axis else {}
    if stated is not None:
        options["quantized_bias_type"] = stated
    builder.operator(operator, operands, [y], **options)
    return builder.build([x], [y])


def scales_of(kind: str, generator: np.random.Generator) -> tuple[float, Array, float]:
    if kind == "powers of two":
        return 2.0**-3, 2.0 ** -generator.integers(4, 14, COUNT), 2.0**-8
    weights = (2.0 ** generator.uniform(-9, -4, COUNT)).astype(np.float32).astype(np.float64)
    return single(2.0 ** generator.uniform(-12, -4)), weights, single(2.0 ** generator.uniform(-14, -6))


def rounded(form: str, values: Array, factors: Array) -> Array:
    """By the 16-bit multiplier, by two roundings of 32 bits, or in double precision."""
    if form == "real":
        return real_round(values, factors)
    exact = [quantize_multiplier(float(factor)) for factor in factors]
    if form == "16 bits":
        short = [reduced(each) for each in exact]
        return single_round(values, [m.multiplier for m in short], [31 - m.exponent for m in short])
    columns = [[getattr(m, name) for m in exact] for name in ("multiplier", "left_shift", "right_shift")]
    return double_round(values, *columns)


# By operator and type of the bias: the form of each set; None where its kernel does not take the bias.
FORMS = {
    ("CONV_2D", "int64"): ("16 bits", "16 bits"),
    ("CONV_2D", "int32"): ("twice", "twice"),
    ("DEPTHWISE_CONV_2D", "int64"): ("16 bits", "16 bits"),
    ("DEPTHWISE_CONV_2D", "int32"): (None, None),
    ("TRANSPOSE_CONV", "int64"): ("16 bits", "16 bits"),
    ("TRANSPOSE_CONV", "int32"): ("twice", None),
    ("FULLY_CONNECTED", "int64"): ("real", "16 bits"),
    ("FULLY_CONNECTED", "int32"): ("real", "twice"),
}


@pytest.mark.parametrize(("operator", "dtype"), FORMS)
def test_layers_at_ties(operator: str, dtype: str) -> None:
    generator = np.random.default_rng(3)
    stated = None if operator == "DEPTHWISE_CONV_2D" else dtype.upper()
    for kind in ("powers of two", "usual"):
        scales = scales_of(kind, generator)
        factors = np.array([convolution_scale(scales[0], w, scales[2]) for w in scales[1]])
        levels = generator.integers(-32000, 32000, COUNT) + 0.5
        values = np.round(levels / factors).astype(np.int64) + generator.integers(-1, 2, COUNT)
        values = np.clip(values, -(2**31) + 1, 2**31 - 1)
        content = layer(operator, values.astype(dtype), scales, stated)
        x = np.zeros((1,) * (2 if operator == "FULLY_CONNECTED" else 4), np.int16)
        for numerics, form in zip(BOTH, FORMS[operator, dtype], strict=True):
            if form is None:
                with pytest.raises(CompileError):
                    meaning(numerics, content, x)
                continue
            expected = np.clip(rounded(form, values, factors), -32768, 32767)
            np.testing.assert_array_equal(run(numerics, content, x).ravel(), expected)
            np.testing.assert_array_equal(meaning(numerics, content, x).ravel(), expected)


def test_sums_beyond_32_bits() -> None:
    """Biases of 2^40: LiteRT's product in double precision, and the 16-bit multiplier."""
    scales = 2.0**-10, np.full(COUNT, 2.0**-20), 2.0**-5
    values = np.random.default_rng(5).integers(-(2**40), 2**40, COUNT)
    for operator in ("CONV_2D", "FULLY_CONNECTED"):
        content = layer(operator, values, scales, None)
        x = np.full((1,) * (2 if operator == "FULLY_CONNECTED" else 4), 3, np.int16)
        for numerics in BOTH:
            expected = run(numerics, content, x)
            assert len(np.unique(expected)) > COUNT // 2
            np.testing.assert_array_equal(meaning(numerics, content, x), expected)


@pytest.mark.parametrize(("dtype", "stated"), [("int32", None), ("int32", "INT64"), ("int64", "INT32")])
@pytest.mark.parametrize("operator", ["CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"])
def test_an_option_that_disagrees_with_the_bias_is_refused(
    operator: str, dtype: str, stated: str | None
) -> None:
    """LiteRT takes the bytes of one type for the other's; TensorFlow Lite Micro goes by the tensor."""
    scales = scales_of("usual", np.random.default_rng(7))
    content = layer(operator, np.arange(COUNT).astype(dtype), scales, stated)
    x = np.zeros((1,) * (2 if operator == "FULLY_CONNECTED" else 4), np.int16)
    with pytest.raises(CompileError, match="quantized_bias_type"):
        meaning(LITERT, content, x)
    if (operator, dtype) != ("TRANSPOSE_CONV", "int32"):
        np.testing.assert_array_equal(meaning(TFLM, content, x), run(TFLM, content, x))


@pytest.mark.parametrize("stated", [None, "INT32", "INT64"])
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"])
def test_layers_without_a_bias(operator: str, stated: str | None) -> None:
    """The option says how sums are kept. LiteRT's CONV_2D wants a bias."""
    if operator == "DEPTHWISE_CONV_2D" and stated:
        return
    scales = scales_of("usual", np.random.default_rng(9))
    content = layer(operator, None, (scales[0], scales[1], single(scales[0] * 2.0**-9)), stated)
    for x in (np.int16(-31111), np.int16(17777)):
        given = np.full((1,) * (2 if operator == "FULLY_CONNECTED" else 4), x)
        for numerics in BOTH:
            if (operator, numerics) != ("CONV_2D", LITERT):
                expected = run(numerics, content, given)
                np.testing.assert_array_equal(meaning(numerics, content, given), expected)


@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL"])
def test_pairs(operator: str) -> None:
    """At random and, of products, at ties: there the sets' factors part."""
    generator = np.random.default_rng(11)
    options: dict[str, Any] = {} if operator == "MUL" else {"pot_scale_int16": False}
    parted = 0
    for _ in range(4):
        first, second = (single(2.0 ** generator.uniform(-14, -6)) for _ in range(2))
        target = single(first * second * 2.0 ** generator.uniform(10, 16))
        target = target if operator == "MUL" else single(max(first, second) * generator.uniform(0.4, 2))
        a = generator.integers(200, 32768, 60000)
        b = np.round((generator.integers(-32000, 32000, 60000) + 0.5) * target / (first * second) / a)
        b = np.clip(b, -32768, 32767) if operator == "MUL" else generator.integers(-32768, 32768, 60000)
        content = elementwise(operator, [60000], [first, second], target, **options)
        pair = a.astype(np.int16), b.astype(np.int16)
        expected = [run(numerics, content, *pair) for numerics in BOTH]
        parted += int(np.sum(expected[0] != expected[1]))
        for numerics, wanted in zip(BOTH, expected, strict=True):
            np.testing.assert_array_equal(meaning(numerics, content, *pair), wanted)
    assert (parted > 0) == (operator == "MUL")


def test_sums_at_scales_of_two_are_for_the_option() -> None:
    """LiteRT shifts operands whose scales are powers of two unless an option is cleared; equal ones need no shift."""
    x = ALL_INT16, ALL_INT16[::-1].copy()
    for scales in ((2.0**-8, 2.0**-8, 2.0**-8), (2.0**-8, 2.0**-10, 2.0**-7)):
        for is_set in (True, False):
            content = elementwise("ADD", [1 << 16], scales[:2], scales[2], pot_scale_int16=is_set)
            if is_set and len(set(scales)) > 1:
                with pytest.raises(CompileError, match="powers of two"):
                    meaning(LITERT, content, *x)
            else:
                np.testing.assert_array_equal(meaning(LITERT, content, *x), run(LITERT, content, *x))
            np.testing.assert_array_equal(meaning(TFLM, content, *x), run(TFLM, content, *x))


@pytest.mark.parametrize("operator", ["ABS", "LEAKY_RELU", "LOGISTIC", "RELU", "RELU6", "TANH"])
def test_unary_operators_on_every_value(operator: str) -> None:
    generator = np.random.default_rng(13)
    scales = [(2.0**-12, 2.0**-10), (2.0**-11, 2.0**-11), (single(1 / 4096.5), 2.0**-13)]
    scales += [
        (single(2.0 ** generator.uniform(-14, -6)), single(2.0 ** generator.uniform(-14, -6)))
        for _ in range(4)
    ]
    options: dict[str, Any] = {"alpha": 0.3} if operator == "LEAKY_RELU" else {}
    for source, any_target in scales:
        target = 2.0**-15 if operator in ("LOGISTIC", "TANH") else any_target
        content = elementwise(operator, [1 << 16], [source], target, **options)
        for numerics in BOTH:
            expected = run(numerics, content, ALL_INT16)
            np.testing.assert_array_equal(meaning(numerics, content, ALL_INT16), expected)


@pytest.mark.parametrize("alpha", [-0.5, -1.0, -7.5])
def test_negative_slopes_on_every_value(alpha: float) -> None:
    """What is below zero is scaled by the magnitude and then negated, so that ties go the other way."""
    for scales in ((0.05, 0.05), (2.0**-8, 2.0**-7), (0.05, 0.06), (1.5, 3.0)):
        content = elementwise("LEAKY_RELU", (1, 65536), scales[:1], scales[1], alpha=alpha)
        for numerics in BOTH:
            expected = run(numerics, content, ALL_INT16.reshape(1, -1))
            np.testing.assert_array_equal(meaning(numerics, content, ALL_INT16.reshape(1, -1)), expected)


@pytest.mark.parametrize(("operator", "numerics"), [("SQRT", LITERT), ("RSQRT", TFLM)])
def test_roots_of_every_value_that_has_one(operator: str, numerics: Numerics) -> None:
    x = ALL_INT16[ALL_INT16 >= 0].reshape(1, -1)
    for scales in ((0.05, 0.05), (1e-3, 0.002), (2.0**-15, 2.0**-10), (1000.0, 0.01)):
        content = elementwise(operator, x.shape, scales[:1], scales[1])
        np.testing.assert_array_equal(meaning(numerics, content, x), run(numerics, content, x))


@pytest.mark.parametrize("operator", ["EXP", "GELU", "LOG", "RSQRT"])
def test_interpolated_operators_on_every_value(operator: str) -> None:
    """Of LiteRT alone, which ends the run of a root of what is negative. The last scales give LOG lines that wrap."""
    generator = np.random.default_rng(15)
    x = np.maximum(ALL_INT16, 0) if operator == "RSQRT" else ALL_INT16
    scales = [
        (single(2.0 ** generator.uniform(-15, -10)), single(2.0 ** generator.uniform(-14, -8)))
        for _ in range(2)
    ]
    for source, target in [*scales, (2.0**-7 if operator == "LOG" else 2.0**-15, 2.0**-16)]:
        content = elementwise(operator, [1 << 16], [source], target)
        np.testing.assert_array_equal(meaning(LITERT, content, x), run(LITERT, content, x))


def test_no_entry_of_the_logistic_table_is_next_to_a_tie() -> None:
    """So that the last digits of a machine's exponential do not matter."""
    places = np.arange(255) / 24.0
    values = 1 / (1 + np.exp(-places))
    entries = (values + values * (1 - values) * (2 * values - 1) / 9216) * 65536
    distance = np.abs(entries - np.floor(entries) - 0.5)
    assert distance.min() > 1e-4
    np.testing.assert_array_equal(sigmoid_table()[:255].astype(np.int64) + 32768, np.floor(entries + 0.5))


@pytest.mark.parametrize("beta", [1.0, 0.7, 2.5])
@pytest.mark.parametrize("depth", [1, 2, 17, 300])
def test_softmax(depth: int, beta: float) -> None:
    generator = np.random.default_rng(17)
    rows = 1200 // depth + 1
    for _ in range(2):
        scale = single(2.0 ** generator.uniform(-14, -9))
        content = elementwise("SOFTMAX", [rows, depth], [scale], 2.0**-15, beta=beta)
        for spread in (32768, 3000):
            x = generator.integers(-spread, spread, (rows, depth)).astype(np.int16)
            for numerics in BOTH:
                np.testing.assert_array_equal(meaning(numerics, content, x), run(numerics, content, x))


@pytest.mark.parametrize(("source", "target"), [("int16", "int16"), ("int16", "int8"), ("int8", "int16")])
def test_requantised(source: str, target: str) -> None:
    generator = np.random.default_rng(19)
    scales = {"int8": (-8, -1), "int16": (-15, -8)}
    zero_points = {"int8": 11, "int16": 0}
    x = np.arange(-128, 128).astype(np.int8) if source == "int8" else ALL_INT16
    for _ in range(5):
        own, other = (single(2.0 ** generator.uniform(*scales[kind])) for kind in (source, target))
        content = elementwise(
            "QUANTIZE",
            [x.size],
            [own],
            other,
            types=(source, target),
            zero_points=(zero_points[source], zero_points[target]),
        )
        for numerics in BOTH:
            np.testing.assert_array_equal(meaning(numerics, content, x), run(numerics, content, x))


def test_floats_at_the_border() -> None:
    generator = np.random.default_rng(21)
    scale = single(2.0 ** generator.uniform(-14, -6))
    levels = (generator.integers(-33000, 33000, 30000) + 0.5).astype(np.float32)
    values = np.append(np.float32(scale) * levels, generator.normal(0, 20000 * scale, 9).astype(np.float32))
    content = elementwise("QUANTIZE", [values.size], [scale], scale, types=("float32", "int16"))
    back = elementwise("DEQUANTIZE", [1 << 16], [scale], 1.0, types=("int16", "float32"))
    for numerics in BOTH:
        np.testing.assert_array_equal(meaning(numerics, content, values), run(numerics, content, values))
        np.testing.assert_array_equal(meaning(numerics, back, ALL_INT16), run(numerics, back, ALL_INT16))


def test_a_zero_point_that_is_not_0_is_refused() -> None:
    """As LiteRT refuses it."""
    content = elementwise("DEQUANTIZE", [8], [0.5], 1.0, types=("int16", "float32"), zero_points=(3, 0))
    with pytest.raises(CompileError, match="zero point 3, which is not 0"):
        meaning(LITERT, content, ALL_INT16[:8])
    with pytest.raises(RuntimeError, match="zero_point"):
        LiteRt(content)
