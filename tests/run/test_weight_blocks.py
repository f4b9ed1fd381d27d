"""Weights of 4 bits with a scale for each block: as LiteRT's kernels compute them without a delegate.

Its reference kernels give zeros.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from support.reference import Array
from tflite_writer import ModelBuilder

TOLERANCE = 1e-5


def run_default_kernels(content: bytes, x: Array) -> Array:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter: Any = Interpreter(
        model_content=content,
        num_threads=1,
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def blocked(
    builder: ModelBuilder,
    values: Array,
    scales: Array,
    size: int,
    name: str = "w",
    dtype: str = "int4",
    zero_point: int | None = None,
) -> int:
    blocks = [builder.tensor("scales", scales.shape, "float16", data=scales), size]
    if zero_point is not None:
        blocks.append(builder.constant("zero_points", np.full(scales.shape, zero_point, np.int32)))
    return builder.tensor(name, values.shape, dtype, data=values, blocks=tuple(blocks))


def random_weights(shape: tuple[int, int], size: int) -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    scales = random.uniform(0.001, 0.1, (shape[0], shape[1] // size)).astype(np.float16)
    return random.integers(-8, 8, shape).astype(np.int8), scales


def layer(
    size: int = 32,
    *,
    bias: bool = False,
    activation: str = "NONE",
    dtype: str = "int4",
    wrong: int = 0,
    zero_point: int | None = None,
) -> bytes:
    builder = ModelBuilder()
    values, scales = random_weights((5, 96), size)
    x = builder.tensor("x", [4, 96], "float32")
    w = blocked(builder, values, scales[: 5 - wrong], size, dtype=dtype, zero_point=zero_point)
    y = builder.tensor("y", [4, 5], "float32")
    operands = [x, w]
    if bias:
        operands.append(builder.constant("b", np.linspace(-3, 3, 5, dtype=np.float32)))
    builder.operator("FULLY_CONNECTED", operands, [y], activation=activation, version=13)
    return builder.build([x], [y])


def inputs(seed: int) -> Array:
    random = np.random.default_rng(seed)
    return (random.normal(2, 3, (4, 96)) * [[1], [0.01], [50], [0]]).astype(np.float32)


@pytest.mark.parametrize(
    ("size", "bias", "zero_point"), [(32, False, None), (16, True, None), (96, True, None), (32, False, 3)]
)
def test_layers(size: int, bias: bool, zero_point: int | None, tmp_path: Path) -> None:
    """Zero points of blocks are not read."""
    content = layer(size, bias=bias, zero_point=zero_point)
    (tmp_path / "m.tflite").write_bytes(content)
    model = bytewright.compile(tmp_path / "m.tflite")
    for seed in range(3):
        expected = run_default_kernels(content, inputs(seed))
        atol = TOLERANCE * float(np.abs(expected).max())
        np.testing.assert_allclose(model.run(inputs(seed)), expected, rtol=0, atol=atol)


def test_expanded_weights_are_floats(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(layer(16))
    values, scales = random_weights((5, 96), 16)
    real = values * np.repeat(scales.astype(np.float64), 16, axis=1)
    expected = inputs(0).astype(np.float64) @ real.T
    found = bytewright.compile(tmp_path / "m.tflite", weights="expand").run(inputs(0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * float(np.abs(expected).max()))


def test_rows_of_a_table(tmp_path: Path) -> None:
    builder = ModelBuilder()
    values, scales = random_weights((7, 64), 32)
    i = builder.tensor("i", [3], "int32")
    table = blocked(builder, values, scales, 32)
    y = builder.tensor("y", [3, 64], "float32")
    builder.operator("EMBEDDING_LOOKUP", [i, table], [y], version=4)
    content = builder.build([i], [y])
    (tmp_path / "m.tflite").write_bytes(content)
    numbers = np.array([6, 0, 3], np.int32)
    expected = run_default_kernels(content, numbers)
    np.testing.assert_array_equal(bytewright.compile(tmp_path / "m.tflite").run(numbers), expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (layer(activation="RELU"), "LiteRT leaves out the fused activation RELU"),
        (layer(dtype="int8"), "weights with a scale a block are not of 4 bits"),
        (layer(wrong=1), "weights [5, 96] have 12 scales for blocks of 32"),
    ],
)
def test_what_no_kernel_has_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        import_content(content, "m.tflite")
    (found,) = caught.value.diagnostics
    assert found.code == "BW107"
    assert message in found.message


def test_a_convolution_has_no_blocks() -> None:
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 2, 2, 32], "float32")
    values = np.ones((1, 1, 1, 32), np.int8)
    w = blocked(builder, values, np.ones((1, 1), np.float16), 32)
    y = builder.tensor("y", [1, 2, 2, 1], "float32")
    builder.operator("CONV_2D", [x, w, builder.constant("b", np.zeros(1, np.float32))], [y])
    with pytest.raises(CompileError, match="a scale for each block of 32"):
        import_content(builder.build([x], [y]), "m.tflite")


def test_scales_that_are_not_there_are_damage() -> None:
    builder = ModelBuilder()
    x, y = builder.tensor("x", [1, 32], "float32"), builder.tensor("y", [1, 2], "float32")
    w = builder.tensor("w", [2, 32], "int4", data=np.ones((2, 32)), blocks=(9, 32))
    builder.operator("FULLY_CONNECTED", [x, w], [y])
    with pytest.raises(CompileError, match="the scales of the blocks of tensor 2"):
        import_content(builder.build([x], [y]), "m.tflite")
