"""Random networks over a window of frames, each a file for any length of the window, with the same weights.

Convolutions are dilated, depthwise, strided; there are pools, activations, residual branches whose windows reach
unlike far, so that one of them is cut at both ends, and heads that read the whole window. A network is either cut, no
layer padding along time, or padded before the first frame alone. Weights are small, and floats multiples of 1/8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflite_writer import ModelBuilder

Array = NDArray[Any]
Shape = tuple[int, ...]
AXES = (1, 2)
HEADS = ("none", "mean", "flat", "pool", "average", "max", "last")
ZERO_POINT = 3
ACTIVATIONS = {"float32": "LOGISTIC", "int8": "HARD_SWISH"}


@dataclass(slots=True)
class Net:
    """A network while it is written: rows along `axis` of four.

    Attributes:
        value, shape: Of what is written so far.
        count: Of tensors, which draws weights that do not depend on the window's length.
        gain: Of the weights of int8.
    """

    seed: int
    axis: int
    is_padded: bool
    dtype: str
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    value: int = -1
    shape: Shape = ()
    count: int = 0
    gain: float = 0.4

    def _name(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def random(self) -> np.random.Generator:
        """Of the next tensor."""
        return np.random.default_rng([self.seed, self.count])

    def tensor(self, shape: Shape) -> int:
        affine: dict[str, Any] = {"scale": 0.25, "zero_point": ZERO_POINT} if self.dtype == "int8" else {}
        return self.builder.tensor(self._name(), shape, self.dtype, **affine)

    def integers(self, values: Any) -> int:
        return self.builder.constant(self._name(), np.asarray(values, np.int32))

    def add(self, kind: str, shape: Shape, *others: int, **options: Any) -> None:
        """An operator on the value so far, which its result becomes."""
        result = self.tensor(shape)
        self.builder.operator(kind, [self.value, *others], [result], **options)
        self.value, self.shape = result, shape

    def extent(self, rows: int) -> Shape:
        """The shape with so many rows."""
        return (*self.shape[: self.axis], rows, *self.shape[self.axis + 1 :])

    def pair(self, of_time: int, other: int) -> tuple[int, int]:
        """Numbers for rows and columns."""
        return (of_time, other) if self.axis == 1 else (other, of_time)

    def pad(self, rows: int, beside: int = 0) -> None:
        """Before the first row, and on either side of each."""
        widths = [[0, 0], [0, 0], [0, 0], [0, 0]]
        widths[self.axis], widths[3 - self.axis] = [rows, 0], [beside, beside]
        shape = tuple(extent + sum(width) for extent, width in zip(self.shape, widths, strict=True))
        self.add("PAD", shape, self.integers(widths))

    def cut(self, first: int, rows: int, step: int = 1) -> None:
        """Rows from one on."""
        begin = [first if axis == self.axis else 0 for axis in range(4)]
        end = [first + (rows - 1) * step + 1 if axis == self.axis else self.shape[axis] for axis in range(4)]
        steps = [step if axis == self.axis else 1 for axis in range(4)]
        self.add("STRIDED_SLICE", self.extent(rows), *map(self.integers, (begin, end, steps)))

    def convolution(
        self, kind: str, kernel: int, dilation: int = 1, stride: int = 1, channels: int = 0, beside: int = 0
    ) -> None:
        """Over time, and over one or two of the other axis."""
        reach = (kernel - 1) * dilation + 1
        before = max(0, reach - stride) if self.is_padded else 0
        if before or beside:
            self.pad(before, beside)
        depth = self.shape[3]
        channels = channels if kind == "CONV_2D" else depth
        side = 2 if self.shape[3 - self.axis] > 1 else 1
        window = self.pair(kernel, side)
        form = (channels, *window, depth) if kind == "CONV_2D" else (1, *window, channels)
        values = self.random().integers(-100, 101, form)
        quantised: dict[str, Any] = {}
        if self.dtype == "int8":
            scale = self.gain / (70 * np.prod(form[1:3]) ** 0.5)
            quantised = {
                "scale": [float(scale)] * channels,
                "quantized_dimension": 0 if kind == "CONV_2D" else 3,
            }
            weights = self.builder.constant(self._name(), values.astype(np.int8), **quantised)
            bias = self.random().integers(-400, 400, channels).astype(np.int32)
        else:
            weights = self.builder.constant(self._name(), (values // 25 / 8).astype(np.float32))
            bias = (self.random().integers(-16, 16, channels) / 8).astype(np.float32)
        rows = (self.shape[self.axis] - reach) // stride + 1
        shape = list(self.extent(rows))
        shape[3 - self.axis], shape[3] = self.shape[3 - self.axis] - side + 1, channels
        (height, width), (tall, wide) = self.pair(stride, 1), self.pair(dilation, 1)
        self.add(
            kind, tuple(shape), weights, self.builder.constant(self._name(), bias), padding="VALID",
            stride_h=height, stride_w=width, dilation_h_factor=tall, dilation_w_factor=wide, activation="RELU",
        )  # fmt: skip

    def pool(self, kind: str, kernel: int, stride: int) -> None:
        """Over time alone."""
        (height, width), (tall, wide) = self.pair(stride, 1), self.pair(kernel, 1)
        rows = (self.shape[self.axis] - kernel) // stride + 1
        self.add(
            kind, self.extent(rows), stride_h=height, stride_w=width, filter_height=tall, filter_width=wide
        )

    def join(self, kind: str, first: int, first_shape: Shape, **options: Any) -> None:
        """The value so far behind another."""
        channels = first_shape[3] + self.shape[3] if kind == "CONCATENATION" else self.shape[3]
        result = self.tensor((*self.shape[:3], channels))
        self.builder.operator(kind, [first, self.value], [result], **options)
        self.value, self.shape = result, (*self.shape[:3], channels)

    def flat(self, units: int = 3) -> None:
        """A layer that is fully connected with all rows."""
        depth = int(np.prod(self.shape))
        values = self.random().integers(-100, 101, (units, depth))
        scale = {"scale": self.gain / (70 * depth**0.5)} if self.dtype == "int8" else {}
        weights = values.astype(np.int8) if scale else (values // 25 / 8).astype(np.float32)
        self.add("RESHAPE", (1, depth), self.integers([1, depth]), new_shape=[1, depth])
        self.add("FULLY_CONNECTED", (1, units), self.builder.constant(self._name(), weights, **scale), -1)


Layer = Callable[[Net], None]


def _residual(kernel: int, dilation: int, other: int, before: int, kind: str) -> Layer:
    """Two branches of which one sees less, and is cut at both ends where nothing is padded."""

    def write(net: Net) -> None:
        source, shape = net.value, net.shape
        net.convolution("CONV_2D", kernel, dilation, channels=shape[3])
        first, first_shape = net.value, net.shape
        net.value, net.shape = source, shape
        net.convolution("CONV_2D", other, channels=shape[3])
        spare = net.shape[net.axis] - first_shape[net.axis]
        if spare:
            net.cut(min(before, spare), first_shape[net.axis])
        net.join(kind, first, first_shape, **({"axis": 3} if kind == "CONCATENATION" else {}))

    return write


def _layers(random: np.random.Generator, *, is_padded: bool) -> list[Layer]:
    found: list[Layer] = [lambda net: net.convolution("CONV_2D", 2, channels=3)]
    for _ in range(int(random.integers(1, 5))):
        kernel, dilation = int(random.integers(1, 4)), int(random.integers(1, 4))
        stride, channels = int(random.choice([1, 1, 1, 2])), int(random.integers(1, 6))
        which = int(random.integers(0, 6))
        if which == 0:
            found.append(_residual(kernel + 1, dilation, min(2, kernel), int(random.integers(0, 4)), "ADD"))
        elif which == 1:
            found.append(_residual(kernel + 1, dilation, 1, int(random.integers(0, 4)), "CONCATENATION"))
        elif which == 2:
            found.append(lambda net, k=kernel, d=dilation: net.convolution("DEPTHWISE_CONV_2D", k, d))
        elif which == 3:
            pool, size = (
                str(random.choice(["MAX_POOL_2D", "AVERAGE_POOL_2D"])),
                stride if is_padded else kernel,
            )
            size = max(size, stride)
            found.append(lambda net, p=pool, k=size, s=stride: net.pool(p, k, s))
        elif which == 4:
            found.append(lambda net: net.add(ACTIVATIONS[net.dtype], net.shape))
        else:
            own = (kernel, dilation, stride, channels, int(random.integers(0, 3)))
            found.append(lambda net, o=own: net.convolution("CONV_2D", *o))
    return found


def _head(net: Net, head: str) -> None:
    match head:
        case "mean":
            shape = (1, net.shape[3])
            net.add("MEAN", shape, net.integers([1, 2]))
        case "flat":
            net.flat()
        case "max":
            net.add("REDUCE_MAX", (1, net.shape[3]), net.integers([1, 2]))
        case "pool" | "average":
            height, width = net.shape[1:3]
            kind = "MAX_POOL_2D" if head == "pool" else "AVERAGE_POOL_2D"
            net.add(kind, (1, 1, 1, net.shape[3]), filter_height=height, filter_width=width)
        case "last":
            net.cut(net.shape[net.axis] - 1, 1)
        case _:
            pass


@dataclass(frozen=True, slots=True)
class StreamedNet:
    """A random network.

    Attributes:
        axis: Of time in its input of four axes.
        head: What comes behind the layers over time.
        has_edges: Whether it takes and gives floats, and is int8 between them.
    """

    seed: int
    axis: int
    is_padded: bool
    dtype: str
    head: str
    width: int
    depth: int
    has_edges: bool = False

    def build(self, num_frames: int) -> bytes:
        """The file for a window of so many frames."""
        net = Net(self.seed, self.axis, self.is_padded, self.dtype)
        net.shape = self.shape(num_frames)
        source = net.value = (
            net.builder.tensor("x", net.shape, "float32") if self.has_edges else net.tensor(net.shape)
        )
        if self.has_edges:
            net.add("QUANTIZE", net.shape)
        for layer in _layers(np.random.default_rng([self.seed, 1]), is_padded=self.is_padded):
            layer(net)
        _head(net, self.head)
        if self.has_edges:
            real = net.builder.tensor("y", net.shape, "float32")
            net.builder.operator("DEQUANTIZE", [net.value], [real])
            net.value = real
        return net.builder.build([source], [net.value])

    def shape(self, num_frames: int) -> Shape:
        """Of the input for so many frames."""
        return (
            (1, num_frames, self.width, self.depth)
            if self.axis == 1
            else (1, self.width, num_frames, self.depth)
        )

    def frames(self, num_frames: int) -> Array:
        """An input of so many frames."""
        random = np.random.default_rng([self.seed, 2])
        if self.has_edges:
            return random.uniform(-34, 34, self.shape(num_frames)).astype(np.float32)
        if self.dtype == "int8":
            return random.integers(-128, 128, self.shape(num_frames)).astype(np.int8)
        return (random.integers(-64, 65, self.shape(num_frames)) / 8).astype(np.float32)

    def part(self, frames: Array, first: int, count: int) -> Array:
        """Some of the frames."""
        return np.ascontiguousarray(np.take(frames, range(first, first + count), axis=self.axis))


def streamed_net(seed: int, *, is_padded: bool) -> StreamedNet:
    """The network of a number."""
    random = np.random.default_rng([seed, 0])
    head = "none" if is_padded else str(random.choice(HEADS))
    axis, width = int(random.choice(AXES)), int(random.choice([1, 1, 6, 7]))
    dtype, depth = str(random.choice(["int8", "float32"])), int(random.integers(1, 5))
    has_edges = dtype == "int8" and bool(random.integers(0, 3) == 0)
    return StreamedNet(seed, axis, is_padded, dtype, head, width, depth, has_edges)


def keyword_net(num_frames: int, *, width: int = 10, channels: int = 64, blocks: int = 4) -> bytes:
    """A DS-CNN as keyword spotters have it, int8, over frames of so many features; nothing is padded along time."""
    net = Net(7, 1, is_padded=False, dtype="int8", gain=1.1)
    net.shape = (1, num_frames, width, 1)
    source = net.value = net.tensor(net.shape)
    net.convolution("CONV_2D", 10, stride=2, channels=channels)
    for _ in range(blocks):
        net.convolution("DEPTHWISE_CONV_2D", 3)
        net.convolution("CONV_2D", 1, channels=channels)
    net.add("MEAN", (1, channels), net.integers([1, 2]))
    net.flat(12)
    return net.builder.build([source], [net.value])


def temporal_net(num_frames: int, *, width: int = 40, channels: int = 32, blocks: int = 4) -> bytes:
    """A temporal convolutional network, int8, with residual branches and growing dilation; nothing is padded."""
    net = Net(8, 2, is_padded=False, dtype="int8")
    net.shape = (1, 1, num_frames, width)
    source = net.value = net.tensor(net.shape)
    net.convolution("CONV_2D", 3, channels=channels)
    for number in range(blocks):
        _residual(3, 2**number, 1, num_frames, "ADD")(net)
    net.add("MEAN", (1, channels), net.integers([1, 2]))
    net.flat(12)
    return net.builder.build([source], [net.value])


def windows_net(num_frames: int, windows: Sequence[tuple[int, int]]) -> bytes:
    """Floats: convolutions side by side, each of so many frames and with such a stride."""
    builder, random = ModelBuilder(), np.random.default_rng(0)
    source, results = builder.tensor("x", (1, num_frames, 1, 4), "float32"), list[int]()
    for number, (size, stride) in enumerate(windows):
        weights = (random.integers(1, 9, (3, size, 1, 4)) / 8).astype(np.float32)
        operands = [
            source,
            builder.constant(f"w{number}", weights),
            builder.constant(f"b{number}", np.zeros(3, np.float32)),
        ]
        results.append(builder.tensor(f"y{number}", (1, (num_frames - size) // stride + 1, 1, 3), "float32"))
        builder.operator("CONV_2D", operands, [results[-1]], padding="VALID", stride_h=stride, stride_w=1)
    return builder.build([source], results)
