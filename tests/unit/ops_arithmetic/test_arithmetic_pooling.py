"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN on int8, against both references."""

from __future__ import annotations

import numpy as np
import pytest
from arithmetic_models import BOTH, meaning, run, single

from bytewright.ops.arithmetic.multiplier import ACTIVATIONS
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.pooling import TflAveragePool2d
from support.reference import run_litert, run_tflm
from tflite_writer import ModelBuilder


def pool_extent(size: int, window: int, stride: int, padding: str) -> int:
    """Output extent of one dimension."""
    return (size - window) // stride + 1 if padding == "VALID" else -(-size // stride)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("operator", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pool_equals_the_references(operator: str, padding: str) -> None:
    generator = np.random.default_rng(3)
    for trial in range(40):
        height, width, channels = (int(v) for v in generator.integers(1, 12, 3))
        window_height, window_width, stride_height, stride_width = (
            int(v) for v in generator.integers(1, 5, 4)
        )
        if padding == "VALID":
            window_height, window_width = min(window_height, height), min(window_width, width)
        rows = pool_extent(height, window_height, stride_height, padding)
        columns = pool_extent(width, window_width, stride_width, padding)
        scale, zero_point = single(2.0 ** generator.uniform(-7, 0)), int(generator.integers(-128, 128))
        activation = tuple(ACTIVATIONS)[trial % 4]
        values = generator.integers(-128, 128, (2, height, width, channels)).astype(np.int8)
        builder = ModelBuilder()
        x = builder.tensor("x", values.shape, "int8", scale=scale, zero_point=zero_point)
        y = builder.tensor("y", [2, rows, columns, channels], "int8", scale=scale, zero_point=zero_point)
        builder.operator(
            operator,
            [x],
            [y],
            padding=padding,
            stride_h=stride_height,
            stride_w=stride_width,
            filter_height=window_height,
            filter_width=window_width,
            activation=activation,
        )
        model = builder.build([x], [y])
        for numerics in BOTH:
            found = meaning(numerics, model, values)
            np.testing.assert_array_equal(found, run(numerics, model, values), str(numerics))


def test_average_rounds_halves_away_from_zero() -> None:
    totals = np.array([-6, -5, -2, -1, 0, 1, 2, 5, 6])
    values = np.stack([totals, totals * 0, totals * 0, totals * 0]).astype(np.int8).reshape(1, 4, 1, 9)
    (pooled,) = TflAveragePool2d((4, 1), (1, 1), (0, 0, 0, 0)).evaluate((values,))
    assert pooled.ravel().tolist() == [-2, -1, -1, 0, 0, 0, 1, 1, 2]


def test_pool_with_two_quantisations() -> None:
    """LiteRT copies raw values and clamps by the output's quantisation; TensorFlow Lite Micro refuses."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 2, 2, 1], "int8", scale=0.1, zero_point=3)
    y = builder.tensor("y", [1, 1, 1, 1], "int8", scale=0.2, zero_point=50)
    builder.operator("MAX_POOL_2D", [x], [y], filter_height=2, filter_width=2, activation="RELU")
    model = builder.build([x], [y])
    values = np.array([-5, 4, 9, 2], np.int8).reshape(1, 2, 2, 1)
    expected = meaning(Numerics.LITERT_REF, model, values)
    assert expected.ravel().tolist() == [50]
    np.testing.assert_array_equal(run_litert(model, [values])[0], expected)
    with pytest.raises(RuntimeError):
        run_tflm(model, [values])


def mean_scales(generator: np.random.Generator, trial: int) -> tuple[float, float]:
    match trial % 5:
        case 0:
            return 0.1, 0.1
        case 1:
            return single(2.0 ** generator.uniform(-3, 3)), single(2.0 ** generator.uniform(-3, 3))
        case 2:
            return 2.0**-30, 2.0 ** -int(generator.integers(0, 10))
        case 3:
            return 2.0 ** int(generator.integers(-4, 4)), 2.0 ** int(generator.integers(-4, 4))
        case _:
            scale = single(generator.uniform(0.01, 1))
            return scale, single(scale * generator.uniform(0.3, 1.2))


def test_mean_equals_the_references() -> None:
    generator = np.random.default_rng(11)
    for trial in range(150):
        rank = (4, 4, 3, 2)[trial % 4]
        shape = [int(v) for v in generator.integers(1, 9, rank)]
        num_axes = int(generator.integers(1, rank + 1))
        axes = sorted(int(a) for a in generator.choice(rank, num_axes, replace=False))
        keep_dims = trial % 2 == 0
        input_scale, output_scale = mean_scales(generator, trial)
        input_zero, output_zero = (int(v) for v in generator.integers(-128, 128, 2))
        values = generator.integers(-128, 128, shape).astype(np.int8)
        if trial % 3 == 0:
            values = np.clip(generator.normal(input_zero, 3, shape), -128, 127).astype(np.int8)
        reduced = np.mean(values, axis=tuple(axes), keepdims=keep_dims).shape
        builder = ModelBuilder()
        x = builder.tensor("x", shape, "int8", scale=input_scale, zero_point=input_zero)
        a = builder.constant("axes", np.array(axes, np.int32))
        y = builder.tensor("y", reduced, "int8", scale=output_scale, zero_point=output_zero)
        builder.operator("MEAN", [x, a], [y], keep_dims=keep_dims)
        model = builder.build([x], [y])
        for numerics in BOTH:
            found, wanted = meaning(numerics, model, values), run(numerics, model, values)
            np.testing.assert_array_equal(found.ravel(), wanted.ravel(), f"{numerics} {shape} {axes}")


@pytest.mark.parametrize("numerics", BOTH)
def test_mean_of_every_total(numerics: Numerics) -> None:
    """All totals of a pair: every tie of a mean over two values."""
    totals = np.arange(-256, 255)
    values = np.stack([totals // 2, totals - totals // 2], axis=1).astype(np.int8)
    builder = ModelBuilder()
    x = builder.tensor("x", values.shape, "int8", scale=0.5, zero_point=0)
    a = builder.constant("axes", np.array([1], np.int32))
    y = builder.tensor("y", [len(totals)], "int8", scale=0.5, zero_point=0)
    builder.operator("MEAN", [x, a], [y])
    model = builder.build([x], [y])
    expected = meaning(numerics, model, values)
    np.testing.assert_array_equal(run(numerics, model, values), expected)
    assert expected[totals == -1].tolist() == [0], "a tie in the high multiply goes up"
