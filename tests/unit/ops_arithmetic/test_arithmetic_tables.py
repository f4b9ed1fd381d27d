"""Unary int8 operators as tables, on all 256 inputs, against both references."""

from __future__ import annotations

import numpy as np
import pytest
from arithmetic_models import ALL_INT8, BOTH, Quantization, elementwise, meaning, run, single

from bytewright.diagnostics import CompileError
from bytewright.ops.arithmetic.multiplier import UnsupportedQuantizationError
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.tables import dequantize, int8_table, quantize, quantize_float
from support.reference import run_litert, run_tflm
from tflite_writer import ModelBuilder

LOGISTIC_OUTPUT = (1.0 / 256, -128)
TANH_OUTPUT = (1.0 / 128, 0)


def quantizations(seed: int, count: int) -> list[tuple[Quantization, Quantization]]:
    """Input and output: random, powers of two, and quotients at which an input is a tie."""
    generator = np.random.default_rng(seed)
    result: list[tuple[Quantization, Quantization]] = []
    for trial in range(count):
        source = single(2.0 ** generator.uniform(-9, 0))
        target = single(2.0 ** generator.uniform(-9, 1))
        if trial % 3 == 0:
            source, target = 2.0 ** -int(generator.integers(0, 9)), 2.0 ** -int(generator.integers(0, 9))
        if trial % 3 == 1:
            level = int(generator.integers(0, 100)) + 0.5
            target = single(source * int(generator.integers(1, 256)) / level)
        zeros = [int(z) for z in generator.integers(-128, 128, 2)]
        result.append(((source, zeros[0]), (target, zeros[1])))
    return result


def check(
    operator: str, source: Quantization, target: Quantization, numerics: Numerics, alpha: float | None = None
) -> None:
    options = {} if alpha is None else {"alpha": alpha}
    model = elementwise(operator, [1, 256], [source], target, **options)
    found, actual = (by(numerics, model, ALL_INT8[None]) for by in (meaning, run))
    np.testing.assert_array_equal(found, actual, f"{operator} {numerics} {source} {target} {alpha}")


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize("operator", ["RELU", "RELU6", "QUANTIZE"])
def test_clamps_and_rescales(operator: str, numerics: Numerics) -> None:
    for source, target in quantizations(1, 60):
        check(operator, source, target, numerics)


def test_relu_n1_to_1() -> None:
    """LiteRT alone has RELU_N1_TO_1 as an operator of its own."""
    for source, target in quantizations(8, 30):
        check("RELU_N1_TO_1", source, target, Numerics.LITERT_REF)


@pytest.mark.parametrize("numerics", BOTH)
def test_leaky_relu(numerics: Numerics) -> None:
    alphas = [single(alpha) for alpha in (0.1, 0.2, 0.3, 0.01, 1.5, 0.0, -0.5, -0.3)]
    for index, (source, target) in enumerate(quantizations(2, 64)):
        check("LEAKY_RELU", source, target, numerics, alphas[index % len(alphas)])


@pytest.mark.parametrize("numerics", BOTH)
def test_hard_swish(numerics: Numerics) -> None:
    extremes = [((2.0**-20, 3), (2.0**-22, 1)), ((8.0, -128), (4.0, 5)), ((0.5, 127), (0.004, 0))]
    for source, target in quantizations(3, 60) + extremes:
        if source[0] / 128 < target[0]:
            check("HARD_SWISH", source, target, numerics)


@pytest.mark.parametrize("numerics", BOTH)
def test_logistic(numerics: Numerics) -> None:
    for source, _ in quantizations(4, 50):
        check("LOGISTIC", source, LOGISTIC_OUTPUT, numerics)
    for scale in (2.0**-20, 2.0**-12, 3.0, 16.0, 100.0):
        check("LOGISTIC", (scale, -7), LOGISTIC_OUTPUT, numerics)


@pytest.mark.parametrize("numerics", BOTH)
def test_tanh(numerics: Numerics) -> None:
    for source, _ in quantizations(5, 50):
        check("TANH", source, TANH_OUTPUT, numerics)
    for scale in (2.0**-20, 2.0**-12, 3.0, 16.0, 100.0):
        check("TANH", (scale, -7), TANH_OUTPUT, numerics)


def test_tanh_of_litert_takes_any_output() -> None:
    for source, target in quantizations(6, 40):
        check("TANH", source, target, Numerics.LITERT_REF)


@pytest.mark.parametrize("operator", ["NEG", "EXP", "LOG", "GELU", "RELU_0_TO_1", "SQRT"])
def test_functions_that_litert_alone_has(operator: str) -> None:
    for (scale, zero_point), target in quantizations(9, 12):
        least = 2.0**-5 if operator == "EXP" else scale  # exponentials beyond 2^31 are undefined
        # A root of what is below its zero point ends the run.
        source = (min(scale, least), -128 if operator == "SQRT" else zero_point)
        check(operator, source, target, Numerics.LITERT_REF)


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize("operator", ["ABS", "ELU", "RSQRT"])
def test_functions_that_both_have(operator: str, numerics: Numerics) -> None:
    for source, target in quantizations(10, 12):
        check(operator, (source[0], -128) if operator == "RSQRT" else source, target, numerics)


def test_gelu_by_its_approximation() -> None:
    for source, target in quantizations(11, 12):
        model = elementwise("GELU", [1, 256], [source], target, approximate=True)
        found, actual = (by(Numerics.LITERT_REF, model, ALL_INT8[None]) for by in (meaning, run))
        np.testing.assert_array_equal(found, actual, f"{source} {target}")


def test_roots_of_what_is_below_zero() -> None:
    """By hand: where the references end the run."""
    for operator, wanted in (("SQRT", [7, 7, 7, 9]), ("RSQRT", [127, 127, 127, 9])):
        model = elementwise(operator, [1, 256], [(0.25, 3)], (0.25, 7) if operator == "SQRT" else (1.0, 7))
        found = meaning(Numerics.LITERT_REF, model, ALL_INT8[None])[0]
        assert found[[0, 130, 131, 132]].tolist() == wanted, operator  # sqrt(1/4) is 2 steps of 1/4


def test_an_exponential_beyond_32_bits_saturates() -> None:
    model = elementwise("EXP", [1, 256], [(1.0, -128)], (0.01, 0))
    found = meaning(Numerics.LITERT_REF, model, ALL_INT8[None])[0]
    assert found[:2].tolist() == [100, 127]
    assert set(found[1:].tolist()) == {127}


def test_the_sets_differ() -> None:
    """The comparisons can fail: for some quantisation the two sets' tables are not the same."""
    for operator, target in (
        ("LOGISTIC", LOGISTIC_OUTPUT),
        ("TANH", TANH_OUTPUT),
        ("RELU", None),
        ("LEAKY_RELU", None),
    ):
        num_differences = 0
        for source, output in quantizations(4, 50):
            options = {"alpha": 0.3} if operator == "LEAKY_RELU" else {}
            model = elementwise(operator, [1, 256], [source], target or output, **options)
            tables = [meaning(numerics, model, ALL_INT8[None]) for numerics in BOTH]
            num_differences += int(np.sum(tables[0] != tables[1]))
        assert num_differences > 0, operator


@pytest.mark.parametrize(
    ("operator", "target", "numerics"),
    [
        ("LOGISTIC", (1.0 / 128, -128), Numerics.LITERT_REF),
        ("LOGISTIC", (1.0 / 256, 0), Numerics.TFLM),
        ("HARD_SWISH", (0.0001, 0), Numerics.LITERT_REF),
        ("HARD_SWISH", (0.0001, 0), Numerics.TFLM),
    ],
)
def test_what_a_reference_refuses(operator: str, target: Quantization, numerics: Numerics) -> None:
    source = (0.5, 0)
    model = elementwise(operator, [1, 256], [source], target)
    with pytest.raises(CompileError, match=f"BW107.*{operator}"):
        meaning(numerics, model, ALL_INT8[None])
    with pytest.raises((RuntimeError, ValueError)):
        run(numerics, model, ALL_INT8[None])


def test_outputs_whose_quantisation_a_reference_ignores() -> None:
    check("LOGISTIC", (0.1, 3), (1.0 / 256, 40), Numerics.LITERT_REF)
    check("LOGISTIC", (0.1, 3), (1.0 / 128, -128), Numerics.TFLM)
    check("TANH", (0.1, 3), (1.0 / 64, 9), Numerics.TFLM)


def test_overflow_is_refused() -> None:
    with pytest.raises(UnsupportedQuantizationError, match="overflow"):
        int8_table(quantize, (2.0**30, 0), (1.0, 0), Numerics.TFLM)


@pytest.mark.parametrize("numerics", BOTH)
def test_quantize_float(numerics: Numerics) -> None:
    """Ties, their neighbours, saturation; division by the scale differs from multiplying by its inverse."""
    generator = np.random.default_rng(7)
    num_inverse_differences = 0
    for trial in range(30):
        scale = (
            2.0 ** -int(generator.integers(0, 8))
            if trial % 3 == 0
            else single(2.0 ** generator.uniform(-8, 2))
        )
        zero_point = int(generator.integers(-128, 128))
        ties = ((generator.integers(-200, 200, 1000) + 0.5) * scale).astype(np.float32)
        special = np.array([0.0, -0.0, 1e-40, 1e7 * scale, -1e7 * scale], np.float32)
        above, below = np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))
        values = np.concatenate([ties, above, below, special])[None]
        builder = ModelBuilder()
        x = builder.tensor("x", values.shape, "float32")
        y = builder.tensor("y", values.shape, "int8", scale=scale, zero_point=zero_point)
        builder.operator("QUANTIZE", [x], [y])
        expected = quantize_float(values, scale, zero_point)
        np.testing.assert_array_equal(run(numerics, builder.build([x], [y]), values), expected)
        scaled = (values * (np.float32(1) / np.float32(scale))).astype(np.float64)
        rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
        num_inverse_differences += int(np.sum(np.clip(rounded + zero_point, -128, 127) != expected))
    assert num_inverse_differences > 0


def test_quantize_float_saturates_beyond_32_bits() -> None:
    values = np.array([1e30, -1e30, np.inf, -np.inf], np.float32)
    assert quantize_float(values, 0.5, 20).tolist() == [127, -128, 127, -128]


def test_dequantize() -> None:
    generator = np.random.default_rng(8)
    for _ in range(20):
        scale, zero_point = single(2.0 ** generator.uniform(-9, 4)), int(generator.integers(-128, 128))
        builder = ModelBuilder()
        x = builder.tensor("x", [256], "int8", scale=scale, zero_point=zero_point)
        y = builder.tensor("y", [256], "float32")
        builder.operator("DEQUANTIZE", [x], [y])
        model = builder.build([x], [y])
        expected = dequantize(ALL_INT8, scale, zero_point)
        for actual in (run_litert(model, [ALL_INT8])[0], run_tflm(model, [ALL_INT8])[0]):
            np.testing.assert_array_equal(actual, expected)
