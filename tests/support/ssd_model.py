"""A network that detects objects as one file: separable convolutions, heads on four maps, post-processing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.detection_models import CODE
from tflite_writer import ModelBuilder

SIDE = 64
MAPS = (8, 4, 2, 1)
"""Rows and columns of what the heads read."""
RATIOS = (0.5, 1.0, 2.0)
"""Of the heights and widths of anchors, of which each place has one each."""
NUM_CLASSES = 5
NUM_KEPT = 8
NUM_BOXES = len(RATIOS) * sum(side * side for side in MAPS)
_SCALE = 1.0 / 24


def anchors() -> NDArray[np.float32]:
    """Centre and extents, map by map, row by row."""
    found: list[tuple[float, ...]] = []
    for side in MAPS:
        size = 0.9 / np.sqrt(side)
        for y, x in np.ndindex(side, side):
            found += [
                ((y + 0.5) / side, (x + 0.5) / side, size * np.sqrt(ratio), size / np.sqrt(ratio))
                for ratio in RATIOS
            ]
    return np.array(found, np.float32)


def ssd_model(dtype: str) -> bytes:
    """int8 to the scores, or float32 throughout; results are those of TFLite_Detection_PostProcess."""
    draft = _Draft(dtype)
    image = draft.tensor((1, SIDE, SIDE, 3))
    at, side, channels = draft.convolved(image, SIDE, 3, 8, size=3, stride=2), SIDE // 2, 8
    heads: list[tuple[int, int, int]] = []
    while side > 1:
        at, side = draft.separable(at, side, channels, channels * 2 if channels < 32 else channels)
        channels = min(channels * 2, 32)
        if side in MAPS:
            heads.append((at, side, channels))
    outputs = [draft.head(heads, depth) for depth in (4, NUM_CLASSES + 1)]
    boxes, scores = (
        draft.joined(parts, depth) for parts, depth in zip(outputs, (4, NUM_CLASSES + 1), strict=True)
    )
    scores = draft.opened(scores)
    return draft.finished(image, boxes, scores)


class _Draft:
    def __init__(self, dtype: str) -> None:
        self.dtype, self.builder = dtype, ModelBuilder()
        self.generator = np.random.default_rng(11)

    def tensor(self, shape: tuple[int, ...], scale: float = _SCALE, zero_point: int = -4) -> int:
        affine: dict[str, Any] = {"scale": scale, "zero_point": zero_point} if self.dtype == "int8" else {}
        return self.builder.tensor("t", shape, self.dtype, **affine)

    def weights(self, shape: tuple[int, ...], axis: int, gain: float = 1.4) -> list[int]:
        """Such as change the deviation of the values by about the gain, and a bias."""
        channels = shape[axis]
        taps = int(np.prod(shape)) // channels
        values = self.generator.integers(-127, 128, shape)
        bias = self.generator.integers(-700, 700, channels)
        scale = gain / 73 / float(np.sqrt(taps))
        if self.dtype == "int8":
            return [
                self.builder.constant("w", values.astype(np.int8), scale=scale),
                self.builder.constant("b", bias.astype(np.int32), scale=scale * _SCALE),
            ]
        given = ((values * scale), (bias * scale * _SCALE))
        return [self.builder.constant("c", each.astype(np.float32)) for each in given]

    def convolved(
        self,
        source: int,
        side: int,
        depth: int,
        channels: int,
        *,
        size: int,
        stride: int = 1,
        is_head: bool = False,
    ) -> int:
        result = self.tensor((1, side // stride, side // stride, channels))
        operands = [source, *self.weights((channels, size, size, depth), 0, 0.5 if is_head else 1.4)]
        options = {"stride_h": stride, "stride_w": stride, "activation": "NONE" if is_head else "RELU6"}
        self.builder.operator("CONV_2D", operands, [result], **options)
        return result

    def separable(self, source: int, side: int, depth: int, channels: int) -> tuple[int, int]:
        """Half as many rows and columns."""
        half = self.tensor((1, side // 2, side // 2, depth))
        options = {"stride_h": 2, "stride_w": 2, "activation": "RELU6"}
        operands = [source, *self.weights((1, 3, 3, depth), 3)]
        self.builder.operator("DEPTHWISE_CONV_2D", operands, [half], **options)
        return self.convolved(half, side // 2, depth, channels, size=1), side // 2

    def head(self, maps: list[tuple[int, int, int]], depth: int) -> list[tuple[int, int]]:
        """Of each map a row a box."""
        found: list[tuple[int, int]] = []
        for source, side, channels in maps:
            wide = self.convolved(
                source, side, channels, len(RATIOS) * depth, size=3 if side > 1 else 1, is_head=True
            )
            count = side * side * len(RATIOS)
            rows = self.tensor((1, count, depth))
            shape = self.builder.constant("shape", np.array((1, -1, depth), np.int32))
            self.builder.operator("RESHAPE", [wide, shape], [rows])
            found.append((rows, count))
        return found

    def joined(self, parts: list[tuple[int, int]], depth: int) -> int:
        result = self.tensor((1, sum(count for _, count in parts), depth))
        self.builder.operator("CONCATENATION", [part for part, _ in parts], [result], axis=1)
        return result

    def opened(self, scores: int) -> int:
        result = self.tensor((1, NUM_BOXES, NUM_CLASSES + 1), 1 / 256, -128)
        self.builder.operator("LOGISTIC", [scores], [result])
        return result

    def finished(self, image: int, boxes: int, scores: int) -> bytes:
        operands = [boxes, scores]
        if self.dtype == "int8":
            for position, (given, depth) in enumerate(((boxes, 4), (scores, NUM_CLASSES + 1))):
                operands[position] = self.builder.tensor("real", (1, NUM_BOXES, depth), "float32")
                self.builder.operator("DEQUANTIZE", [given], [operands[position]])
        names = ("locations", "categories", "likelihoods", "number")
        shapes = ((1, NUM_KEPT, 4), (1, NUM_KEPT), (1, NUM_KEPT), (1,))
        results = [
            self.builder.tensor(name, shape, "float32") for name, shape in zip(names, shapes, strict=True)
        ]
        self.builder.custom_operator(
            CODE,
            [*operands, self.builder.constant("anchors", anchors())],
            results,
            max_detections=NUM_KEPT,
            max_classes_per_detection=1,
            use_regular_nms=False,
            nms_score_threshold=0.77,
            nms_iou_threshold=0.4,
            num_classes=NUM_CLASSES,
            y_scale=10.0,
            x_scale=10.0,
            h_scale=5.0,
            w_scale=5.0,
        )
        return self.builder.build([image], results)
