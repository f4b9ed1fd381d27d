"""Random networks over a line, [1, T, 1, C]: what audio, ECG and vibration are classified with, in int8.

Convolutions over time, plain, depthwise and of single moments, with strides; pools, sums with what went before, and a
mean or a fully connected layer at the end. Some are images of two or three columns or channels instead, whose rows are
as short.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

Shape = tuple[int, ...]
_SCALE = 1.0 / 32


class _Network:
    """A network under construction; every tensor has the same scale."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = ModelBuilder()
        self.shapes: dict[int, Shape] = {}
        self.story: list[str] = []

    def one_of(self, *items: int) -> int:
        return int(items[int(self.random.integers(len(items)))])

    def tensor(self, shape: Shape) -> int:
        number = self.builder.tensor(f"t{len(self.shapes)}", shape, "int8", scale=_SCALE, zero_point=-3)
        self.shapes[number] = shape
        return number

    def layer(self, source: int) -> int:
        """One more operator on a tensor."""
        match int(self.random.integers(6)):
            case 0 | 1:
                return self.filter(source, self.one_of(3, 5, 9), self.one_of(1, 1, 2), depthwise=True)
            case 2 | 3:
                return self.filter(source, 1, 1)
            case 4:
                return self.filter(source, self.one_of(3, 5), self.one_of(1, 2))
            case _:
                return self.pool(source)

    def filter(self, source: int, size: int, stride: int, *, depthwise: bool = False) -> int:
        _, moments, columns, depth = self.shapes[source]
        channels = depth if depthwise else self.one_of(1, 2, 3, 4, 8, 9, 16, 32)
        width = 1 if columns == 1 or size == 1 else self.one_of(1, 3)
        shape = (1, size, width, depth) if depthwise else (channels, size, width, depth)
        weights = self.random.integers(-127, 128, shape, np.int8)
        scale = 2 / (127 * (size * width * (1 if depthwise else depth)) ** 0.5)
        axis = 3 if depthwise else 0
        scales = np.full(channels, scale)
        bias = self.random.integers(-2000, 2000, channels, np.int32)
        operands = [
            source,
            self.builder.constant("weights", weights, scale=scales, quantized_dimension=axis),
            self.builder.constant("bias", bias, scale=scales * _SCALE),
        ]
        padding = "SAME" if size > moments else ("SAME", "VALID")[self.one_of(0, 0, 1)]
        if padding == "VALID" and width > columns:
            padding = "SAME"
        result = self.tensor(self.windowed(source, (size, width), stride, padding, channels))
        kind, extra = ("DEPTHWISE_CONV_2D", {"depth_multiplier": 1}) if depthwise else ("CONV_2D", {})
        options: dict[str, Any] = {"padding": padding, "stride_h": stride, "stride_w": 1, **extra}
        activation = ("NONE", "RELU")[self.one_of(0, 1)]
        self.builder.operator(kind, operands, [result], activation=activation, **options)
        self.story.append(f"{kind} {size}x{width}/{stride} {padding} -> {channels}")
        return result

    def windowed(self, source: int, size: tuple[int, int], stride: int, padding: str, channels: int) -> Shape:
        _, moments, columns, _ = self.shapes[source]
        if padding == "VALID":
            return (1, (moments - size[0]) // stride + 1, columns - size[1] + 1, channels)
        return (1, -(-moments // stride), columns, channels)

    def pool(self, source: int) -> int:
        if self.shapes[source][1] < 2:
            return self.filter(source, 1, 1)
        result = self.tensor(self.windowed(source, (2, 1), 2, "VALID", self.shapes[source][3]))
        options = {"padding": "VALID", "stride_h": 2, "stride_w": 1, "filter_height": 2, "filter_width": 1}
        kind = ("MAX_POOL_2D", "AVERAGE_POOL_2D")[self.one_of(0, 1)]
        self.builder.operator(kind, [source], [result], activation="NONE", **options)
        self.story.append(kind)
        return result

    def sum(self, first: int, second: int) -> int:
        result = self.tensor(self.shapes[first])
        self.builder.operator("ADD", [first, second], [result], activation="NONE")
        self.story.append("ADD")
        return result

    def tail(self, source: int) -> int:
        """A mean over time, or a fully connected layer over all of it."""
        shape = self.shapes[source]
        result = self.tensor((1, shape[3]))
        axes = self.builder.constant("axes", np.array([1, 2], np.int32))
        self.builder.operator("MEAN", [source, axes], [result], keep_dims=False)
        self.story.append("MEAN")
        return result


def line_network(seed: int) -> RandomModel:
    """A network drawn from a seed."""
    network = _Network(seed)
    columns = network.one_of(1, 1, 1, 1, 2)
    shape = (1, network.one_of(16, 25, 40, 64, 128), columns, network.one_of(1, 2, 3, 9))
    at = first = network.tensor(shape)
    for _ in range(network.one_of(3, 4, 5, 6)):
        before, at = at, network.layer(at)
        if network.shapes[before] == network.shapes[at] and network.one_of(0, 1):
            at = network.sum(before, at)
    if network.one_of(0, 1):
        at = network.tail(at)
    story = f"line {seed}: {shape}, {', '.join(network.story)}"
    return RandomModel(network.builder.build([first], [at]), story, (shape,), "int8")
