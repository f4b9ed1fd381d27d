"""ADD, SUB and MUL on all 65536 pairs of inputs, against both references."""

from __future__ import annotations

import numpy as np
import pytest
from arithmetic_models import ALL_INT8, BOTH, Quantization, elementwise, meaning, run, single

from bytewright.ops.arithmetic.factors import prepare_mean, prepare_product, prepare_sum
from bytewright.ops.arithmetic.multiplier import ACTIVATIONS, UnsupportedQuantizationError
from bytewright.ops.arithmetic.numerics import Numerics

FIRST = np.repeat(ALL_INT8, 256)[None]
SECOND = np.tile(ALL_INT8, 256)[None]
SHAPE = [1, 65536]


def random_quantizations(generator: np.random.Generator, trial: int) -> list[Quantization]:
    """Two inputs and an output; every third time with scales that are powers of two."""
    if trial % 3 == 0:
        scales = [2.0 ** -int(generator.integers(0, 8)) for _ in range(3)]
    else:
        scales = [single(2.0 ** generator.uniform(-8, 0)) for _ in range(3)]
    return [(scale, int(generator.integers(-128, 128))) for scale in scales]


@pytest.mark.parametrize("operator", ["ADD", "SUB"])
def test_add_and_sub_on_every_pair(operator: str) -> None:
    generator = np.random.default_rng(5)
    for trial in range(12):
        first, second, output = random_quantizations(generator, trial)
        if trial == 4:
            first = (single(2.0**-29), first[1])
        activation = tuple(ACTIVATIONS)[trial % 4]
        model = elementwise(operator, SHAPE, [first, second], output, activation=activation)
        for numerics in BOTH:
            found = meaning(numerics, model, FIRST, SECOND)
            np.testing.assert_array_equal(found, run(numerics, model, FIRST, SECOND), str(numerics))


@pytest.mark.parametrize("numerics", BOTH)
def test_mul_on_every_pair(numerics: Numerics) -> None:
    generator = np.random.default_rng(6)
    for trial in range(12):
        first, second, output = random_quantizations(generator, trial)
        product = first[0] * second[0]
        output = (single(product * 2.0 ** generator.uniform(-1 if trial % 4 else -6, 7)), output[1])
        activation = tuple(ACTIVATIONS)[trial % 4]
        model = elementwise("MUL", SHAPE, [first, second], output, activation=activation)
        actual = run(numerics, model, FIRST, SECOND)
        np.testing.assert_array_equal(actual, meaning(numerics, model, FIRST, SECOND))


def test_mul_where_single_and_double_factors_differ() -> None:
    """Output scales at which one product of inputs is a tie: the sets round it to different sides."""
    generator = np.random.default_rng(7)
    cases = 0
    while cases < 8:
        first, second = ((single(2.0 ** generator.uniform(-6, 0)), -128) for _ in range(2))
        product = int(generator.integers(1, 256)) * int(generator.integers(1, 256))
        level = int(generator.integers(0, 250)) + 0.5
        output = (single(first[0] * second[0] * product / level), -128)
        model = elementwise("MUL", SHAPE, [first, second], output)
        expected = {numerics: meaning(numerics, model, FIRST, SECOND) for numerics in BOTH}
        if np.array_equal(expected[Numerics.LITERT_REF], expected[Numerics.TFLM]):
            continue
        cases += 1
        for numerics in BOTH:
            np.testing.assert_array_equal(run(numerics, model, FIRST, SECOND), expected[numerics])


def test_scales_that_overflow_are_refused() -> None:
    tiny = 2.0**-40
    with pytest.raises(UnsupportedQuantizationError, match="ADD"):
        prepare_sum("ADD", 1.0, 1.0, tiny)
    for numerics in BOTH:
        with pytest.raises(UnsupportedQuantizationError, match="MUL"):
            prepare_product(1.0, 1.0, tiny, numerics, reach=1 << 30)
    with pytest.raises(UnsupportedQuantizationError, match="MEAN"):
        prepare_mean(1.0, tiny, 4)
