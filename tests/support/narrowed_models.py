"""A network of two layers, of which the first has channels without weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tflite_writer import ModelBuilder


def written(path: Path, *, empty: tuple[int, ...] = (1, 3)) -> Path:
    """x [1,2,2,1] -> 4 channels, of which some have weights of zero -> 2 channels, the first 4 and then 8 products."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 1), "int8", scale=0.5, zero_point=3)
    inner = builder.tensor("inner", (1, 2, 2, 4), "int8", scale=0.5, zero_point=-4)
    y = builder.tensor("y", (1, 2, 2, 2), "int8", scale=2.0, zero_point=1)
    weights = np.arange(10, 50, 10, dtype=np.int8).reshape(4, 1, 1, 1)
    weights[list(empty)] = 0
    first = builder.constant("w1", weights, scale=0.25, zero_point=0)
    second = builder.constant(
        "w2", np.arange(1, 9, dtype=np.int8).reshape(2, 1, 1, 4), scale=0.25, zero_point=0
    )
    bias = builder.constant("b1", np.array([8, 16, 24, 32], np.int32), scale=0.125, zero_point=0)
    bias2 = builder.constant("b2", np.array([5, 6], np.int32), scale=0.125, zero_point=0)
    options = {"padding": "VALID", "stride_h": 1, "stride_w": 1}
    builder.operator("CONV_2D", [x, first, bias], [inner], **options)
    builder.operator("CONV_2D", [inner, second, bias2], [y], **options)
    path.write_bytes(builder.build([x], [y]))
    return path
