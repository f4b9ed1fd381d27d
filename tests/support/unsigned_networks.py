"""Networks in uint8 throughout, as TensorFlow 1 quantised them: MobileNetV1 in small, SSD and DeepLab on its maps.

Weights are random, most of them near their zero point and some at the ends of the type, as training with one scale a
tensor leaves them; scales are such that values stay alive.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod, sqrt

import numpy as np

from support.detection_models import CODE
from support.random_models import RandomModel
from tflite_writer import ModelBuilder

SIDE = 32
NUM_CLASSES = 4
_ANCHORS = 2
_SPREAD = 30


@dataclass(frozen=True)
class _Value:
    index: int
    shape: tuple[int, ...]
    scale: float
    zero_point: int


class _Layers:
    def __init__(self, seed: int) -> None:
        self.builder, self.generator = ModelBuilder(), np.random.default_rng(seed)
        self.count = 0

    def value(self, shape: tuple[int, ...], scale: float, zero_point: int = 0) -> _Value:
        self.count += 1
        tensor = self.builder.tensor(f"t{self.count}", shape, "uint8", scale=scale, zero_point=zero_point)
        return _Value(tensor, shape, scale, zero_point)

    def convolved(
        self,
        x: _Value,
        kernel: int,
        channels: int,
        stride: int = 1,
        *,
        is_head: bool = False,
        kind: str = "CONV_2D",
    ) -> _Value:
        """A convolution of SAME padding; of a depthwise one `channels` are those of the input."""
        is_depthwise = kind == "DEPTHWISE_CONV_2D"
        shape = (1, kernel, kernel, channels) if is_depthwise else (channels, kernel, kernel, x.shape[3])
        zero_point = int(self.generator.integers(70, 190))
        values = np.clip(np.rint(self.generator.normal(zero_point, _SPREAD, shape)), 0, 255).astype(np.uint8)
        values.reshape(-1)[:2] = 0, 255
        fan_in = kernel * kernel if is_depthwise else prod(shape[1:])
        scale = 1.5 / (_SPREAD * sqrt(fan_in))
        weights = self.builder.tensor(
            f"w{self.count}", shape, "uint8", data=values, scale=scale, zero_point=zero_point
        )
        biases = np.rint(self.generator.normal(0, 0.3, channels) / (x.scale * scale)).astype(np.int32)
        bias = self.builder.constant(f"b{self.count}", biases, scale=x.scale * scale)
        rows, columns = (-(-extent // stride) for extent in x.shape[1:3])
        own = {
            "scale": float(self.generator.uniform(0.02, 0.05)),
            "zero_point": int(self.generator.integers(90, 160)),
        }
        y = self.value((1, rows, columns, channels), **(own if is_head else {"scale": 0.0235}))
        self.builder.operator(
            kind,
            [x.index, weights, bias],
            [y.index],
            padding="SAME",
            stride_h=stride,
            stride_w=stride,
            activation="NONE" if is_head else "RELU6",
        )
        return y

    def resized(self, x: _Value, rows: int, columns: int) -> _Value:
        y = self.value((1, rows, columns, x.shape[3]), x.scale, x.zero_point)
        size = self.builder.constant(f"size{self.count}", np.array([rows, columns], np.int32))
        self.builder.operator("RESIZE_BILINEAR", [x.index, size], [y.index], align_corners=True)
        return y

    def separable(self, x: _Value, channels: int, stride: int = 1) -> _Value:
        inner = self.convolved(x, 3, x.shape[3], stride, kind="DEPTHWISE_CONV_2D")
        return self.convolved(inner, 1, channels)

    def reshaped(self, x: _Value, shape: tuple[int, ...]) -> _Value:
        y = self.value(shape, x.scale, x.zero_point)
        self.builder.operator("RESHAPE", [x.index], [y.index], new_shape=list(shape))
        return y

    def backbone(self) -> tuple[_Value, list[_Value]]:
        """The image, and the maps of 8, 4 and 2 rows."""
        image = self.value((1, SIDE, SIDE, 3), 1 / 128, 128)
        x = self.separable(self.convolved(image, 3, 8, 2), 16)
        maps: list[_Value] = []
        for channels in (24, 32, 32):
            x = self.separable(self.separable(x, channels, 2), channels)
            maps.append(x)
        return image, maps


def mobilenet(seed: int = 0) -> RandomModel:
    """Separable convolutions, a pool of all, a layer, and SOFTMAX."""
    layers = _Layers(seed)
    image, maps = layers.backbone()
    pooled = layers.value((1, 1, 1, 32), maps[-1].scale)
    layers.builder.operator(
        "AVERAGE_POOL_2D", [maps[-1].index], [pooled.index], padding="VALID", filter_height=2, filter_width=2
    )
    classes = layers.reshaped(layers.convolved(pooled, 1, 10, is_head=True), (1, 10))
    result = layers.value((1, 10), 1 / 256)
    layers.builder.operator("SOFTMAX", [classes.index], [result.index])
    content = layers.builder.build([image.index], [result.index])
    return RandomModel(content, "mobilenet in uint8", (image.shape,), "uint8")


def ssd(seed: int = 1) -> RandomModel:
    """Heads of scales of their own on three maps, joined in another; LOGISTIC, and post-processing of uint8."""
    layers = _Layers(seed)
    image, maps = layers.backbone()
    num_boxes = _ANCHORS * sum(x.shape[1] * x.shape[2] for x in maps)
    joined: list[_Value] = []
    for depth in (4, NUM_CLASSES + 1):
        parts = [
            layers.reshaped(
                layers.convolved(x, 1, _ANCHORS * depth, is_head=True),
                (1, _ANCHORS * x.shape[1] * x.shape[2], depth),
            )
            for x in maps
        ]
        joined.append(layers.value((1, num_boxes, depth), 0.045, 131))
        layers.builder.operator("CONCATENATION", [part.index for part in parts], [joined[-1].index], axis=1)
    boxes, logits = joined
    scores = layers.value(logits.shape, 1 / 256)
    layers.builder.operator("LOGISTIC", [logits.index], [scores.index])
    places = layers.generator.integers(40, 220, (num_boxes, 4)).astype(np.uint8)
    anchors = layers.builder.tensor(
        "anchors", places.shape, "uint8", data=places, scale=1 / 256, zero_point=0
    )
    shapes = ([1, 6, 4], [1, 6], [1, 6], [1])
    results = [layers.builder.tensor(f"result{i}", shape, "float32") for i, shape in enumerate(shapes)]
    layers.builder.custom_operator(
        CODE,
        [boxes.index, scores.index, anchors],
        results,
        max_detections=6,
        max_classes_per_detection=1,
        use_regular_nms=False,
        nms_score_threshold=0.3,
        nms_iou_threshold=0.6,
        num_classes=NUM_CLASSES,
        y_scale=10.0,
        x_scale=10.0,
        h_scale=5.0,
        w_scale=5.0,
    )
    return RandomModel(layers.builder.build([image.index], results), "ssd in uint8", (image.shape,), "uint8")


def deeplab(seed: int = 2) -> RandomModel:
    """The mean of a map beside the map, logits, and the class of each pixel of the image."""
    layers = _Layers(seed)
    image, (_, x, _) = layers.backbone()
    mean = layers.value((1, 1, 1, x.shape[3]), x.scale)
    layers.builder.operator(
        "AVERAGE_POOL_2D", [x.index], [mean.index], padding="VALID", filter_height=4, filter_width=4
    )
    branches = [layers.resized(layers.convolved(mean, 1, 8), 4, 4), layers.convolved(x, 1, 8)]
    joined = layers.value((1, 4, 4, 16), branches[0].scale)
    layers.builder.operator("CONCATENATION", [branch.index for branch in branches], [joined.index], axis=3)
    logits = layers.convolved(layers.convolved(joined, 1, 8), 1, NUM_CLASSES, is_head=True)
    logits = layers.resized(layers.resized(logits, 9, 9), SIDE, SIDE)
    classes = layers.builder.tensor("classes", (1, SIDE, SIDE), "int32")
    axis = layers.builder.constant("axis", np.array(3, np.int32))
    layers.builder.operator("ARG_MAX", [logits.index, axis], [classes], output_type="INT32")
    content = layers.builder.build([image.index], [classes, logits.index])
    return RandomModel(content, "deeplab in uint8", (image.shape,), "uint8")
