"""The writer: every operator that Bytewright compiles, in int8 and float32, taken by both references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tflite

from support.reference import run_litert, run_tflm
from tflite_writer import OPTIONAL, ModelBuilder

SHAPE = (1, 6, 6, 4)

CASES: dict[str, tuple[tuple[int, ...], list[Any], dict[str, Any]]] = {
    # operator: output shape, further inputs ("x" a second activation, arrays as int32 constants), options
    "CONV_2D": (
        (1, 6, 6, 5),
        [("weights", (5, 3, 3, 4), 0), ("bias", 5)],
        {"activation": "RELU6", "dilation_h_factor": 2},
    ),
    "DEPTHWISE_CONV_2D": (
        (1, 2, 2, 8),
        [("weights", (1, 3, 3, 8), 3), ("bias", 8)],
        {"padding": "VALID", "stride_h": 2, "stride_w": 2, "depth_multiplier": 2},
    ),
    "FULLY_CONNECTED": ((1, 5), [("weights", (5, 144), 0)], {}),
    "AVERAGE_POOL_2D": (
        (1, 3, 3, 4),
        [],
        {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 3, "padding": "SAME"},
    ),
    "MAX_POOL_2D": (
        (1, 3, 3, 4),
        [],
        {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 3, "padding": "SAME"},
    ),
    "MEAN": ((1, 4), [[1, 2]], {}),
    "ADD": (SHAPE, ["x"], {"activation": "RELU"}),
    "SUB": (SHAPE, ["x"], {}),
    "MUL": (SHAPE, ["x"], {}),
    "PAD": ((1, 8, 9, 4), [[[0, 0], [1, 1], [1, 2], [0, 0]]], {}),
    "PADV2": ((1, 8, 9, 4), [[[0, 0], [1, 1], [1, 2], [0, 0]], ("value", 7)], {}),
    "RESHAPE": ((4, 36), [[4, 36]], {"new_shape": [4, 36]}),
    "SQUEEZE": ((6, 6, 4), [], {"squeeze_dims": [0]}),
    "EXPAND_DIMS": ((1, 1, 6, 6, 4), [[1]], {}),
    "CONCATENATION": ((1, 6, 6, 8), ["x"], {"axis": -1}),
    "STRIDED_SLICE": ((1, 2, 6, 4), [[0, 1, 0, 0], [1, 5, 6, 4], [1, 2, 1, 1]], {}),
    "SLICE": ((1, 2, 6, 4), [[0, 1, 0, 0], [1, 2, -1, 4]], {}),
    "TRANSPOSE": ((1, 4, 6, 6), [[0, 3, 1, 2]], {}),
    "SOFTMAX": (SHAPE, [], {"beta": 1.0}),
    "LOGISTIC": (SHAPE, [], {}),
    "TANH": (SHAPE, [], {}),
    "RELU": (SHAPE, [], {}),
    "RELU6": (SHAPE, [], {}),
    "LEAKY_RELU": (SHAPE, [], {"alpha": 0.25}),
    "HARD_SWISH": (SHAPE, [], {}),
}

OUTPUTS = {"SOFTMAX": (1 / 256, -128), "LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}


def add_input(builder: ModelBuilder, item: Any, dtype: str, quantization: dict[str, Any]) -> int:
    """One further input of a case."""
    generator = np.random.default_rng(4)
    is_int8 = dtype == "int8"
    match item:
        case "x":
            return builder.tensor("x2", SHAPE, dtype, **quantization)
        case ("weights", shape, axis):
            data = generator.integers(-127, 128, shape) if is_int8 else generator.normal(size=shape)
            scales = {"scale": np.full(shape[axis], 0.01), "quantized_dimension": axis} if is_int8 else {}
            return builder.tensor("weights", shape, dtype, data=data, **scales)
        case ("bias", count):
            scales = {"scale": np.full(count, 0.0005)} if is_int8 else {}
            data = generator.integers(-99, 99, count)
            return builder.tensor("bias", [count], "int32" if is_int8 else dtype, data=data, **scales)
        case ("value", value):
            return builder.tensor("value", [], dtype, data=[value], **quantization)
        case _:
            return builder.constant(f"constant {item}", np.array(item, np.int32))


def model_of(operator: str, dtype: str) -> tuple[bytes, int]:
    """The model and its number of inputs."""
    output_shape, items, options = CASES[operator]
    builder = ModelBuilder()
    quantization: dict[str, Any] = {"scale": 0.05, "zero_point": 3} if dtype == "int8" else {}
    x = builder.tensor("x", SHAPE, dtype, **quantization)
    inputs = [x, *(add_input(builder, item, dtype, quantization) for item in items)]
    graph_inputs = [index for index, item in zip(inputs, ["x", *items], strict=True) if isinstance(item, str)]
    if dtype == "int8" and operator in OUTPUTS:
        quantization = dict(zip(("scale", "zero_point"), OUTPUTS[operator], strict=True))
    y = builder.tensor("y", output_shape, dtype, **quantization)
    builder.operator(
        operator, [*inputs, OPTIONAL] if operator == "FULLY_CONNECTED" else inputs, [y], **options
    )
    return builder.build(graph_inputs, [y]), len(graph_inputs)


def activation(dtype: str) -> np.ndarray:
    generator = np.random.default_rng(9)
    return (
        generator.integers(-128, 128, SHAPE).astype(np.int8)
        if dtype == "int8"
        else generator.normal(size=SHAPE).astype(np.float32)
    )


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("operator", list(CASES))
def test_both_references_take_the_file(operator: str, dtype: str) -> None:
    model, num_inputs = model_of(operator, dtype)
    inputs = [activation(dtype), activation(dtype)[:, ::-1]][:num_inputs]
    litert, micro = run_litert(model, inputs)[0], run_tflm(model, inputs)[0]
    assert litert.shape == CASES[operator][0]
    assert len(np.unique(litert)) > 2
    np.testing.assert_allclose(micro.reshape(litert.shape), litert, atol=1 if dtype == "int8" else 1e-5)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_split_has_two_outputs(dtype: str) -> None:
    builder = ModelBuilder()
    quantization = {"scale": 0.05, "zero_point": 3} if dtype == "int8" else {}
    axis = builder.constant("axis", np.array(3, np.int32))
    x = builder.tensor("x", SHAPE, dtype, **quantization)
    outputs = [builder.tensor(f"y{i}", (1, 6, 6, 2), dtype, **quantization) for i in range(2)]
    builder.operator("SPLIT", [axis, x], outputs, num_splits=2)
    values = activation(dtype)
    for runner in (run_litert, run_tflm):
        parts = runner(builder.build([x], outputs), [values])
        np.testing.assert_array_equal(np.concatenate(parts, axis=3), values)


def test_the_file_says_what_was_asked_for() -> None:
    model, _ = model_of("DEPTHWISE_CONV_2D", "int8")
    parsed = tflite.Model.GetRootAs(model, 0)
    assert parsed.Version() == 3
    code = parsed.OperatorCodes(0)
    assert (code.BuiltinCode(), code.Version()) == (tflite.BuiltinOperator.DEPTHWISE_CONV_2D, 3)
    graph = parsed.Subgraphs(0)
    weights = graph.Tensors(1)
    assert weights.Quantization().QuantizedDimension() == 3
    assert weights.Quantization().ScaleLength() == 8
    options = tflite.DepthwiseConv2DOptions()
    options.Init(graph.Operators(0).BuiltinOptions().Bytes, graph.Operators(0).BuiltinOptions().Pos)
    assert (options.StrideH(), options.Padding(), options.DepthMultiplier()) == (2, tflite.Padding.VALID, 2)
    assert model == model_of("DEPTHWISE_CONV_2D", "int8")[0], "the same calls give the same bytes"


def test_constants_are_aligned_and_signatures_kept() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 3], "float32", shape_signature=[-1, 3])
    odd = builder.constant("odd", np.arange(3, dtype=np.float32))
    y = builder.tensor("y", [1, 3], "float32")
    builder.operator("ADD", [x, odd], [y])
    model = builder.build([x], [y])
    assert model.find(np.arange(3, dtype=np.float32).tobytes()) % 16 == 0
    assert tflite.Model.GetRootAs(model, 0).Subgraphs(0).Tensors(x).ShapeSignatureAsNumpy().tolist() == [
        -1,
        3,
    ]


def test_mistakes_are_told() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1], "float32")
    with pytest.raises(ValueError, match="unknown operator 'CONV'"):
        builder.operator("CONV", [x], [x])
    with pytest.raises(ValueError, match="has no option"):
        builder.operator("RELU", [x], [x], alpha=1)
    with pytest.raises(ValueError, match="unknown dtype"):
        builder.tensor("y", [1], "int2")
    with pytest.raises(ValueError, match="3 values for shape"):
        builder.tensor("z", [2], "int8", data=[1, 2, 3])
