"""SOFTMAX int8 against both references, above all where a float32 table would give another result."""

from __future__ import annotations

import numpy as np
import pytest
from arithmetic_models import ALL_INT8, BOTH, elementwise, meaning, run, single

from bytewright.ops.arithmetic.multiplier import UnsupportedQuantizationError
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.softmax import (
    MAXIMUM_DEPTH,
    prepare_softmax,
    softmax_int8,
    softmax_output_is_valid,
)

OUTPUT, WIDE_OUTPUT = (1 / 256, -128), (1 / 65536, -32768)
# Rows whose exponentials sum to this or more stop both references with an assertion (measured); only rows of at least
# as many values can. Here their probabilities round to zero, as the formula goes on.
ABORTING_SUM = 512


def float_table_softmax(values: np.ndarray, scale: float) -> np.ndarray:
    """LiteRT's other algorithm: float32 exponentials, their sum, and one rounded product."""
    differences = values.astype(np.int64) - values.max(axis=-1, keepdims=True)
    exponentials = np.exp(differences.astype(np.float32) * np.float32(scale))
    inverse = np.float32(256) / exponentials.sum(axis=-1, keepdims=True, dtype=np.float32)
    rounded = np.floor((exponentials * inverse).astype(np.float64) + 0.5)
    return np.clip(rounded - 128, -128, 127).astype(np.int8)


def test_every_pair() -> None:
    pairs = np.stack([np.repeat(ALL_INT8, 256), np.tile(ALL_INT8, 256)], axis=-1)
    for scale in (0.0625, single(0.1), single(0.0123), 1.0):
        expected = softmax_int8(pairs, *prepare_softmax(scale, 1.0))
        model = elementwise("SOFTMAX", list(pairs.shape), [(scale, 7)], OUTPUT, beta=1.0)
        for numerics in BOTH:
            np.testing.assert_array_equal(run(numerics, model, pairs), expected, f"{numerics} {scale}")


@pytest.mark.parametrize("depth", [1, 3, 10, 12, 100, 1001, MAXIMUM_DEPTH])
def test_rows_of_any_length(depth: int) -> None:
    generator = np.random.default_rng(depth)
    num_rows = max(2, min(2000, 40000 // depth))
    for beta in (1.0, single(0.3), 2.5):
        scale = single(2.0 ** generator.uniform(-4, -1))
        # Long rows are not flat: the references abort where the exponentials' sum reaches 512.
        spread = generator.choice([3, 40] if depth > 100 else [1, 3, 40]) / (scale * beta)
        values = np.clip(generator.normal(0, spread, (num_rows, depth)), -128, 127).astype(np.int8)
        expected = softmax_int8(values, *prepare_softmax(scale, beta))
        model = elementwise("SOFTMAX", list(values.shape), [(scale, -3)], OUTPUT, beta=beta)
        for numerics in BOTH:
            np.testing.assert_array_equal(run(numerics, model, values), expected, str(numerics))


@pytest.mark.parametrize("numerics", BOTH)
def test_the_longest_flat_row(numerics: Numerics) -> None:
    """511 equal values are the most that the references take; from 512 on each probability rounds to zero."""
    prepared = prepare_softmax(0.5, 1.0)
    flat = np.zeros((1, ABORTING_SUM - 1), np.int8)
    model = elementwise("SOFTMAX", list(flat.shape), [(0.5, 0)], OUTPUT, beta=1.0)
    assert set(run(numerics, model, flat).ravel().tolist()) == {-127}
    assert set(softmax_int8(flat, *prepared).ravel().tolist()) == {-127}
    for depth in (ABORTING_SUM, 600, MAXIMUM_DEPTH):
        assert set(softmax_int8(np.zeros((1, depth), np.int8), *prepared).ravel().tolist()) == {-128}


def test_where_a_float_table_differs() -> None:
    """Rows found by search, on which the float32 algorithm is off: both references take the fixed point."""
    generator = np.random.default_rng(19)
    num_differences = 0
    for _ in range(150):
        scale = single(2.0 ** generator.uniform(-7, -1))
        values = np.clip(generator.normal(0, 2 / scale, (4000, 10)), -128, 127).astype(np.int8)
        expected = softmax_int8(values, *prepare_softmax(scale, 1.0))
        differs = np.any(expected != float_table_softmax(values, scale), axis=-1)
        if not differs.any():
            continue
        num_differences += int(differs.sum())
        rows = values[differs]
        model = elementwise("SOFTMAX", list(rows.shape), [(scale, 0)], OUTPUT, beta=1.0)
        for numerics in BOTH:
            np.testing.assert_array_equal(run(numerics, model, rows), expected[differs], str(numerics))
    assert num_differences > 20


@pytest.mark.parametrize("scale", [2.0**-25, 2.0**-18, 2.0**-10, 7.75, 16.0, 40.0, 5000.0])
@pytest.mark.parametrize("numerics", BOTH)
def test_extreme_scales(scale: float, numerics: Numerics) -> None:
    generator = np.random.default_rng(2)
    values = generator.integers(-128, 128, (400, 6)).astype(np.int8)
    values[200:] = np.clip(values[200:], -3, 3)
    expected = softmax_int8(values, *prepare_softmax(scale, 1.0))
    model = elementwise("SOFTMAX", list(values.shape), [(scale, 0)], OUTPUT, beta=1.0)
    np.testing.assert_array_equal(run(numerics, model, values), expected)


def test_a_flat_softmax_is_refused() -> None:
    with pytest.raises(UnsupportedQuantizationError, match="flat softmax"):
        prepare_softmax(2.0**-26, 1.0)
    assert prepare_softmax(2.0**-25, 1.0)[1] == 2


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize("depth", [1, 3, 12, 300])
def test_results_of_int16(depth: int, numerics: Numerics) -> None:
    generator = np.random.default_rng(depth)
    for scale, spread in ((0.0625, 1), (single(0.1), 3), (1.0, 40)):
        values = np.clip(generator.normal(0, spread / scale, (400, depth)), -128, 127).astype(np.int8)
        expected = softmax_int8(values, *prepare_softmax(scale, 1.0), dtype=np.dtype(np.int16))
        model = elementwise("SOFTMAX", list(values.shape), [(scale, -3)], WIDE_OUTPUT, "int16", beta=1.0)
        np.testing.assert_array_equal(run(numerics, model, values), expected)
        np.testing.assert_array_equal(meaning(numerics, model, values), expected)


WIDE = [
    (*WIDE_OUTPUT, "int16"),
    (1 / 65500, -32768, "int16"),
    (1 / 60000, -32768, "int16"),
    (1 / 65536, 0, "int16"),
]


@pytest.mark.parametrize("numerics", BOTH)
@pytest.mark.parametrize(
    "output",
    [(*OUTPUT, "int8"), (1 / 255.9, -128, "int8"), (1 / 250, -128, "int8"), (1 / 256, 0, "int8"), *WIDE],
)
def test_output_quantisations_that_a_reference_takes(
    output: tuple[float, int, str], numerics: Numerics
) -> None:
    scale, zero_point, result = output
    dtype = np.dtype(result)
    values = ALL_INT8.reshape(16, 16)
    model = elementwise("SOFTMAX", [16, 16], [(0.1, 0)], (scale, zero_point), result, beta=1.0)
    if softmax_output_is_valid(scale, zero_point, dtype, numerics):
        expected = softmax_int8(values, *prepare_softmax(0.1, 1.0), dtype=dtype)
        np.testing.assert_array_equal(run(numerics, model, values), expected)
    else:
        with pytest.raises((RuntimeError, ValueError)):
            run(numerics, model, values)
