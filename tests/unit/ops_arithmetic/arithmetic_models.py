"""Models of one operator, and one call of them: by a numerics set's own reference, and as Bytewright reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.frontends.tflite import import_content
from bytewright.ops.arithmetic.fit import LinearRescale
from bytewright.ops.arithmetic.numerics import Numerics
from support.evaluation import evaluate_function
from support.reference import run_litert, run_tflm
from tflite_writer import ModelBuilder

Array = NDArray[Any]
Quantization = tuple[float, int]

BOTH = (Numerics.LITERT_REF, Numerics.TFLM)
ALL_INT8 = np.arange(-128, 128).astype(np.int8)


def single(value: float) -> float:
    return float(np.float32(value))


def run(numerics: Numerics, model: bytes, *inputs: Array) -> Array:
    """The first output under the set's reference."""
    runner = run_litert if numerics is Numerics.LITERT_REF else run_tflm
    return runner(model, list(inputs))[0]


def meaning(
    numerics: Numerics,
    model: bytes,
    *inputs: Array,
    expands_weights: bool = False,
    keeps_weights: bool = False,
) -> Array:
    """The first output as the graph's operators have it."""
    module = import_content(
        model, "one.tflite", numerics=numerics, expands_weights=expands_weights, keeps_weights=keeps_weights
    )
    values = evaluate_function(module.graph, module.constants, inputs)
    return values[module.graph.results[0]]


def on_line(accumulator: Array, line: LinearRescale) -> Array:
    """A fitted line, as kernels compute it."""
    return (accumulator.astype(np.int64) * line.multiplier + line.addend) >> line.shift


def to_int8(values: Array, zero_point: int, low: int, high: int) -> Array:
    """With the output's zero point, and clamped to the activation's range."""
    return np.clip(values + zero_point, low, high).astype(np.int8)


def elementwise(
    operator: str,
    shape: list[int],
    sources: list[Quantization],
    target: Quantization,
    result: str = "int8",
    **options: Any,
) -> bytes:
    """An operator on int8, to int8 unless `result` says another type, whose inputs and output have one shape."""
    builder = ModelBuilder()
    inputs = [
        builder.tensor(f"x{index}", shape, "int8", scale=scale, zero_point=zero)
        for index, (scale, zero) in enumerate(sources)
    ]
    output = builder.tensor("y", shape, result, scale=target[0], zero_point=target[1])
    builder.operator(operator, inputs, [output], **options)
    return builder.build(inputs, [output])


def accumulators(
    operator: str,
    values: Array,
    scales: tuple[float, Array, float],
    zero_point: int = 0,
    activation: str = "NONE",
) -> tuple[bytes, Array]:
    """A layer whose accumulators are exactly `values`, and its input.

    The input equals its zero point, so that the biases alone remain. `scales` are those of input, weights (one,
    or one a channel) and output.
    """
    count = len(values)
    shapes = {
        "FULLY_CONNECTED": ([1, 1], [count, 1], [1, count]),
        "CONV_2D": ([1, 1, 1, 1], [count, 1, 1, 1], [1, 1, 1, count]),
        "DEPTHWISE_CONV_2D": ([1, 1, 1, 1], [1, 1, 1, count], [1, 1, 1, count]),
    }
    input_shape, weight_shape, output_shape = shapes[operator]
    axis = 3 if operator == "DEPTHWISE_CONV_2D" else 0
    builder = ModelBuilder()
    x = builder.tensor("x", input_shape, "int8", scale=scales[0], zero_point=5)
    w = builder.tensor(
        "w", weight_shape, "int8", data=np.ones(weight_shape), scale=scales[1], quantized_dimension=axis
    )
    bias_scale = (scales[0] * np.asarray(scales[1], np.float64)).astype(np.float32)
    b = builder.tensor("b", [count], "int32", data=values, scale=bias_scale)
    y = builder.tensor("y", output_shape, "int8", scale=scales[2], zero_point=zero_point)
    options = {"depth_multiplier": count} if operator == "DEPTHWISE_CONV_2D" else {}
    builder.operator(operator, [x, w, b], [y], activation=activation, **options)
    return builder.build([x], [y]), np.full(input_shape, 5, np.int8)
