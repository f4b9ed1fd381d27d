"""Operators of two int8 operands on all 65536 pairs of inputs, against both references."""

from __future__ import annotations

import numpy as np
import pytest
from arithmetic_models import ALL_INT8, BOTH, Quantization, elementwise, meaning, run, single

from bytewright.diagnostics import CompileError
from bytewright.ops.arithmetic.numerics import Numerics
from support.tiers import THOROUGH
from tflite_writer import ModelBuilder

FIRST, SECOND = np.repeat(ALL_INT8, 256)[None], np.tile(ALL_INT8, 256)[None]
SHAPE = [1, 65536]
NUM_TRIALS = 40 if THOROUGH else 5
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def quantisations(operator: str) -> list[list[Quantization]]:
    """Of both operands and of the result, powers of two among them."""
    generator = np.random.default_rng(len(operator))
    found: list[list[Quantization]] = []
    for trial in range(NUM_TRIALS):
        scales = [single(2.0 ** generator.uniform(-8, -0.01)) for _ in range(3)]
        if trial % 3 == 0:
            scales = [2.0 ** -int(generator.integers(1, 8)) for _ in range(3)]
        if trial % 2:
            scales[1] = scales[0]
        if operator in ("SQUARED_DIFFERENCE", "PRELU"):  # spread over the result's values, with ties
            scales[2] = single(scales[0] * scales[1] * 2.0 ** (trial + generator.integers(0, 2) / 2))
        found.append([(scale, int(generator.integers(-128, 128))) for scale in scales])
    return found


def comparison(operator: str, sources: list[Quantization]) -> bytes:
    builder = ModelBuilder()
    inputs = [
        builder.tensor(f"x{i}", SHAPE, "int8", scale=s, zero_point=z) for i, (s, z) in enumerate(sources)
    ]
    builder.operator(operator, inputs, [output := builder.tensor("y", SHAPE, "bool")])
    return builder.build(inputs, [output])


@pytest.mark.parametrize("operator", ["SQUARED_DIFFERENCE", "PRELU", "MAXIMUM", "MINIMUM", *COMPARISONS])
def test_every_pair(operator: str) -> None:
    for first, second, output in quantisations(operator):
        model = comparison(operator, [first, second])
        if operator not in COMPARISONS:
            model = elementwise(operator, SHAPE, [first, second], output)
        for numerics in BOTH:
            found = meaning(numerics, model, FIRST, SECOND)
            np.testing.assert_array_equal(
                found, run(numerics, model, FIRST, SECOND), f"{operator} {numerics} {first} {second} {output}"
            )


@pytest.mark.parametrize("numerics", BOTH)
def test_quotients(numerics: Numerics) -> None:
    """Every pair but where the references shift by more than 31 bits, or divide by zero."""
    generator = np.random.default_rng(9)
    for trial in range(NUM_TRIALS):
        scales = [single(2.0 ** generator.uniform(-7, 0)) for _ in range(2)]
        scales.append(single(scales[0] / scales[1] * 2.0 ** generator.uniform(-9, 3)))
        first, second, output = ((scale, int(generator.integers(-128, 128))) for scale in scales)
        model = elementwise(
            "DIV", SHAPE, [first, second], output, activation="RELU6" if trial % 2 else "NONE"
        )
        divisors = np.where(second[1] == SECOND, SECOND ^ np.int8(1), SECOND)
        numerator = FIRST.astype(np.int64) - first[1]
        divisor = divisors.astype(np.int64) - second[1]
        signed = np.where(divisor < 0, -numerator, numerator)
        lengths = [
            np.frexp(n.astype(float))[1] for n in (np.where(signed < 0, -1 - signed, signed), np.abs(divisor))
        ]
        exponent = np.frexp(float(np.float32(scales[0]) / np.float32(single(scales[1] * scales[2]))))[1]
        is_defined = lengths[1] - 1 + 31 - lengths[0] - exponent <= 31
        assert np.mean(is_defined) > 0.1
        found, actual = (by(numerics, model, FIRST, divisors) for by in (meaning, run))
        np.testing.assert_array_equal(found[is_defined], actual[is_defined], f"{first} {second} {output}")


def test_quotients_that_the_references_leave_undefined() -> None:
    """By hand: 1/200 is 0, 100/0 is 100/1, and so is 0/0."""
    model = elementwise("DIV", [1, 4], [(1.0, 0), (1.0, -100)], (1.0, 7))
    first, second = (np.array([values], np.int8) for values in ([1, 100, 0, -30], [100, -100, -100, -97]))
    assert meaning(Numerics.TFLM, model, first, second).tolist() == [[7, 107, 7, -3]]


def test_prelu_next_to_ties() -> None:
    """Output scales at which one product is nearly a tie, where factors in single and in double may part."""
    generator = np.random.default_rng(12)
    for _ in range(10):
        first, second = (single(2.0 ** generator.uniform(-6, 0)) for _ in range(2))
        level = int(generator.integers(20, 128)) + 0.5
        quantisations = (first, 127), (second, -128), (single(first * second * 255 * 127 / level), 127)
        model = elementwise("PRELU", SHAPE, list(quantisations[:2]), quantisations[2])
        for numerics in BOTH:
            expected = run(numerics, model, FIRST, SECOND)
            np.testing.assert_array_equal(meaning(numerics, model, FIRST, SECOND), expected)


@pytest.mark.parametrize(
    ("numerics", "count"), [(numerics, count) for numerics in BOTH for count in (1, 7, 60)]
)
def test_sums(numerics: Numerics, count: int) -> None:
    """Half of the output scales make every second sum a tie; the sets differ there."""
    generator = np.random.default_rng(count)
    values = generator.integers(-128, 128, (count, 400)).astype(np.int8)
    for trial in range(6):
        scale, zero_points = single(2.0 ** generator.uniform(-7, 0)), generator.integers(-128, 128, 2)
        target = single(scale * (2 * count if trial % 2 else count * generator.uniform(0.3, 3)))
        builder = ModelBuilder()
        x = builder.tensor("x", values.shape, "int8", scale=scale, zero_point=int(zero_points[0]))
        y = builder.tensor("y", [400], "int8", scale=target, zero_point=int(zero_points[1]))
        builder.operator("SUM", [x, builder.constant("axes", np.array([0], np.int32))], [y])
        model = builder.build([x], [y])
        np.testing.assert_array_equal(meaning(numerics, model, values), run(numerics, model, values))


@pytest.mark.parametrize("numerics", BOTH)
def test_log_softmax(numerics: Numerics) -> None:
    generator = np.random.default_rng(3)
    for depth in (1, 2, 10, 64, 700):
        scale = single(2.0 ** generator.uniform(-9, 2))
        spread = generator.choice([1.0, 0.3, 0.05], (60, 1))
        values = (generator.integers(-128, 128, (60, depth)) * spread).astype(np.int8)
        model = elementwise("LOG_SOFTMAX", [60, depth], [(scale, 5)], (1 / 16, 127))
        np.testing.assert_array_equal(meaning(numerics, model, values), run(numerics, model, values))


@pytest.mark.parametrize(
    ("operator", "first", "output", "text"),
    [
        ("SQUARED_DIFFERENCE", (2.0, 0), (2.0**-11, 0), "not below 1"),
        ("GREATER", (1.0, 0), None, "not below 1"),
        ("EQUAL", (3.5, 0), None, "not below 1"),
        ("PRELU", (2.0**20, 0), (2.0**-20, 0), "leaves 32 bits"),
    ],
)
def test_what_the_references_do_not_survive(
    operator: str, first: Quantization, output: Quantization | None, text: str
) -> None:
    sources = [first, (0.5, 3)]
    model = comparison(operator, sources) if output is None else elementwise(operator, SHAPE, sources, output)
    with pytest.raises(CompileError, match=text):
        meaning(Numerics.LITERT_REF, model, FIRST, SECOND)
