"""Weights of 4 bits with `--optimize size`: they stay two in a byte, and results are LiteRT's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.execute.run import run_batch
from bytewright.frontends.tflite.importer import import_content
from bytewright.inspect.check import check_bundle
from bytewright.lower.pack_nibbles import FEWEST_ELEMENTS
from bytewright.record.buffers import BufferRole
from bytewright.validate.parameters import check_parameters
from support.c_program import WARNINGS
from support.compilers import host_build
from support.reference import LiteRt
from tflite_writer import OPTIONAL, ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
# All of them are read in one of these kernels each; the first two have odd numbers of elements.
SHAPES = {"CONV_2D": (9, 3, 3, 5), "DEPTHWISE_CONV_2D": (1, 7, 5, 9), "FULLY_CONNECTED": (6, 270)}


def network(dtype: str, *, is_float: bool = False) -> bytes:
    """A convolution, a depthwise one and a fully connected layer, whose weights all fit 4 bits."""
    generator, builder = np.random.default_rng(4), ModelBuilder()
    data = "float32" if is_float else "int8"

    def activation(name: str, shape: tuple[int, ...]) -> int:
        return builder.tensor(name, shape, data, **({} if is_float else {"scale": 0.11, "zero_point": -3}))

    def layer(kind: str, x: int, result: tuple[int, ...], **options: Any) -> int:
        shape, axis = SHAPES[kind], 3 if kind == "DEPTHWISE_CONV_2D" else 0
        values = generator.integers(-8 if dtype == "int8" else -7, 8, shape)
        # Their least value too, which both halves of a byte have.
        values.reshape(-1)[:2] = -7 if is_float else -8
        scales = generator.uniform(0.02, 0.1, shape[axis]).astype(np.float32)
        w = builder.tensor("w", shape, dtype, data=values, scale=scales, quantized_dimension=axis)
        count = shape[axis]
        if is_float:
            b = builder.constant("b", generator.normal(size=count).astype(np.float32))
        else:
            b = builder.constant(
                "b", generator.integers(-99, 99, count).astype(np.int32), scale=scales * 0.11
            )
        y = activation(kind, result)
        builder.operator(kind, [x, w, b], [y], **options)
        return y

    x = activation("x", (1, 5, 6, 5))
    y = layer("CONV_2D", x, (1, 5, 6, 9))
    if not is_float:  # LiteRT has no such kernel under floats
        y = layer("DEPTHWISE_CONV_2D", y, (1, 5, 6, 9), depth_multiplier=1)
    y = layer("FULLY_CONNECTED", y, (1, 6))
    return builder.build([x], [y])


def embedding(dtype: str, columns: int = 22) -> bytes:
    """Rows of a table."""
    generator, builder = np.random.default_rng(5), ModelBuilder()
    values = generator.integers(-8, 8, (24, columns))
    scales = generator.uniform(0.02, 0.1, 24).astype(np.float32)
    table = builder.tensor("table", values.shape, dtype, data=values, scale=scales, quantized_dimension=0)
    x, y = builder.tensor("x", (7,), "int32"), builder.tensor("y", (7, columns), "float32")
    builder.operator("EMBEDDING_LOOKUP", [x, table], [y])
    return builder.build([x], [y])


def test_rows_that_share_a_byte_are_refused() -> None:
    """LiteRT reads every other one of them from the byte in which the row before it ends."""
    with pytest.raises(CompileError, match="rows of 23 values of 4 bits"):
        import_content(embedding("int4", 23), "table.tflite")


def inputs(content: bytes) -> list[Array]:
    generator, (detail,) = np.random.default_rng(1), LiteRt(content).inputs
    if detail["dtype"] is np.float32:
        return [generator.normal(size=detail["shape"]).astype(np.float32) for _ in range(3)]
    low, high = (0, 24) if detail["dtype"] is np.int32 else (-128, 128)
    return [generator.integers(low, high, detail["shape"]).astype(detail["dtype"]) for _ in range(3)]


def weights_of(compiled: bytewright.CompiledModel) -> list[int]:
    """Bytes of the constants that are no biases, scales or tables, the greatest first."""
    sizes = [each.size_bytes for each in compiled.plan.buffers_of(BufferRole.PARAMETER)]
    return sorted((size for size in sizes if size >= FEWEST_ELEMENTS // 2), reverse=True)


MODELS = {
    "int8 activations": (lambda: network("int4"), [1620, 405, 315]),
    "float activations": (lambda: network("int4", is_float=True), [1620, 405]),
    "int8 weights that fit": (lambda: network("int8"), [1620, 405, 315]),
    "a table": (lambda: embedding("int4"), [528]),
}


@pytest.mark.parametrize("name", MODELS)
def test_weights_stay_packed_and_are_exact(name: str, tmp_path: Path) -> None:
    make, sizes = MODELS[name]
    content = make()
    path, given, model = tmp_path / "model.tflite", inputs(content), LiteRt(content)
    path.write_bytes(content)
    wide = bytewright.compile(path)
    assert weights_of(wide) == sizes
    compiled = bytewright.compile(path, optimize="size")
    assert weights_of(compiled) == [(size + 1) // 2 for size in sizes if (size + 1) // 2 >= 128]
    folder = compiled.write(tmp_path / "bundle")
    check_bundle(folder)
    assert not check_parameters(read_bundle(folder), path).wrong
    options = host_build(flags=WARNINGS, sanitize=True)
    found = run_batch(folder, [[x] for x in given], options=options).outputs
    for (own,), x in zip(found, given, strict=True):
        (wanted,) = model.run(x)
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
        else:
            np.testing.assert_array_equal(own, wanted)


def test_a_core_with_instructions_leaves_them_out_and_says_so(tmp_path: Path) -> None:
    """Without `--optimize size` their kernels read whole bytes."""
    path = tmp_path / "model.tflite"
    path.write_bytes(network("int4"))
    packed, wide = (
        bytewright.compile(path, target="mps3-an547", optimize=each) for each in ("size", "speed")
    )
    assert weights_of(packed) == [810, 203, 158]
    assert sum(weights_of(wide)) >= 1620 + 405 + 315
    steps = [step for step in packed.plan.steps if step.reads]
    remark = "not by instructions: with --optimize size its weights stay in 4 bits each"
    assert {remark} <= {each for step in steps for each in step.remarks}


def test_few_weights_and_wide_ones_are_left(tmp_path: Path) -> None:
    """One element out of 4 bits, or fewer than are worth the code."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 16), "int8", scale=0.1)
    for name, shape, least in (("a", (16, 16), -9), ("b", (15, 16), -8)):
        values = np.ones(shape, np.int8)
        values[0, 0] = least
        w = builder.tensor(name, shape, "int8", data=values, scale=0.05)
        y = builder.tensor(f"y{name}", (1, shape[0]), "int8", scale=0.1)
        builder.operator("FULLY_CONNECTED", [x, w, OPTIONAL], [y])
        x = x if name == "b" else y
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.build([0], [y]))
    assert weights_of(bytewright.compile(path, optimize="size")) == [256, 240]
