"""Operators of one type of activations side by side in one model, each of inputs of its own: int16 beside int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflite_writer import ModelBuilder


def write_operators_of(element: str, folder: Path) -> Path:
    """A depthwise and a dense convolution of 3 x 3, a fully connected layer, an ADD and a MUL, weights of int8."""
    builder, random = ModelBuilder(), np.random.default_rng(0)
    wide = "int64" if element == "int16" else "int32"
    scales = {"int8": 0.05, "int16": 0.0002}

    def tensor(name: str, shape: tuple[int, ...], factor: float = 1.0) -> int:
        return builder.tensor(name, shape, element, scale=scales[element] * factor, zero_point=0)

    def layer(kind: str, source: int, weights: tuple[int, ...], result: int, **options: object) -> None:
        num = weights[-1] if kind.startswith("DEPTHWISE") else weights[0]
        values = random.integers(-20, 21, weights).astype(np.int8)
        operands = [source, builder.constant(f"weights of {kind}", values, scale=0.01)]
        bias = np.zeros(num, wide)
        operands.append(builder.constant(f"bias of {kind}", bias, scale=scales[element] * 0.01))
        builder.operator(kind, operands, [result], **options)

    image, vector = tensor("image", (1, 16, 16, 32)), tensor("vector", (1, 640))
    left, right = tensor("left", (1, 4096)), tensor("right", (1, 4096))
    results = [tensor(name, (1, 16, 16, 32), 30.0) for name in ("depthwise", "dense")]
    same = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    layer("DEPTHWISE_CONV_2D", image, (1, 3, 3, 32), results[0], depth_multiplier=1, **same)
    layer("CONV_2D", image, (32, 3, 3, 32), results[1], **same)
    results.append(tensor("connected", (1, 128), 30.0))
    layer("FULLY_CONNECTED", vector, (128, 640), results[-1])
    for name, kind in (("sum", "ADD"), ("product", "MUL")):
        results.append(tensor(name, (1, 4096), 2.0))
        options = {"pot_scale_int16": False} if kind == "ADD" else {}
        builder.operator(kind, [left, right], [results[-1]], **options)
    path = folder / f"{element}.tflite"
    path.write_bytes(builder.build([image, vector, left, right], results))
    return path
