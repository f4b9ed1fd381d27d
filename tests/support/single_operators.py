"""Operators of int8 side by side in one model, each of inputs of its own: what a kernel alone costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflite_writer import ModelBuilder

PIXELS = (1, 30, 30, 64)


def write_single_operators(folder: Path) -> Path:
    """ADD, MUL and SQUARED_DIFFERENCE of 4,096 elements, both pools of 3 x 3, a MEAN, and a layer of large weights."""
    builder = ModelBuilder()

    def tensor(name: str, shape: tuple[int, ...], scale: float = 0.05, zero_point: int = 3) -> int:
        return builder.tensor(name, shape, "int8", scale=scale, zero_point=zero_point)

    shape = (1, 16, 16, 16)
    left, right = tensor("left", shape), tensor("right", shape, 0.03, -7)
    image, vector = tensor("image", PIXELS), tensor("vector", (1, 2048))
    square = tensor("square", (1, 16, 16, 64))
    window = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "VALID"}
    results = [tensor("add", shape, 0.07), tensor("mul", shape, 0.04)]
    builder.operator("ADD", [left, right], [results[0]])
    builder.operator("MUL", [left, right], [results[1]])
    results.append(tensor("squares", shape, 0.1))
    builder.operator("SQUARED_DIFFERENCE", [left, right], [results[-1]])
    for name, kind in (("average", "AVERAGE_POOL_2D"), ("greatest", "MAX_POOL_2D")):
        results.append(tensor(name, (1, 28, 28, 64)))
        builder.operator(kind, [image], [results[-1]], **window)
    results.append(tensor("means", (1, 64)))
    builder.operator("MEAN", [square, builder.constant("axes", np.array([1, 2], np.int32))], [results[-1]])
    weights = np.random.default_rng(0).integers(64, 128, (100, 2048)).astype(np.int8)
    operands = [vector, builder.constant("weights", weights, scale=0.01)]
    operands.append(builder.constant("bias", np.zeros(100, np.int32), scale=0.05 * 0.01))
    results.append(tensor("heavy", (1, 100), 50.0))
    builder.operator("FULLY_CONNECTED", operands, [results[-1]])
    path = folder / "single.tflite"
    path.write_bytes(builder.build([left, right, image, vector, square], results))
    return path
