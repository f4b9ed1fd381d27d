"""Accumulators that come as near to the end of 32 bits as they can: taken, and exact, where nothing overflows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ops.arithmetic.numerics import Numerics
from support.against_reference import assert_equals_reference
from support.random_models import RandomModel
from tflite_writer import ModelBuilder

LIMIT = 2**31 - 1
NEARLY_ONE = 1 - 2.0**-30  # times a number of 31 bits, that number less 2
SIGNS = np.array([-1, 1, -1, 1], np.int8)


def layer(
    kind: str, biases: list[int], ratio: float, zero_point: int, activation: str = "NONE"
) -> RandomModel:
    """Four channels of two weights of 3 or -3, on inputs of zero point 0; `ratio` is the whole rescale."""
    builder = ModelBuilder()
    is_layer = kind == "FULLY_CONNECTED"
    shape, weights_shape = ((1, 2), (4, 2)) if is_layer else ((1, 1, 1, 2), (4, 1, 1, 2))
    weights = np.repeat(3 * SIGNS, 2).reshape(weights_shape)
    scales = (1 + 2.0**-15, 1 - 2.0**-15, 1.0) if ratio == NEARLY_ONE else (1.0, 1.0, 1 / ratio)
    x = builder.tensor("x", shape, "int8", scale=scales[0], zero_point=0)
    w = builder.constant("w", weights, scale=scales[1])
    b = builder.constant("b", np.array(biases, np.int64).astype(np.int32), scale=1.0)
    y = builder.tensor("y", (*shape[:-1], 4), "int8", scale=scales[2], zero_point=zero_point)
    builder.operator(kind, [x, w, b], [y], activation=activation)
    description = f"{kind} {biases} times {ratio}, zero point {zero_point}"
    return RandomModel(builder.build([x], [y]), description, (shape,), "int8")


def at_the_limit(distance: int) -> list[int]:
    """Biases with which sums of inputs reach `LIMIT - distance` in magnitude, on both sides: all inputs are -128."""
    return [LIMIT - distance - 128 * 6, 128 * 6 - LIMIT + distance] * 2


@pytest.mark.parametrize("numerics", [Numerics.LITERT_REF, Numerics.TFLM])
def test_sums_that_just_fit_are_exact(numerics: Numerics, tmp_path: Path) -> None:
    models = [
        layer(kind, at_the_limit(distance), ratio, zero_point, activation)
        for kind in ("CONV_2D", "FULLY_CONNECTED")
        for distance, ratio, zero_point, activation in (
            (0, 2.0**-24, 0, "NONE"),
            (100, 2.0**-24, -128, "RELU"),
            (255, 1.7 * 2.0**-25, 127, "NONE"),
            (0, 0.75, 100, "NONE"),
            (100, NEARLY_ONE, 101, "NONE"),
        )
    ]
    assert_equals_reference(models, tmp_path, numerics=numerics, num_inputs=8)


@pytest.mark.parametrize("numerics", [Numerics.LITERT_REF, Numerics.TFLM])
@pytest.mark.parametrize("kind", ["CONV_2D", "FULLY_CONNECTED"])
def test_one_more_is_refused(kind: str, numerics: Numerics) -> None:
    """By hand: sums of LIMIT - 98 are scaled to LIMIT - 100, to which 100 may be added, and -101 from below."""
    fitting = ((98, NEARLY_ONE, 100), (97, NEARLY_ONE, -100), (0, NEARLY_ONE, 2), (0, NEARLY_ONE, -3))
    for distance, ratio, zero_point in fitting:
        content = layer(kind, at_the_limit(distance), ratio, zero_point).content
        assert import_content(content, "m.tflite", numerics=numerics).graph.nodes
    beyond = ((97, NEARLY_ONE, 100), (96, NEARLY_ONE, -100), (0, NEARLY_ONE, 3), (0, NEARLY_ONE, -4))
    for distance, ratio, zero_point in (*beyond, (-1, 2.0**-24, 0), (0, 1.25, 0)):
        content = layer(kind, at_the_limit(distance), ratio, zero_point).content
        with pytest.raises(CompileError, match="BW110"):
            import_content(content, "m.tflite", numerics=numerics)
