"""Random convolutions between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, as exporters write dilated ones, and oddly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_models import RandomModel
from tflite_writer import ModelBuilder

FORMS = ("1-D", "causal", "2-D")
ZERO_POINT = 5
Widths = Sequence[tuple[int, int]]


@dataclass
class Writer:
    """A model that grows by one operator at a time; `shape` is of the value so far."""

    builder: ModelBuilder
    random: np.random.Generator
    dtype: str
    value: int
    shape: tuple[int, ...]
    count: int = 0
    max_channels: int = 5
    source: int = -1
    source_shape: tuple[int, ...] = ()

    @staticmethod
    def of(shape: tuple[int, ...], dtype: str = "int8", *, is_open: bool = False) -> Writer:
        """A model so far of an input alone."""
        writer = Writer(ModelBuilder(), np.random.default_rng(7), dtype, -1, shape)
        signature = (-1, *shape[1:]) if is_open else None
        writer.source, writer.source_shape = writer.tensor(shape, signature), shape
        writer.value = writer.source
        return writer

    def _name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def tensor(self, shape: tuple[int, ...], signature: tuple[int, ...] | None = None) -> int:
        affine = {"scale": 0.25, "zero_point": ZERO_POINT} if self.dtype == "int8" else {}
        return self.builder.tensor(self._name(), shape, self.dtype, shape_signature=signature, **affine)

    def integers(self, values: Any) -> int:
        return self.builder.constant(self._name(), np.asarray(values, np.int32))

    def add(self, kind: str, shape: tuple[int, ...], *others: int, **options: Any) -> None:
        result = self.tensor(shape)
        self.builder.operator(kind, [self.value, *others], [result], **options)
        self.value, self.shape = result, shape

    def spread(self, sides: Sequence[int], widths: Widths) -> None:
        """SPACE_TO_BATCH_ND."""
        small = [(e + sum(w)) // s for e, w, s in zip(self.shape[1:-1], widths, sides, strict=True)]
        shape = (self.shape[0] * prod(sides), *small, self.shape[-1])
        self.add("SPACE_TO_BATCH_ND", shape, self.integers(sides), self.integers(widths))

    def gather(self, sides: Sequence[int], crops: Widths) -> None:
        """BATCH_TO_SPACE_ND."""
        large = [e * s - sum(c) for e, c, s in zip(self.shape[1:-1], crops, sides, strict=True)]
        shape = (self.shape[0] // prod(sides), *large, self.shape[-1])
        self.add("BATCH_TO_SPACE_ND", shape, self.integers(sides), self.integers(crops))

    def finish(self, *others: int, story: str = "") -> RandomModel:
        """The file; its results are the value so far, and others."""
        content = self.builder.build([self.source], [self.value, *others])
        return RandomModel(content, story, (self.source_shape,), self.dtype)

    def weights(self, shape: tuple[int, ...]) -> NDArray[Any]:
        if self.dtype == "int8":
            return self.random.integers(-127, 128, shape).astype(np.int8)
        return (self.random.integers(-16, 17, shape) / 8).astype(np.float32)

    def convolution(
        self,
        kind: str,
        kernel: tuple[int, int],
        padding: str,
        dilation: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
    ) -> None:
        """On [N,H,W,C]."""
        batch, *spatial, depth = self.shape
        channels = int(self.random.integers(1, self.max_channels + 1)) if kind == "CONV_2D" else depth
        form = (channels, *kernel, depth) if kind == "CONV_2D" else (1, *kernel, channels)
        scales = (self.random.uniform(0.5, 1, channels) / (70 * np.prod(form[1:3]) ** 0.5)).tolist()
        axis = 0 if kind == "CONV_2D" else 3
        quantised = {"scale": scales, "quantized_dimension": axis} if self.dtype == "int8" else {}
        weights = self.builder.constant(self._name(), self.weights(form), **quantised)
        bias: NDArray[Any] = self.random.integers(-900, 900, channels).astype(np.int32)
        if self.dtype != "int8":
            bias = (bias / 8).astype(np.float32)
        bias_index = self.builder.constant(self._name(), bias)
        if padding == "VALID":
            spatial = [e - (k - 1) * d for e, k, d in zip(spatial, kernel, dilation, strict=True)]
        spatial = [-(-e // step) for e, step in zip(spatial, stride, strict=True)]
        self.add(
            kind,
            (batch, *spatial, channels),
            weights,
            bias_index,
            padding=padding,
            stride_h=stride[0],
            stride_w=stride[1],
            dilation_h_factor=dilation[0],
            dilation_w_factor=dilation[1],
            activation=str(self.random.choice(["NONE", "RELU"])),
        )


def dilated_model(number: int, dtype: str, form: str, *, max_channels: int = 5) -> RandomModel:
    """A model of a form: 1-D with a reshape on either side, the same padded on the left alone, or 2-D."""
    random = np.random.default_rng([number, FORMS.index(form)])
    num_axes = 2 if form == "2-D" else 1
    sides = tuple(int(side) for side in random.integers(1, 4, num_axes))
    sides = (max(2, sides[0]), *sides[1:])
    kernel = tuple(int(k) for k in random.integers(1, 4, num_axes))
    own = tuple(int(d) for d in random.choice([1, 1, 2], num_axes))
    padding = str(random.choice(["SAME", "VALID"])) if form != "causal" else "VALID"
    reach = [(k - 1) * d for k, d in zip(kernel, own, strict=True)]
    extents = [int(e) for e in random.integers(1, 9, num_axes)]
    if form != "2-D":  # an axis of extent 1 beside another one could be either
        extents = [max(extents[0], 2 * sides[0])]
    widths: list[tuple[int, int]] = []
    for axis, side in enumerate(sides):
        least = side * (reach[axis] + 1)
        before = reach[axis] * side if form == "causal" else int(random.integers(0, 4))
        after = max(0, least - extents[axis] - before) if form != "causal" else 0
        after += -(extents[axis] + before + after) % side
        widths.append((before, after))
    shape = (int(random.choice([1, 1, 2])), *extents, int(random.integers(1, max_channels + 1)))
    writer = Writer.of(shape, dtype)
    writer.random, writer.max_channels = random, max_channels
    writer.spread(sides, widths)
    _between(writer, form, kernel, padding, own)
    whole = [e * s for e, s in zip(writer.shape[1:-1], sides, strict=True)]
    crops = [
        (0, 0) if form == "causal" and e <= w else _crops(random, e, w)
        for e, w in zip(whole, (x[1] for x in widths), strict=True)
    ]
    writer.gather(sides, crops)
    text = f"{form} {dtype} {number} x={shape} {sides=} {widths=} {crops=} {kernel=} {own=} {padding}"
    return writer.finish(story=text)


def _crops(random: np.random.Generator, extent: int, padded: int) -> tuple[int, int]:
    """What was padded, or anything."""
    if random.integers(0, 2) and padded < extent:
        return 0, padded
    before = int(random.integers(0, min(4, extent)))
    return before, int(random.integers(0, min(4, extent - before)))


def _between(writer: Writer, form: str, kernel: tuple[int, ...], padding: str, own: tuple[int, ...]) -> None:
    """One convolution or two, an activation perhaps between, in images of height or width 1 where there is one axis."""
    random = writer.random
    kinds = ["CONV_2D", "DEPTHWISE_CONV_2D"]
    window, dilation = kernel, own
    is_row = bool(random.integers(0, 2))
    if form != "2-D":
        batch, extent, depth = writer.shape
        image = (batch, 1, extent, depth) if is_row else (batch, extent, 1, depth)
        writer.add("RESHAPE", image, writer.integers(image), new_shape=image)
        window = (1, kernel[0]) if is_row else (kernel[0], 1)
        dilation = (1, own[0]) if is_row else (own[0], 1)
    writer.convolution(str(random.choice(kinds)), (window[0], window[1]), padding, (dilation[0], dilation[1]))
    if random.integers(0, 2) == 0:
        writer.add(str(random.choice(["RELU", "HARD_SWISH"])), writer.shape)
    if random.integers(0, 3) == 0:
        writer.convolution(str(random.choice(kinds)), (window[0], window[1]), "SAME", (1, 1))
    if form != "2-D":
        batch, height, width, depth = writer.shape
        flat = (batch, height * width, depth)
        writer.add("RESHAPE", flat, writer.integers(flat), new_shape=flat)
