"""Operators on quantised constants are computed at import, by the arithmetic of activations, as LiteRT runs them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bytewright.frontends.tflite.importer import import_content
from support.evaluation import evaluate_function
from support.reference import LiteRt
from tflite_writer import ModelBuilder

SHAPE = (3, 5)


def on_constants(kind: str, dtype: str, result: str) -> bytes:
    """An operator on two constants, or one, and a SELECT_V2 or an ADD that an input takes part in."""
    generator, builder = np.random.default_rng(3), ModelBuilder()
    quantised: dict[str, Any] = {"scale": 0.5, "zero_point": 3 if dtype == "int8" else 0}
    x = builder.tensor("x", SHAPE, dtype, **quantised)
    constants = [
        builder.constant(name, generator.integers(-3, 4, SHAPE).astype(dtype), **quantised) for name in "ab"
    ]
    found = builder.tensor("found", SHAPE, result)
    builder.operator(kind, constants[: 1 if kind == "CAST" else 2], [found])
    if result == "bool":
        y = builder.tensor("y", SHAPE, dtype, **quantised)
        builder.operator("SELECT_V2", [found, x, constants[0]], [y])
    else:
        number, y = builder.tensor("number", SHAPE, result), builder.tensor("y", SHAPE, result)
        builder.operator("CAST", [x], [number])
        builder.operator("ADD", [found, number], [y])
    return builder.build([x], [y])


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize(
    "kind", ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "CAST"]
)
def test_the_result_is_the_reference_s(kind: str, dtype: str) -> None:
    content = on_constants(kind, dtype, "int32" if kind == "CAST" else "bool")
    module = import_content(content, "known.tflite")
    assert len(module.graph.nodes) <= 2
    x = np.random.default_rng(1).integers(-128, 128, SHAPE).astype(dtype)
    found = evaluate_function(module.graph, module.constants, (x,))[module.graph.results[0]]
    np.testing.assert_array_equal(found, LiteRt(content).run(x)[0])
