"""A small network that runs by rows, as a bundle that tests damage.

A convolution, a depthwise convolution with a stride of two, two more layers whose sum with what they began from goes
on, a depthwise convolution with a stride again, one of single pixels, and a mean of what that gives.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.options import Options, Rows
from bytewright.record.plan import Plan
from bytewright.record.plan_file import plan_of
from bytewright.target.registry import load_target
from support.digits_bundle import write_document
from tflite_writer import ModelBuilder

Document = dict[str, Any]


class _Layers:
    """A model under construction; every tensor has the scale 1/32."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.builder, self.random = ModelBuilder(), np.random.default_rng(5)
        self.shapes: dict[int, tuple[int, ...]] = {}
        self.first = self.tensor(shape)

    def tensor(self, shape: tuple[int, ...]) -> int:
        number = self.builder.tensor(f"t{len(self.shapes)}", shape, "int8", scale=1 / 32, zero_point=-3)
        self.shapes[number] = shape
        return number

    def filter(
        self, source: int, channels: int, size: int = 3, stride: int = 1, *, depthwise: bool = False
    ) -> int:
        _, height, width, depth = self.shapes[source]
        shape = (1, size, size, depth) if depthwise else (channels, size, size, depth)
        weights = self.random.integers(-127, 128, shape, np.int8)
        scale = 4 / (127 * size * size * (1 if depthwise else depth) ** 0.5)
        axis = 3 if depthwise else 0
        scales = np.full(shape[axis], scale)
        bias = self.random.integers(-2000, 2000, shape[axis], np.int32)
        operands = [
            source,
            self.builder.constant("weights", weights, scale=scales, quantized_dimension=axis),
            self.builder.constant("bias", bias, scale=scales / 32),
        ]
        result = self.tensor((1, -(-height // stride), -(-width // stride), shape[axis]))
        kind, extra = ("DEPTHWISE_CONV_2D", {"depth_multiplier": 1}) if depthwise else ("CONV_2D", {})
        options: dict[str, Any] = {"padding": "SAME", "stride_h": stride, "stride_w": stride, **extra}
        self.builder.operator(kind, operands, [result], activation="NONE", **options)
        return result

    def sum(self, first: int, second: int) -> int:
        result = self.tensor(self.shapes[first])
        self.builder.operator("ADD", [first, second], [result], activation="NONE")
        return result


def row_model() -> bytes:
    """The file."""
    layers = _Layers((1, 18, 14, 2))
    filtered = layers.filter(layers.first, 8)
    smaller = layers.filter(filtered, 8, stride=2, depthwise=True)
    inner = layers.filter(layers.filter(smaller, 8, depthwise=True), 8, 1)
    total = layers.sum(smaller, inner)
    last = layers.filter(layers.filter(total, 8, stride=2, depthwise=True), 4, 1)
    pooled = layers.tensor((1, 4))
    axes = layers.builder.constant("axes", np.array([1, 2], np.int32))
    layers.builder.operator("MEAN", [last, axes], [pooled], keep_dims=False)
    return layers.builder.build([layers.first], [pooled])


@cache
def compiled_by_rows(target: str = "host", rows: Rows = Rows.AUTO) -> Compiled:
    """The network for a target."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.tflite"
        path.write_bytes(row_model())
        return compile_model(path, load_target(target), Options(rows=rows))


def row_document(target: str = "host") -> Document:
    """Its plan.json; a copy, free to be changed."""
    return copy.deepcopy(compiled_by_rows(target).document)


def row_plan(change: Callable[[Document], None] = lambda _: None) -> Plan:
    """Its plan, changed."""
    document = row_document()
    change(document)
    return plan_of(document)


def write_by_rows(directory: Path, change: Callable[[Document], None] = lambda _: None) -> Path:
    """Its bundle in a folder, with a plan.json that was changed and hashed again; returns the folder."""
    write_bundle(compiled_by_rows().files, directory)
    document = row_document()
    change(document)
    write_document(directory, document)
    return directory
