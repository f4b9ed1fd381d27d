"""Models that mostly move bytes: heads of detectors, splits, pads and concatenations, nested and shared, in int8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

    def constant(self, shape: Shape) -> int:
        """A tensor of the file."""
        values = (
            np.random.default_rng(self.seed + len(self.shapes)).integers(-128, 128, shape).astype(np.int8)
        )
        name = f"values_{next(self.numbers)}"
        number = self.builder.constant(name, values, scale=SCALE, zero_point=ZERO_POINT)
        self.shapes[number] = shape
        return number

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

    def turned(self, source: int) -> int:
        """An image whose columns and channels have changed places."""
        batch, height, width, depth = self.shapes[source]
        result = self.tensor((batch, height, depth, width))
        self.builder.operator("TRANSPOSE", [source, self._integers((0, 1, 3, 2))], [result])
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


def padded() -> RandomModel:
    """Two convolutions, padded above and below, of which one is stacked with a constant and the other itself."""
    draft = Draft()
    image = draft.input((1, 6, 5, 4))
    first = draft.pad(draft.conv(image, 4), [(0, 0), (2, 1), (0, 0), (0, 0)])
    second = draft.conv(image, 4)
    stacked = draft.concat(1, second, draft.constant((1, 3, 5, 4)), first)
    return draft.model(draft.conv(stacked, 4), draft.add(second, second), story="padded")


def stacked_twice() -> RandomModel:
    """A concatenation that is read twice at once, so by rows as a whole: one operand is a part, the other is copied."""
    draft = Draft()
    image = draft.input((1, 8, 6, 3))
    both = draft.concat(1, image, image)
    first = draft.add(image, image)
    second = draft.add(first, first)
    turned = draft.turned(second)
    stacked = draft.concat(1, both, first)
    filtered = draft.conv(second, 3)
    tall = draft.turned(draft.concat(1, both, stacked, stacked))
    return draft.model(draft.concat(1, tall, turned, draft.turned(filtered)), both, story="stacked twice")


def random_parts(seed: int) -> RandomModel:
    """A network over one row of numbers, or over images of one width, that moves at least as much as it computes."""
    return _Random(seed).drawn()


class _Random:
    """One network under construction; of images only the number of rows differs."""

    def __init__(self, seed: int) -> None:
        self.generator, self.draft = np.random.default_rng(seed), Draft(seed)
        self.is_image = bool(self.generator.random() < 0.5)
        self.rest: Shape = (3, 4) if self.is_image else ()
        self.known = [self.draft.input(self.shape(self.between(2, 9))) for _ in range(self.between(1, 2))]

    def between(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, high + 1))

    def shape(self, count: int) -> Shape:
        return (1, count, *self.rest)

    def count(self, tensor: int) -> int:
        return self.draft.shapes[tensor][1]

    def one(self) -> int:
        """A tensor, one of the last as often as not."""
        known = self.known[-3:] if self.generator.random() < 0.5 else self.known
        return known[self.between(0, len(known) - 1)]

    def drawn(self) -> RandomModel:
        steps: list[str] = []
        makers: dict[str, Callable[[], int]] = {
            "compute": self.compute,
            "concat": self.concat,
            "slice": self.slice,
            "pad": self.pad,
            "add": self.add,
            "reshape": self.reshape,
        }
        chances = [0.3, 0.25, 0.2, 0.1, 0.1, 0.05]
        while len(steps) < 4 or (len(steps) < 12 and self.generator.random() < 0.85):
            kind = str(self.generator.choice(list(makers), p=chances))
            made = makers[kind]()
            if self.count(made) <= 60:
                self.known.append(made)
            steps.append(kind)
        made = [number for number in self.known if number not in self.draft.inputs]
        results = list(
            dict.fromkeys([self.draft.add(made[-1], made[-1]) if self.between(0, 1) else made[-1]])
        )
        results += [n for n in made if n not in results and self.generator.random() < 0.15][:2]
        return self.draft.model(*results, story=f"parts seed={self.draft.seed} {' '.join(steps)}")

    def compute(self) -> int:
        if self.is_image:
            return self.draft.conv(self.one(), self.rest[1])
        return self.draft.dense(self.one(), self.between(1, 20))

    def concat(self) -> int:
        sources = [self.one() for _ in range(self.between(1, 4))]
        if self.between(0, 3) == 0:
            sources.insert(self.between(0, len(sources)), self.draft.constant(self.shape(self.between(1, 3))))
        return self.draft.concat(1, *sources)

    def slice(self) -> int:
        source = self.one()
        begin = self.between(0, self.count(source) - 1)
        size = self.between(1, self.count(source) - begin)
        return self.draft.slice(source, (0, begin, *(0 for _ in self.rest)), self.shape(size))

    def pad(self) -> int:
        around = (self.between(0, 2), self.between(0, 2))
        return self.draft.pad(self.one(), [(0, 0), around, *((0, 0) for _ in self.rest)])

    def add(self) -> int:
        first = self.one()
        like = [number for number in self.known if self.draft.shapes[number] == self.draft.shapes[first]]
        return self.draft.add(first, like[self.between(0, len(like) - 1)])

    def reshape(self) -> int:
        source = self.one()
        flat = self.draft.reshape(source, (1, int(np.prod(self.draft.shapes[source]))))
        return self.draft.reshape(flat, self.draft.shapes[source])
