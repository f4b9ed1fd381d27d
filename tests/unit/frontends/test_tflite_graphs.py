"""Graphs with unusual wiring: what is shared, folded, copied, left out, or reshaped to a batch of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite import import_content
from bytewright.ir.graph import Array
from bytewright.ir.module import Module
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.data import Pad, Reshape, Transpose
from bytewright.ops.elementwise import Clamp
from bytewright.ops.quantization import Table
from support.evaluation import evaluate_function
from support.reference import LiteRt, run_tflm
from tflite_writer import OPTIONAL, ModelBuilder

SHAPE = (1, 4, 4, 2)


def build(builder: ModelBuilder, inputs: list[int], outputs: list[int]) -> tuple[bytes, Module]:
    content = builder.build(inputs, outputs)
    return content, import_content(content, "wired.tflite")


def outputs_of(module: Module, arrays: list[NDArray[Any]]) -> list[Array]:
    values = evaluate_function(module.graph, module.constants, tuple(arrays))
    return [values[name] for name in module.graph.results]


def assert_like_litert(content: bytes, module: Module, arrays: list[NDArray[Any]]) -> None:
    for found, expected in zip(outputs_of(module, arrays), LiteRt(content).run(*arrays), strict=True):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def int8(builder: ModelBuilder, name: str, shape: tuple[int, ...] = SHAPE, scale: float = 0.25) -> int:
    return builder.tensor(name, shape, "int8", scale=scale, zero_point=3)


def integers(builder: ModelBuilder, name: str, values: list[int] | list[list[int]]) -> int:
    return builder.constant(name, np.array(values, dtype=np.int32))


def ramp(shape: tuple[int, ...] = SHAPE) -> NDArray[np.int8]:
    return (np.arange(int(np.prod(shape))) * 37 % 256 - 128).astype(np.int8).reshape(shape)


def test_an_input_can_be_an_output() -> None:
    builder = ModelBuilder()
    x = int8(builder, "x")
    content, module = build(builder, [x], [x])
    assert module.graph.results == ("x",)
    assert module.graph.nodes == ()
    assert_like_litert(content, module, [ramp()])


def test_a_softmax_of_nearly_the_fixed_scale_is_as_litert_has_it() -> None:
    builder = ModelBuilder()
    x = int8(builder, "x", (4, 32))
    y = builder.tensor("y", [4, 32], "int8", scale=1 / 255.9, zero_point=-128)
    builder.operator("SOFTMAX", [x], [y])
    assert_like_litert(*build(builder, [x], [y]), [ramp((4, 32))])


def test_an_output_can_be_a_reshaped_input() -> None:
    builder = ModelBuilder()
    x, y = int8(builder, "x"), int8(builder, "y", (1, 32))
    builder.operator("RESHAPE", [x, integers(builder, "shape", [1, 32])], [y])
    content, module = build(builder, [x], [y])
    assert [type(node.operation) for node in module.graph.nodes] == [Reshape]
    assert_like_litert(content, module, [ramp()])


def test_two_outputs_can_be_one_value() -> None:
    builder = ModelBuilder()
    x, y, z = int8(builder, "x"), int8(builder, "y"), int8(builder, "z", (1, 32))
    builder.operator("RELU", [x], [y])
    builder.operator("RESHAPE", [y, integers(builder, "shape", [1, 32])], [z])
    content, module = build(builder, [x], [y, z, y])
    assert module.graph.results == ("relu_0/out", "reshape_1/out", "relu_0/out")
    assert [port.name for port in module.outputs] == ["y", "z", "y_1"]
    assert_like_litert(content, module, [ramp()])


def test_an_intermediate_can_be_an_output_too() -> None:
    builder = ModelBuilder()
    x, y, z = int8(builder, "x"), int8(builder, "y"), int8(builder, "z", SHAPE, 0.5)
    builder.operator("LEAKY_RELU", [x], [y], alpha=0.3)
    builder.operator("ADD", [y, y], [z])
    content, module = build(builder, [x], [z, y])
    assert module.graph.results == ("add_1/out", "leaky_relu_0/out")
    assert_like_litert(content, module, [ramp()])


def test_unused_inputs_stay_in_the_signature() -> None:
    builder = ModelBuilder()
    x, unused, y = int8(builder, "x"), int8(builder, "unused", (1, 3)), int8(builder, "y")
    builder.operator("RELU", [x], [y])
    content, module = build(builder, [x, unused], [y])
    assert [port.name for port in module.inputs] == ["x", "unused"]
    assert_like_litert(content, module, [ramp(), ramp((1, 3))])


def test_operators_without_effect_are_left_out() -> None:
    builder = ModelBuilder()
    x, y, dead = int8(builder, "x"), int8(builder, "y"), int8(builder, "dead", SHAPE, 1.0)
    builder.operator("LEAKY_RELU", [x], [dead], alpha=0.1)
    builder.operator("RELU", [x], [y])
    _, module = build(builder, [x], [y])
    assert [node.outputs[0].name for node in module.graph.nodes] == ["relu_1/out"]
    assert module.constants == ()


def test_constants_are_computed_at_import() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", [4], "float32"), builder.tensor("y", [4], "float32")
    first = builder.constant("first", np.arange(4, dtype=np.float32))
    total, known = builder.tensor("total", [4], "float32"), builder.tensor("known", [4], "float32")
    builder.operator("ADD", [first, first], [total])
    builder.operator("RELU6", [total], [known])
    builder.operator("MUL", [x, known], [y])
    content, module = build(builder, [x], [y, known, first])
    assert len(module.graph.nodes) == 1
    assert module.graph.results[1:] == ("relu6_1/out", "add_0/first")
    assert_like_litert(content, module, [np.array([1, -2, 3, -4], dtype=np.float32)])


def test_a_fold_beyond_the_budget_is_refused() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", [1 << 26], "float32"), builder.tensor("y", [1 << 26], "float32")
    small = builder.constant("small", np.ones(1, dtype=np.float32))
    large = builder.tensor("large", [1 << 26], "float32")
    builder.operator("PAD", [small, integers(builder, "p", [[0, (1 << 26) - 1]])], [large])
    builder.operator("ADD", [x, large], [y])
    with pytest.raises(CompileError, match="computing it at import would take too long"):
        build(builder, [x], [y])


def test_layers_share_a_weight_tensor() -> None:
    builder = ModelBuilder()
    tensors = [int8(builder, name, (1, 3, 3, 2)) for name in "xyz"]
    weights = builder.constant("w", ramp((2, 1, 1, 2)), scale=0.01)
    bias = builder.constant("b", np.array([5, -9], dtype=np.int32), scale=0.0025)
    builder.operator("CONV_2D", [tensors[0], weights, bias], [tensors[1]])
    builder.operator("CONV_2D", [tensors[1], weights, bias], [tensors[2]])
    content, module = build(builder, [tensors[0]], [tensors[2]])
    assert [c.name for c in module.constants if c.name.endswith("/weights")] == ["conv2d_0/weights"]
    assert_like_litert(content, module, [ramp((1, 3, 3, 2))])


@pytest.mark.parametrize(
    ("shape", "as_option"),
    [([-1, 32], False), ([1, 32], False), ([8, 32], False), ([8, 32], True), ([8, -1, 4], False)],
)
def test_an_open_batch_becomes_one(shape: list[int], as_option: bool) -> None:
    rest = [extent for extent in shape[1:] if extent != -1]
    result = (1, 8, 4) if -1 in shape[1:] else (1, *rest)
    builder = ModelBuilder()
    open_shape = (8, 4, 4, 2) if shape[0] == 8 else SHAPE
    signature = (-1, 4, 4, 2)
    x = builder.tensor("x", open_shape, "int8", scale=0.25, shape_signature=signature)
    y = builder.tensor(
        "y", (open_shape[0], *result[1:]), "int8", scale=0.25, shape_signature=(-1, *result[1:])
    )
    operands = [x] if as_option else [x, integers(builder, "shape", shape)]
    builder.operator("RESHAPE", operands, [y], new_shape=shape)
    if shape == [8, -1, 4]:
        # 32 elements do fill [8, 1, 4]: the constant is taken at its word, and the declaration disagrees.
        with pytest.raises(CompileError, match="declared"):
            build(builder, [x], [y])
        return
    _, module = build(builder, [x], [y])
    assert module.inputs[0].type.shape == SHAPE
    assert module.outputs[0].type.shape == result


def test_relu_between_equal_scales_is_a_clamp_and_a_table_otherwise() -> None:
    for scale, kind in ((0.25, Clamp), (0.5, Table)):
        builder = ModelBuilder()
        x, y = int8(builder, "x"), int8(builder, "y", SHAPE, scale)
        builder.operator("RELU", [x], [y])
        content, module = build(builder, [x], [y])
        assert [type(node.operation) for node in module.graph.nodes] == [kind]
        assert_like_litert(content, module, [ramp()])


def test_a_transpose_that_moves_nothing_is_a_reshape() -> None:
    for permutation, kind in (([0, 3, 1, 2], Reshape), ([0, 2, 1, 3], Transpose)):
        builder = ModelBuilder()
        shape = (1, 4, 5, 1)
        target = tuple(shape[axis] for axis in permutation)
        x, y, z = int8(builder, "x", shape), int8(builder, "y", target), int8(builder, "z", target)
        builder.operator("TRANSPOSE", [x, integers(builder, "p", permutation)], [y])
        builder.operator("RELU", [y], [z])
        content, module = build(builder, [x], [z])
        assert isinstance(module.graph.nodes[0].operation, kind)
        assert_like_litert(content, module, [ramp(shape)])


def test_pad_fills_with_the_zero_point() -> None:
    builder = ModelBuilder()
    x, y = int8(builder, "x", (1, 2)), int8(builder, "y", (1, 4))
    builder.operator("PAD", [x, integers(builder, "p", [[0, 0], [1, 1]])], [y])
    content, module = build(builder, [x], [y])
    assert module.graph.nodes[0].operation == Pad((0, 1), (0, 1), 3)
    assert_like_litert(content, module, [ramp((1, 2))])


def test_missing_bias_and_channels_whose_factor_vanishes() -> None:
    builder = ModelBuilder()
    x, y = int8(builder, "x", (2, 4)), builder.tensor("y", (2, 3), "int8", scale=0.5, zero_point=-7)
    weights = builder.constant("w", ramp((3, 4)), scale=[2.0**-40, 0.01, 2.0**-34])
    builder.operator("FULLY_CONNECTED", [x, weights, -1], [y])
    content, module = build(builder, [x], [y])
    assert_like_litert(content, module, [ramp((2, 4))])


@pytest.mark.parametrize(
    ("begin", "end", "strides", "masks", "result"),
    [
        ([0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}, (2, 3, 4, 2)),
        ([1, 0, 1], [2, 0, 3], [1, 1, 1], {"ellipsis_mask": 2}, (1, 3, 4, 2)),
        ([1, 0, 1, 1, 0], [2, 3, 3, 5, 0], [1] * 5, {"ellipsis_mask": 16}, (1, 3, 2, 4)),
        ([0, 0, 1], [0, 2, 3], [1, 1, 1], {"new_axis_mask": 1}, (1, 2, 2, 4, 5)),
        ([0, 1, 1], [0, 2, 3], [1, 1, 1], {"new_axis_mask": 1, "shrink_axis_mask": 2}, (1, 2, 4, 5)),
        ([1], [2], [1], {}, (1, 3, 4, 5)),
        ([-1, 2], [-3, 0], [-1, -1], {}, (2, 2, 4, 5)),
        ([-1, -2], [0, 0], [1, 1], {"shrink_axis_mask": 3}, (4, 5)),
        ([1, 2, 3, 4], [2, 3, 4, 5], [1, 1, 1, 1], {"shrink_axis_mask": 15}, ()),
    ],
)
def test_strided_slice_masks(
    begin: list[int], end: list[int], strides: list[int], masks: dict[str, int], result: tuple[int, ...]
) -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", (2, 3, 4, 5), "float32"), builder.tensor("y", result, "float32")
    ranges = [integers(builder, n, v) for n, v in (("b", begin), ("e", end), ("s", strides))]
    builder.operator("STRIDED_SLICE", [x, *ranges], [y], **masks)
    content, module = build(builder, [x], [y])
    array = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)
    assert_like_litert(content, module, [array])


def test_mean_without_axes_and_over_all_axes() -> None:
    for axes, keep, result in (([], False, (2, 3)), ([1, 0, -1], True, (1, 1)), ([0, 1], False, ())):
        builder = ModelBuilder()
        x, y = int8(builder, "x", (2, 3)), int8(builder, "y", result, 0.5)
        builder.operator("MEAN", [x, integers(builder, "axes", axes)], [y], keep_dims=keep)
        content, module = build(builder, [x], [y])
        assert_like_litert(content, module, [ramp((2, 3))])


def stored_as_int8(scales: list[float]) -> tuple[ModelBuilder, int, int]:
    """A float convolution of three channels on weights that a DEQUANTIZE makes; its input and output."""
    builder = ModelBuilder()
    x, y = builder.tensor("x", (1, 2, 2, 4), "float32"), builder.tensor("y", (1, 2, 2, 3), "float32")
    stored = builder.constant("stored", ramp((3, 1, 1, 4)), scale=scales)
    weights = builder.tensor("weights", (3, 1, 1, 4), "float32")
    bias = builder.constant("bias", np.zeros(3, dtype=np.float32))
    builder.operator("DEQUANTIZE", [stored], [weights])
    builder.operator("CONV_2D", [x, weights, bias], [y])
    return builder, x, y


def test_float_weights_stored_as_int8_are_dequantised_at_import() -> None:
    builder, x, y = stored_as_int8([0.125, 0.25, 0.5])
    content, module = build(builder, [x], [y])
    assert len(module.graph.nodes) == 1
    assert_like_litert(content, module, [np.ones((1, 2, 2, 4), dtype=np.float32)])


def test_tflm_dequantises_all_channels_with_the_first_scale() -> None:
    """So a file with several scales is refused for its numerics; with equal ones all is well."""
    ones = np.ones((1, 2, 2, 4), dtype=np.float32)
    builder, x, y = stored_as_int8([0.125, 0.25, 0.5])
    content = builder.build([x], [y])
    first_alone, x, y = stored_as_int8([0.125] * 3)
    alike = first_alone.build([x], [y])
    np.testing.assert_array_equal(run_tflm(content, [ones])[0], run_tflm(alike, [ones])[0])
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite", numerics=Numerics.TFLM)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW107"
    assert "3 scales, of which TensorFlow Lite Micro takes the first for all channels" in diagnostic.message
    assert diagnostic.help is not None
    assert "--numerics litert-ref" in diagnostic.help
    module = import_content(alike, "m.tflite", numerics=Numerics.TFLM)
    values = evaluate_function(module.graph, module.constants, (ones,))
    np.testing.assert_array_equal(values[module.graph.results[0]], run_tflm(alike, [ones])[0])


def test_names_of_ports_are_lower_case_identifiers() -> None:
    builder = ModelBuilder()
    x = builder.tensor("serving_default_Input 1:0", (1, 2), "float32")
    z = builder.tensor("int", (1, 2), "float32")
    y = builder.tensor("2nd/Out", (1, 2), "float32")
    builder.operator("ADD", [x, z], [y])
    _, module = build(builder, [x, z], [y])
    assert [port.name for port in module.inputs] == ["serving_default_input_1_0", "int_"]
    assert [port.name for port in module.outputs] == ["output_0_2nd_out"]


@pytest.mark.parametrize("scale", [2.0**-6, 2.0**-140])
def test_a_layer_of_constants_reaches_what_they_make(scale: float) -> None:
    """A recurrent layer's first state is zero, and old quantisers give what comes of it the least of scales."""
    builder = ModelBuilder()
    state = builder.constant("state", np.full((1, 4), 3, np.int8), scale=0.5, zero_point=3)
    weights = builder.constant("weights", np.full((2, 4), 100, np.int8), scale=0.5)
    x = builder.tensor("x", (1, 2), "int8", scale=0.5, zero_point=0)
    y = builder.tensor("y", (1, 2), "int8", scale=scale, zero_point=-7)
    z = builder.tensor("z", (1, 4), "int8", scale=scale, zero_point=-7)
    builder.operator("FULLY_CONNECTED", [state, weights, OPTIONAL], [y])
    same = builder.tensor("same", (1, 2), "int8", scale=scale, zero_point=-7)
    builder.operator("RESHAPE", [x, builder.constant("shape", np.array([1, 2], np.int32))], [same])
    builder.operator("CONCATENATION", [y, same], [z], axis=1)
    content, module = build(builder, [x], [z])
    assert_like_litert(content, module, [np.array([[5, -6]], np.int8)])
