"""Networks whose last layers have more rows than those before them, as detectors and decoders do."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

_SCALE = 1.0 / 32
RISES = {
    "nearest": ("RESIZE_NEAREST_NEIGHBOR", {}),
    "nearest from the middle": ("RESIZE_NEAREST_NEIGHBOR", {"half_pixel_centers": True}),
    "bilinear": ("RESIZE_BILINEAR", {}),
    "bilinear from the middle": ("RESIZE_BILINEAR", {"half_pixel_centers": True}),
    "transposed by two": ("TRANSPOSE_CONV", {"size": 2}),
    "transposed by three": ("TRANSPOSE_CONV", {"size": 3}),
}
"""Ways to twice as many rows and columns."""


def head_model(rise: str, dtype: str = "int8", rows: int = 16, *, skips: bool = False) -> RandomModel:
    """Two convolutions down, one way up, two convolutions; where it skips, the sum with what came before."""
    kind, options = RISES[rise]
    draft = _Draft(dtype)
    image = draft.tensor(rows, 4)
    wide = draft.convolved(image, rows, 4, 8)
    narrow = draft.convolved(draft.convolved(wide, rows, 8, 8, stride=2), rows // 2, 8, 8)
    high = draft.risen(narrow, rows, kind, dict(options))
    if skips:
        total = draft.tensor(rows, 8)
        draft.builder.operator("ADD", [high, wide], [total])
        high = total
    last = draft.convolved(draft.convolved(high, rows, 8, 8), rows, 8, 4)
    story = f"{rise} {dtype} {rows} rows{', skipping' * skips}"
    return RandomModel(draft.builder.build([image], [last]), story, ((1, rows, rows, 4),), dtype)


class _Draft:
    """A model under construction."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.builder = ModelBuilder()
        self.generator = np.random.default_rng(7)

    def tensor(self, rows: int, channels: int) -> int:
        affine: dict[str, Any] = {"scale": _SCALE, "zero_point": 3} if self.dtype == "int8" else {}
        return self.builder.tensor("t", (1, rows, rows, channels), self.dtype, **affine)

    def weights(self, *shape: int) -> list[int]:
        """Weights that keep the deviation of the values, and a bias."""
        scale = 1.0 / 64 / float(np.sqrt(np.prod(shape[1:])))
        values = self.generator.integers(-127, 128, shape)
        bias = self.generator.integers(-500, 500, shape[0])
        if self.dtype == "int8":
            return [
                self.builder.constant("w", values.astype(np.int8), scale=scale),
                self.builder.constant("b", bias.astype(np.int32), scale=scale * _SCALE),
            ]
        return [
            self.builder.constant("w", (values * scale).astype(np.float32)),
            self.builder.constant("b", (bias * scale).astype(np.float32)),
        ]

    def convolved(self, source: int, rows: int, depth: int, channels: int, stride: int = 1) -> int:
        result = self.tensor(rows // stride, channels)
        operands = [source, *self.weights(channels, 3, 3, depth)]
        self.builder.operator("CONV_2D", operands, [result], stride_h=stride, stride_w=stride)
        return result

    def risen(self, source: int, rows: int, kind: str, options: dict[str, Any]) -> int:
        result = self.tensor(rows, 8)
        if kind != "TRANSPOSE_CONV":
            size = self.builder.constant("size", np.array([rows, rows], np.int32))
            self.builder.operator(kind, [source, size], [result], **options)
            return result
        shape = self.builder.constant("shape", np.array([1, rows, rows, 8], np.int32))
        weights, bias = self.weights(8, options["size"], options["size"], 8)
        self.builder.operator(kind, [shape, weights, source, bias], [result], stride_h=2, stride_w=2)
        return result
