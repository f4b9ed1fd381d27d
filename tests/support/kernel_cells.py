"""One model for each type of activations with the operators that kernels of instruction sets are written for.

Each operator has inputs of its own and stands alone, so that its step of the run is its kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from bytewright.record.plan import Plan
from tflite_writer import ModelBuilder

# Of instructions, by targets that have them.
SETS = ("aarch64", "x86-64-v3", "x86-64-v4-vnni", "rv64gcv")
# Each of a table of its own, beside a peer.
CORES = {"mps3-an547": "Cortex-M55", "mps2-an386": "Cortex-M4"}
WITH_VECTORS = (*CORES, *SETS)
TYPES = ("int8", "int16", "float32", "hybrid")
_SCALES = {"int8": 0.05, "int16": 0.0002}
_IMAGE, _ELEMENTS = (1, 16, 16, 32), 4096
_SAME = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
# Products of an operator, or elements of its result where it has none.
WORK: Mapping[str, int] = {
    "CONV_2D 3x3": 16 * 16 * 32 * 9 * 32,
    "CONV_2D 1x1": 16 * 16 * 32 * 32,
    "DEPTHWISE_CONV_2D": 16 * 16 * 32 * 9,
    "FULLY_CONNECTED": 640 * 128,
    "TRANSPOSE_CONV": 8 * 8 * 32 * 9 * 16,
    "BATCH_MATMUL": 4 * 32 * 64 * 32,
    "BATCH_MATMUL adjoint": 4 * 32 * 64 * 32,
    "ADD": _ELEMENTS,
    "MUL": _ELEMENTS,
    "LOGISTIC": _ELEMENTS,
    "TANH": _ELEMENTS,
    "SOFTMAX": _ELEMENTS,
    "AVERAGE_POOL_2D": 14 * 14 * 32 * 9,
    "MAX_POOL_2D": 14 * 14 * 32 * 9,
    "MEAN": prod(_IMAGE),
    "RESIZE_BILINEAR": 32 * 32 * 32,
}
# LiteRT has no hybrid form of what has no weights.
HYBRID = ("CONV_2D 3x3", "CONV_2D 1x1", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def operators_of(kind: str) -> tuple[str, ...]:
    """The operators of a model, in the order of its results."""
    return HYBRID if kind == "hybrid" else tuple(WORK)


def number_of(operator: str) -> int:
    """The place of an operator in its model, of what a plan calls it: `3 (ADD)`."""
    return int(operator.split(maxsplit=1)[0])


def templates_of(plan: Plan, names: Sequence[str]) -> dict[str, str]:
    """By operator, the templates of instruction sets that made its kernels, without their sets; empty if none did.

    Operators are numbered in the order of their names.
    """
    found: dict[str, list[str]] = {name: [] for name in names}
    for step in plan.steps:
        for operator in step.operators:
            found[names[number_of(operator)]].append(step.template.partition(".")[2])
    return {name: " ".join(dict.fromkeys(filter(None, own))) for name, own in found.items()}


def row_of(name: str, kind: str, cells: Sequence[str]) -> str:
    """The row of an operator and a type in the table of docs/kernels.md: a cell for each of `SETS`."""
    return f"| {name} | {kind} | {' | '.join(cells)} |"


def write_cells(kind: str, folder: Path, names: Sequence[str]) -> Path:
    """The model of one of `TYPES` with some operators, in their order."""
    writer = _Writer(kind)
    results = [writer.result(name) for name in names]
    path = folder / f"{kind}.tflite"
    path.write_bytes(writer.builder.build(writer.inputs, results))
    return path


class _Writer:
    def __init__(self, kind: str) -> None:
        self.builder, self.random = ModelBuilder(), np.random.default_rng(0)
        self.element = "float32" if kind == "hybrid" else kind
        self.weights_dtype = "float32" if kind == "float32" else "int8"
        self.inputs: list[int] = []

    def result(self, name: str) -> int:
        """Writes an operator; its result."""
        kind, *form = name.split()
        match kind:
            case "CONV_2D":
                size = int(form[0][0])
                return self._layer(kind, _IMAGE, (32, size, size, 32), _IMAGE, **_SAME)
            case "DEPTHWISE_CONV_2D":
                return self._layer(kind, _IMAGE, (1, 3, 3, 32), _IMAGE, depth_multiplier=1, **_SAME)
            case "FULLY_CONNECTED":
                return self._layer(kind, (1, 640), (128, 640), (1, 128))
            case "TRANSPOSE_CONV":
                how = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
                return self._layer(kind, (1, 8, 8, 32), (16, 3, 3, 32), (1, 16, 16, 16), **how)
            case "BATCH_MATMUL":
                right = (4, 32, 64) if form else (4, 64, 32)
                operands = [self._input((4, 32, 64)), self._input(right)]
                return self._operator(kind, operands, (4, 32, 32), 30.0, adj_y=bool(form))
            case "ADD" | "MUL":
                options = {"pot_scale_int16": False} if kind == "ADD" else {}
                operands = [self._input((1, _ELEMENTS)) for _ in range(2)]
                return self._operator(kind, operands, (1, _ELEMENTS), 2.0, **options)
            case "LOGISTIC" | "TANH" | "SOFTMAX":
                shape = (64, 64) if kind == "SOFTMAX" else (1, _ELEMENTS)
                return self._squashed(kind, shape)
            case "AVERAGE_POOL_2D" | "MAX_POOL_2D":
                how = {"filter_height": 3, "filter_width": 3, **_SAME, "padding": "VALID"}
                return self._operator(kind, [self._input(_IMAGE)], (1, 14, 14, 32), 1.0, **how)
            case "MEAN":
                axes = self.builder.constant("axes", np.array([1, 2], np.int32))
                return self._operator(kind, [self._input(_IMAGE), axes], (1, 32), 1.0)
            case "RESIZE_BILINEAR":
                size = self.builder.constant("size", np.array([32, 32], np.int32))
                return self._operator(kind, [self._input(_IMAGE), size], (1, 32, 32, 32), 1.0)
            case _:
                raise ValueError(name)

    def _tensor(self, name: str, shape: tuple[int, ...], factor: float = 1.0) -> int:
        if self.element == "float32":
            return self.builder.tensor(name, shape, self.element)
        scale = _SCALES[self.element] * factor
        return self.builder.tensor(name, shape, self.element, scale=scale, zero_point=0)

    def _input(self, shape: tuple[int, ...]) -> int:
        self.inputs.append(self._tensor(f"x{len(self.inputs)}", shape))
        return self.inputs[-1]

    def _operator(
        self, kind: str, operands: list[int], shape: tuple[int, ...], factor: float, **options: Any
    ) -> int:
        result = self._tensor(kind, shape, factor)
        self.builder.operator(kind, operands, [result], **options)
        return result

    def _squashed(self, kind: str, shape: tuple[int, ...]) -> int:
        """A function whose result's scale is the reference's own."""
        source = self._input(shape)
        scales = {"int8": 1 / (128 if kind == "TANH" else 256), "int16": 1 / 32768}
        zero_point = -128 if self.element == "int8" and kind != "TANH" else 0
        if self.element == "float32":
            result = self._tensor(kind, shape)
        else:
            scale = scales[self.element]
            result = self.builder.tensor(kind, shape, self.element, scale=scale, zero_point=zero_point)
        self.builder.operator(kind, [source], [result])
        return result

    def _layer(
        self,
        kind: str,
        source: tuple[int, ...],
        weights: tuple[int, ...],
        result: tuple[int, ...],
        **options: Any,
    ) -> int:
        """An operator with weights of at most 20 hundredths, so that sums of int16 fit 32 bits."""
        x, count = self._input(source), result[-1]
        values = self.random.integers(-20, 21, weights)
        if self.weights_dtype == "float32":
            w = self.builder.constant("weights", (values / 100).astype(np.float32))
        else:
            axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
            scales = [0.01] * count
            w = self.builder.constant(
                "weights", values.astype(np.int8), scale=scales, quantized_dimension=axis
            )
        if self.element == "float32":
            b = self.builder.constant("bias", np.zeros(count, np.float32))
        else:
            wide = np.zeros(count, np.int64 if self.element == "int16" else np.int32)
            b = self.builder.constant("bias", wide, scale=[_SCALES[self.element] * 0.01] * count)
        operands = [x, w, b]
        if kind == "TRANSPOSE_CONV":
            operands = [self.builder.constant("shape", np.array(result, np.int32)), w, x, b]
        return self._operator(kind, operands, result, 30.0, **options)
