"""Models that mostly move bytes: heads of detectors, splits, pads and concatenations, nested and shared, in int8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

Shape = tuple[int, ...]
SCALE, ZERO_POINT = 1.0 / 32, 3


@dataclass
class Draft:
    """A model under construction; every tensor has the same quantisation, as moving asks for."""

    seed: int = 0
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    shapes: dict[int, Shape] = field(default_factory=dict[int, Shape])
    inputs: list[int] = field(default_factory=list[int])
    numbers: Iterator[int] = field(default_factory=count)

    def tensor(self, shape: Shape, name: str | None = None) -> int:
        """A tensor that an operator makes, or the application."""
        name = name or f"tensor_{len(self.shapes)}"
        number = self.builder.tensor(name, shape, "int8", scale=SCALE, zero_point=ZERO_POINT)
        self.shapes[number] = shape
        return number

    def input(self, shape: Shape) -> int:
        """An input of the model."""
        number = self.tensor(shape, f"input_{len(self.inputs)}")
        self.inputs.append(number)
        return number

    def _integers(self, values: Any) -> int:
        return self.builder.constant(f"constant_{next(self.numbers)}", np.array(values, np.int32))

    def dense(self, source: int, channels: int) -> int:
        """A fully connected layer on a matrix of one row."""
        generator = np.random.default_rng(self.seed + source)
        rows = int(np.prod(self.shapes[source]))
        weights = generator.integers(-127, 128, (channels, rows)).astype(np.int8)
        bias = generator.integers(-500, 500, channels).astype(np.int32)
        scale = 1.0 / 64 / float(np.sqrt(rows))
        w = self.builder.constant(f"weights_{source}_{channels}", weights, scale=scale)
        b = self.builder.constant(f"bias_{source}_{channels}", bias, scale=scale * SCALE)
        result = self.tensor((1, channels))
        self.builder.operator("FULLY_CONNECTED", [source, w, b], [result])
        return result

    def conv(self, source: int, channels: int, stride: int = 1) -> int:
        """A 3x3 convolution of an image."""
        _, height, width, depth = self.shapes[source]
        generator = np.random.default_rng(self.seed + 1000 + source)
        weights = generator.integers(-127, 128, (channels, 3, 3, depth)).astype(np.int8)
        bias = generator.integers(-500, 500, channels).astype(np.int32)
        scale = 1.0 / 64 / float(np.sqrt(9 * depth))
        w = self.builder.constant(f"weights_{source}_{channels}", weights, scale=scale)
        b = self.builder.constant(f"bias_{source}_{channels}", bias, scale=scale * SCALE)
        result = self.tensor((1, -(-height // stride), -(-width // stride), channels))
        self.builder.operator(
            "CONV_2D", [source, w, b], [result], padding="SAME", stride_h=stride, stride_w=stride
        )
        return result

    def add(self, first: int, second: int) -> int:
        """A sum."""
        result = self.tensor(self.shapes[first])
        self.builder.operator("ADD", [first, second], [result])
        return result

    def reshape(self, source: int, shape: Shape) -> int:
        """The same elements under another shape."""
        result = self.tensor(shape)
        self.builder.operator("RESHAPE", [source, self._integers(shape)], [result], new_shape=list(shape))
        return result

    def concat(self, axis: int, *sources: int) -> int:
        """The sources one after another."""
        first = self.shapes[sources[0]]
        total = sum(self.shapes[source][axis] for source in sources)
        result = self.tensor((*first[:axis], total, *first[axis + 1 :]))
        self.builder.operator("CONCATENATION", list(sources), [result], axis=axis)
        return result

    def slice(self, source: int, begin: Shape, size: Shape) -> int:
        """A block of a tensor."""
        result = self.tensor(size)
        self.builder.operator("SLICE", [source, self._integers(begin), self._integers(size)], [result])
        return result

    def pad(self, source: int, paddings: Sequence[tuple[int, int]]) -> int:
        """A tensor with zeros around it."""
        shape = tuple(extent + sum(pair) for extent, pair in zip(self.shapes[source], paddings, strict=True))
        result = self.tensor(shape)
        self.builder.operator("PAD", [source, self._integers(paddings)], [result])
        return result

    def model(self, *results: int, story: str = "") -> RandomModel:
        """The file."""
        shapes = tuple(self.shapes[number] for number in self.inputs)
        return RandomModel(self.builder.build(self.inputs, list(results)), story, shapes, "int8")


def detector() -> RandomModel:
    """Three scales, boxes and classes of each reshaped and concatenated."""
    draft = Draft()
    at = draft.input((1, 16, 16, 4))
    boxes: list[int] = []
    classes: list[int] = []
    for channels in (8, 12, 16):
        at = draft.conv(at, channels, stride=2)
        _, height, width, _ = draft.shapes[at]
        boxes.append(draft.reshape(draft.conv(at, 8), (1, height * width * 2, 4)))
        classes.append(draft.reshape(draft.conv(at, 6), (1, height * width * 2, 3)))
    return draft.model(draft.concat(1, *boxes), draft.concat(1, *classes), story="detector")


def branches() -> RandomModel:
    """A split, a layer on each half, and the halves in one again; some inner, one the result."""
    draft = Draft()
    at = draft.dense(draft.input((1, 24)), 64)
    halves = [draft.slice(at, (0, first), (1, 32)) for first in (0, 32)]
    joined = draft.concat(1, *(draft.dense(half, 32) for half in halves))
    return draft.model(draft.dense(joined, 10), story="branches")
