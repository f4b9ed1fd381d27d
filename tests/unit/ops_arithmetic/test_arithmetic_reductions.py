"""Sums, products and norms of several values: ADD_N, SUM, REDUCE_PROD and L2_NORMALIZATION, against the references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from arithmetic_models import BOTH, Array, Quantization, elementwise, meaning, run

from bytewright.ops.arithmetic.numerics import Numerics
from tflite_writer import ModelBuilder

LITERT, TFLM = Numerics.LITERT_REF, Numerics.TFLM
ROWS = 600


def reduction(operator: str, dtype: str, depth: int, source: Quantization, target: Quantization) -> bytes:
    """Rows become one value each."""
    builder = ModelBuilder()
    x = builder.tensor("x", (ROWS, depth), dtype, scale=source[0], zero_point=source[1])
    axes = builder.constant("axes", np.array([1], np.int32))
    y = builder.tensor("y", (ROWS,), dtype, scale=target[0], zero_point=target[1])
    builder.operator(operator, [x, axes], [y], keep_dims=False)
    return builder.build([x], [y])


def rows(dtype: str, depth: int, seed: int) -> Array:
    """Any values, and a third small ones; the least and the greatest first."""
    generator = np.random.default_rng(seed)
    bounds = np.iinfo(dtype)
    values = generator.integers(bounds.min, bounds.max + 1, (ROWS, depth))
    values[: ROWS // 3] = generator.integers(-10, 11, (ROWS // 3, depth))
    values[0], values[1] = bounds.min, bounds.max
    return values.astype(dtype)


def assert_equal(numerics: Numerics, content: bytes, *inputs: Array) -> None:
    np.testing.assert_array_equal(meaning(numerics, content, *inputs), run(numerics, content, *inputs))


@pytest.mark.parametrize("depth", [1, 2, 5, 40])
def test_sums_of_int16(depth: int) -> None:
    """At ties the sets part: a factor in float32, or two roundings."""
    x = rows("int16", depth, depth)
    parted = 0
    for scales in ((0.05, 0.6), (2.0**-8, 2.0**-6), (1.5, 17.3), (0.1, 0.03), (2.0**-15, 2.0**-16)):
        content = reduction("SUM", "int16", depth, (scales[0], 0), (scales[1], 0))
        for numerics in BOTH:
            assert_equal(numerics, content, x)
        parted += int((run(LITERT, content, x) != run(TFLM, content, x)).sum())
    assert parted > 0


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_products(dtype: str, depth: int) -> None:
    """Also where a product leaves 32 bits, which wraps, and at the greatest factor that was measured."""
    x = rows(dtype, depth, depth)
    for scale, target in ((0.05, (0.6, 3)), (1.5, (1.5, 127)), (2.0**-8, (2.0**-10, -3)), (700.0, (1.0, 1))):
        content = reduction(
            "REDUCE_PROD",
            dtype,
            depth,
            (scale, target[1] if dtype == "int8" else 0),
            (target[0], target[1] if dtype == "int8" else 0),
        )
        assert_equal(LITERT, content, x)


@pytest.mark.parametrize("count", [2, 3, 12])
def test_sums_of_several_operands(count: int) -> None:
    """They begin at the zero point's negative, which TensorFlow Lite Micro takes for zero."""
    generator = np.random.default_rng(count)
    inputs = [generator.integers(-128, 128, (3, 400)).astype(np.int8) for _ in range(count)]
    cases: Sequence[tuple[Quantization, Quantization]] = (
        ((0.05, 3), (0.05, 3)),
        ((2.0**-8, -128), (2.0**-7, -128)),
        ((1.5, 127), (0.7, -5)),
        ((0.3, 0), (0.02, 0)),
    )
    for source, target in cases:
        assert_equal(TFLM, elementwise("ADD_N", [3, 400], [source] * count, target), *inputs)


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize("depth", [1, 2, 9, 300, 9000])
def test_norms(depth: int, numerics: Numerics) -> None:
    """Of rows of zeros too, of one unit, and of so many squares that two bits of their sum are cut off."""
    generator = np.random.default_rng(depth)
    for zero_point in (0, 3, -128, 127):
        x = generator.integers(-128, 128, (40, depth)).astype(np.int8)
        x[:20] = np.clip(zero_point + generator.integers(-3, 4, (20, depth)), -128, 127)
        x[0] = x[1] = zero_point
        x[1, 0] = np.clip(zero_point + 1, -128, 126)
        x[2] = -128 if zero_point > 0 else 127
        content = elementwise("L2_NORMALIZATION", [40, depth], [(0.05, zero_point)], (1 / 128, 0))
        assert_equal(numerics, content, x)


@pytest.mark.parametrize("depth", [1, 2, 9, 300, 9000])
def test_norms_of_uint8(depth: int) -> None:
    """Which round elsewhere: a tenth of the values is another as of int8."""
    generator = np.random.default_rng(depth)
    for zero_point in (0, 131, 128, 255):
        builder = ModelBuilder()
        x = builder.tensor("x", (40, depth), "uint8", scale=0.05, zero_point=zero_point)
        y = builder.tensor("y", (40, depth), "uint8", scale=1 / 128, zero_point=128)
        builder.operator("L2_NORMALIZATION", [x], [y])
        values = generator.integers(0, 256, (40, depth)).astype(np.uint8)
        values[:20] = np.clip(zero_point + generator.integers(-3, 4, (20, depth)), 0, 255)
        values[0] = zero_point
        assert_equal(LITERT, builder.build([x], [y]), values)
