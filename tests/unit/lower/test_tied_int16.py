"""An int16 output that becomes a state of another scale is quantised again, as QUANTIZE does."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.graph.tie_states import tie_states
from bytewright.options import StatePair
from support.evaluation import evaluate_function
from support.reference import run_litert
from tflite_writer import ModelBuilder

SHAPE = (1, 3000)


def step(kept: float, given: float, *, requantised: bool = False) -> bytes:
    """(x, h) -> y of the scale `given`, or y in that of h, which is `kept`."""
    builder = ModelBuilder()
    x, h = (
        builder.tensor(name, SHAPE, "int16", scale=scale, zero_point=0)
        for name, scale in (("x", 2.0**-11), ("h", kept))
    )
    y = builder.tensor("y", SHAPE, "int16", scale=given, zero_point=0)
    builder.operator("ADD", [x, h], [y], pot_scale_int16=False)
    if not requantised:
        return builder.build([x, h], [y])
    z = builder.tensor("z", SHAPE, "int16", scale=kept, zero_point=0)
    builder.operator("QUANTIZE", [y], [z])
    return builder.build([x, h], [z])


@pytest.mark.parametrize("given", [0.001, 0.0007, 0.0021, 0.004])
def test_it_is_as_quantize_has_it(given: float) -> None:
    kept = 0.001
    module = tie_states(import_content(step(kept, given), "step.tflite"), (StatePair("h", "y"),))
    generator = np.random.default_rng(1)
    x, h = (generator.integers(-32768, 32768, SHAPE).astype(np.int16) for _ in range(2))
    values = evaluate_function(module.graph, module.constants, [x, h])
    (expected,) = run_litert(step(kept, given, requantised=True), [x, h])
    np.testing.assert_array_equal(values[module.graph.results[-1]], expected)


def test_a_scale_that_overflows_is_refused() -> None:
    module = import_content(step(2.0**-30, 2.0**-10), "step.tflite")
    with pytest.raises(CompileError, match="too large for the input's"):
        tie_states(module, (StatePair("h", "y"),))


def test_bytes_of_other_quantisation_are_refused() -> None:
    builder = ModelBuilder()
    h = builder.tensor("h", SHAPE, "uint8", scale=0.25, zero_point=10)
    inner = builder.tensor("inner", SHAPE, "int8", scale=0.5, zero_point=0)
    y = builder.tensor("y", SHAPE, "uint8", scale=0.5, zero_point=10)
    builder.operator("QUANTIZE", [h], [inner])
    builder.operator("QUANTIZE", [inner], [y])
    module = import_content(builder.build([h], [y]), "step.tflite")
    with pytest.raises(CompileError, match="the two are uint8 of different scales or zero points"):
        tie_states(module, (StatePair("h", "y"),))
