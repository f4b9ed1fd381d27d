"""Random networks of images: what passes that work by rows, or let buffers overlap, have to get right.

A network is drawn from a seed as a list of operators over images of odd sizes, seldom square: chains with residuals,
strides, dilations, both paddings, pools, pads, concatenations along rows and channels, slices of rows, means, and
tensors that several operators read; where it is asked to rise, resizes and transposed convolutions as well. Its weights
are drawn once; then it is written as a float32 model, LiteRT runs that
on some inputs, and the ranges of its tensors are those of the int8 model: so values stay alive to the end of a long
chain, where a wrong row is still seen. Scales are rounded, so that no last bit of a float sum decides about one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, frexp, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_models import RandomModel
from support.reference import LiteRt
from tflite_writer import ModelBuilder

Shape = tuple[int, ...]
Options = dict[str, Any]

_INPUT_SCALE = 1.0 / 32.0
_FIXED: dict[str, tuple[float, int]] = {"LOGISTIC": (1.0 / 256, -128), "SOFTMAX": (1.0 / 256, -128)}
# What TFLite wants quantised alike: the result, and all that it is made of.
_RESIZES = ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")
_ALIKE = {"CONCATENATION", "AVERAGE_POOL_2D", "MAX_POOL_2D", "PAD", "STRIDED_SLICE", "RESHAPE", *_RESIZES}
_WEIGHTED = {
    "CONV_2D": 0,
    "DEPTHWISE_CONV_2D": 3,
    "FULLY_CONNECTED": 0,
    "TRANSPOSE_CONV": 0,
}  # with the axis of their channels
_MOST_OPERATIONS = 400_000  # multiply-accumulates of one operator
_MOST_ELEMENTS = 12_000
_FEW_ROWS = 5  # below, a network goes on from another tensor more often than not


@dataclass(frozen=True)
class Operator:
    """One operator: kind, operands and result by number of tensor, and whatever is constant.

    Attributes:
        weights, bias: In float32; of a MUL, `weights` is its other operand.
        integers: Of a PAD, MEAN, RESHAPE, STRIDED_SLICE, resize or TRANSPOSE_CONV: its constant operands.
    """

    kind: str
    sources: tuple[int, ...]
    result: int
    options: Options
    weights: NDArray[np.float32] | None = None
    bias: NDArray[np.float32] | None = None
    integers: tuple[Any, ...] = ()


@dataclass
class SpatialNetwork:
    """What was drawn.

    Attributes:
        shapes: Of all tensors; the first is the input.
        operators: In order.
        results: Tensors that the model gives.
    """

    shapes: list[Shape] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    def written(self, affine: Sequence[tuple[float, int]] | None) -> bytes:
        """The file: in float32, or in int8 with these scales and zero points of the tensors."""
        builder = ModelBuilder()
        for number, shape in enumerate(self.shapes):
            name = "image" if number == 0 else f"tensor_{number}"
            if affine is None:
                builder.tensor(name, shape, "float32")
            else:
                builder.tensor(name, shape, "int8", scale=affine[number][0], zero_point=affine[number][1])
        for operator in self.operators:
            sources = [*operator.sources, *_constants(builder, operator, affine)]
            if operator.kind == "TRANSPOSE_CONV":
                image, shape, weights, bias = sources
                sources = [shape, weights, image, bias]
            builder.operator(operator.kind, sources, [operator.result], **operator.options)
        return builder.build([0], self.results)

    def story(self) -> str:
        """The network in one line."""
        lines = [f"{self.shapes[0]}"]
        for operator in self.operators:
            told = " ".join(f"{key}={value}" for key, value in operator.options.items())
            window = "" if operator.weights is None else f" w={operator.weights.shape}"
            result = f"{operator.result}:{self.shapes[operator.result]}"
            lines.append(f"{operator.kind}{list(operator.sources)}({told}{window})->{result}")
        return "; ".join(lines) + f" -> {self.results}"


def spatial_network(
    seed: int,
    *,
    rises: bool = False,
    num_operators: tuple[int, int] = (3, 15),
    extents: tuple[int, int] = (5, 40),
) -> SpatialNetwork:
    """A network of about so many operators, over an image whose rows and columns have these limits.

    Where it `rises`, some of its images have more rows and columns than those they are made of.
    """
    return _Draft(seed, extents, (*_STEPS, *_RISING) if rises else _STEPS).drawn(num_operators)


def spatial_model(
    seed: int, dtype: str = "int8", *, rises: bool = False, **limits: tuple[int, int]
) -> RandomModel:
    """The same as a file, with inputs for it."""
    network = spatial_network(seed, rises=rises, **limits)
    content = network.written(None)
    if dtype == "int8":
        content = network.written(_calibrated(network, content, seed))
    return RandomModel(content, f"spatial seed={seed} {dtype} {network.story()}", (network.shapes[0],), dtype)


# Drawing


class _Draft:
    """A network under construction."""

    def __init__(self, seed: int, extents: tuple[int, int], steps: Sequence[_Step]) -> None:
        self.generator = np.random.default_rng(seed)
        self.steps = steps
        self.network = SpatialNetwork()
        channels = self.one_of([1, 3, 3, 4, 7, 8])
        self.network.shapes.append((1, self.between(*extents), self.between(*extents), channels))

    def between(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def one_of(self, items: Sequence[Any]) -> Any:
        return items[self.between(0, len(items) - 1)]

    def shape(self, number: int) -> Shape:
        return self.network.shapes[number]

    def images(self) -> list[int]:
        return [n for n, shape in enumerate(self.network.shapes) if len(shape) == 4]

    def drawn(self, num_operators: tuple[int, int]) -> SpatialNetwork:
        recent, wanted = 0, self.between(*num_operators)
        while len(self.network.operators) < wanted:
            step: _Step = self.one_of(self.steps)
            recent = step(self, recent)
            if self.shape(recent)[1] < _FEW_ROWS and self.chance(0.7):
                tall = [n for n in self.images() if self.shape(n)[1] >= _FEW_ROWS]
                recent = self.one_of(tall or self.images())
            elif self.chance(0.08):
                recent = self.one_of(self.images())
        if self.chance(0.4):
            recent = self.tail(recent)
        network = self.network
        network.results.append(network.operators[-1].result)
        if recent not in (0, *network.results):
            network.results.append(recent)
        if self.chance(0.15):
            network.results.append(self.one_of(network.operators).result)
        network.results = list(dict.fromkeys(network.results))
        return network

    def add(self, kind: str, sources: Sequence[int], shape: Sequence[int], **rest: Any) -> int:
        """Appends an operator; `weights`, `bias` and `integers` are its own, all else are its options."""
        own = {key: rest.pop(key) for key in ("weights", "bias", "integers") if key in rest}
        self.network.shapes.append(tuple(int(extent) for extent in shape))
        result = len(self.network.shapes) - 1
        self.network.operators.append(Operator(kind, tuple(sources), result, rest, **own))
        return result

    def normal(self, *shape: int) -> NDArray[np.float32]:
        return self.generator.standard_normal(shape).astype(np.float32)

    def activation(self) -> str:
        return self.one_of(["NONE", "RELU", "RELU6", "RELU6"])

    # Windows

    def window(self, source: int, *, sizes: Sequence[int], dilated: bool) -> tuple[Shape, Shape, Options]:
        """Extents of a window, those of the result, and options of stride, dilation and padding."""
        kernel: list[int] = []
        outputs: list[int] = []
        padding = self.one_of(["SAME", "SAME", "VALID"])
        step = self.one_of([1, 1, 1, 2, 2, 3] if self.shape(source)[1] > 2 * _FEW_ROWS else [1, 1, 1, 2])
        strides = [step, step if self.chance(0.8) else self.one_of([1, 2])]
        spread = self.one_of([1, 1, 1, 2, 3]) if dilated else 1
        size = self.one_of(sizes)
        for extent, stride in zip(self.shape(source)[1:3], strides, strict=True):
            own = size if self.chance(0.85) else self.one_of(sizes)
            own = min(own, (extent - 1) // spread + 1)
            taken = extent if padding == "SAME" else extent - (own - 1) * spread
            kernel.append(own)
            outputs.append(-(-taken // stride))
        options: Options = {"padding": padding, "stride_h": strides[0], "stride_w": strides[1]}
        if dilated:
            options |= {"dilation_h_factor": spread, "dilation_w_factor": spread}
        return tuple(kernel), tuple(outputs), options

    def convolution(self, source: int) -> int:
        kernel, outputs, options = self.window(source, sizes=[1, 1, 2, 3, 3, 3, 5], dilated=True)
        return self.convolve(source, kernel, outputs, options, self.one_of([1, 2, 4, 5, 8, 8, 12, 16]))

    def convolve(
        self,
        source: int,
        kernel: Shape,
        outputs: Shape,
        options: Options,
        channels: int,
        activation: str = "",
    ) -> int:
        depth = self.shape(source)[3]
        taps = prod(kernel) * depth
        channels = max(1, min(channels, _MOST_OPERATIONS // (prod(outputs) * taps)))
        return self.add(
            "CONV_2D",
            [source],
            (1, *outputs, channels),
            weights=self.normal(channels, *kernel, depth) / np.float32(taps**0.5),
            bias=self.normal(channels) / np.float32(2),
            activation=activation or self.activation(),
            **options,
        )

    def pointwise(self, source: int, channels: int, activation: str) -> int:
        shape = self.shape(source)
        return self.convolve(source, (1, 1), shape[1:3], {"padding": "SAME"}, channels, activation)

    def depthwise(self, source: int) -> int:
        kernel, outputs, options = self.window(source, sizes=[2, 3, 3, 3, 5], dilated=True)
        return self.filter(source, kernel, outputs, options)

    def filter(self, source: int, kernel: Shape, outputs: Shape, options: Options) -> int:
        depth = self.shape(source)[3]
        multiplier = 2 if depth < 9 and self.chance(0.15) else 1
        channels = depth * multiplier
        return self.add(
            "DEPTHWISE_CONV_2D",
            [source],
            (1, *outputs, channels),
            weights=self.normal(1, *kernel, channels) / np.float32(prod(kernel) ** 0.5),
            bias=self.normal(channels) / np.float32(2),
            activation=self.activation(),
            depth_multiplier=multiplier,
            **options,
        )

    def inverted_residual(self, source: int) -> int:
        """Expand, filter, project, and add where shapes allow."""
        depth = self.shape(source)[3]
        wide = self.pointwise(source, depth * self.one_of([2, 3]), "RELU6")
        kernel, outputs, options = self.window(wide, sizes=[3], dilated=False)
        narrow = self.pointwise(self.filter(wide, kernel, outputs, options), depth, "NONE")
        if self.shape(narrow) == self.shape(source):
            return self.sum(source, narrow)
        return narrow

    def pool(self, source: int) -> int:
        kernel, outputs, options = self.window(source, sizes=[2, 2, 3, 4], dilated=False)
        options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
        kind = self.one_of(["AVERAGE_POOL_2D", "MAX_POOL_2D"])
        return self.add(kind, [source], (1, *outputs, self.shape(source)[3]), **options)

    def pad(self, source: int) -> int:
        """PAD, and a convolution that takes it up more often than not."""
        widths = [[0, 0], *([self.between(0, 3), self.between(0, 3)] for _ in range(2)), [0, 0]]
        shape = [extent + sum(width) for extent, width in zip(self.shape(source), widths, strict=True)]
        if prod(shape) > _MOST_ELEMENTS:
            return source
        padded = self.add("PAD", [source], shape, integers=(widths,))
        return self.convolution(padded) if self.chance(0.7) else padded

    # More rows and columns

    def resize(self, source: int) -> int:
        """Twice as many rows and columns, now and then three times as many, or any number."""
        shape = self.shape(source)
        times = self.one_of([2, 2, 2, 3])
        rows, columns = (
            extent * times if self.chance(0.85) else self.between(1, 2 * extent) for extent in shape[1:3]
        )
        if rows * columns * shape[3] > _MOST_ELEMENTS:
            return self.pool(source)
        mode = self.one_of(["", "half_pixel_centers", "half_pixel_centers", "align_corners"])
        return self.add(
            self.one_of(_RESIZES),
            [source],
            (1, rows, columns, shape[3]),
            integers=([rows, columns],),
            **({mode: True} if mode else {}),
        )

    def spread(self, source: int) -> int:
        """A transposed convolution."""
        shape = self.shape(source)
        padding, step = self.one_of(["SAME", "SAME", "VALID"]), self.one_of([1, 2, 2, 3])
        size = self.one_of([1, 2, 3, 4])
        outputs = [
            extent * step + (0 if padding == "SAME" else size - 1) - self.between(0, step - 1)
            for extent in shape[1:3]
        ]
        channels = self.one_of([1, 2, 4, 5, 8])
        if prod(outputs) * channels > _MOST_ELEMENTS:
            return self.pool(source)
        taps = (-(-size // step)) ** 2 * shape[3]
        return self.add(
            "TRANSPOSE_CONV",
            [source],
            (1, *outputs, channels),
            integers=([1, *outputs, channels],),
            weights=self.normal(channels, size, size, shape[3]) / np.float32(taps**0.5),
            bias=self.normal(channels) / np.float32(2),
            activation=self.activation(),
            padding=padding,
            stride_h=step,
            stride_w=step,
        )

    # Several operands

    def sum(self, first: int, second: int) -> int:
        operands = [first, second] if self.chance(0.5) else [second, first]
        return self.add("ADD", operands, self.shape(first), activation=self.one_of(["NONE", "NONE", "RELU"]))

    def residual(self, source: int) -> int:
        """The sum with an image of the same shape, or with one that a convolution gives its channels."""
        shape = self.shape(source)
        fitting = [n for n in self.images() if self.shape(n)[1:3] == shape[1:3]]
        other = self.one_of(fitting)
        if self.shape(other) != shape:
            other = self.pointwise(other, shape[3], "NONE")
        return self.sum(source, other) if self.shape(other) == shape else other

    def beside(self, source: int) -> int:
        """A concatenation along channels."""
        shape = self.shape(source)
        fitting = [n for n in self.images() if self.shape(n)[1:3] == shape[1:3]]
        others = [self.one_of(fitting) for _ in range(self.one_of([1, 1, 2]))]
        return self.concatenation([source, *others], 3)

    def below(self, source: int) -> int:
        """A concatenation along rows, or along columns."""
        axis = self.one_of([1, 1, 2])
        shape = self.shape(source)
        fitting = [
            n for n in self.images() if all(self.shape(n)[i] == shape[i] for i in range(4) if i != axis)
        ]
        return self.concatenation([source, self.one_of(fitting)], axis)

    def concatenation(self, operands: list[int], axis: int) -> int:
        if self.chance(0.5):
            operands.reverse()
        shape = [*self.shape(operands[0])]
        shape[axis] = sum(self.shape(operand)[axis] for operand in operands)
        if prod(shape) > _MOST_ELEMENTS or shape[3] > 32:
            return operands[0]
        return self.add("CONCATENATION", operands, shape, axis=axis)

    # Elements and the like

    def unary(self, source: int) -> int:
        kind = self.one_of(["HARD_SWISH", "LOGISTIC", "LEAKY_RELU", "RELU6"])
        options = {"alpha": 0.25} if kind == "LEAKY_RELU" else {}
        return self.add(kind, [source], self.shape(source), **options)

    def scaled(self, source: int) -> int:
        """A product with a constant for each channel, or with one that the image itself gives."""
        shape = self.shape(source)
        if self.chance(0.5):
            return self.add("MUL", [source], shape, weights=self.normal(1, 1, 1, shape[3]), activation="NONE")
        squeezed = self.mean(source, keep_dims=True)
        gate = self.pointwise(squeezed, shape[3], "NONE")
        gate = self.add("LOGISTIC", [gate], self.shape(gate))
        return self.add("MUL", [source, gate], shape, activation="NONE")

    def rows(self, source: int) -> int:
        """Some rows, each of them or every second; now and then some columns."""
        shape = self.shape(source)
        begin, end, step = [0] * 4, [*shape], [1] * 4
        for axis in (1, 2) if self.chance(0.3) else (1,):
            begin[axis] = self.between(0, shape[axis] // 2)
            end[axis] = self.between(begin[axis] + 1, shape[axis])
            step[axis] = self.one_of([1, 1, 2])
        extents = [ceil((end[i] - begin[i]) / step[i]) for i in range(4)]
        return self.add("STRIDED_SLICE", [source], extents, integers=(begin, end, step))

    def mean(self, source: int, *, keep_dims: bool) -> int:
        channels = self.shape(source)[3]
        shape = (1, 1, 1, channels) if keep_dims else (1, channels)
        return self.add("MEAN", [source], shape, integers=([1, 2],), keep_dims=keep_dims)

    def tail(self, source: int) -> int:
        """What ends a classifier: a mean or a reshape, a fully connected layer, a softmax."""
        elements = prod(self.shape(source))
        if elements < 600 and self.chance(0.4):
            flat = self.add("RESHAPE", [source], (1, elements), integers=([1, elements],))
        else:
            flat = self.mean(source, keep_dims=False)
        depth, channels = self.shape(flat)[1], self.between(2, 10)
        weights = self.normal(channels, depth) * np.float32(2 / depth**0.5)
        last = self.add("FULLY_CONNECTED", [flat], (1, channels), weights=weights, bias=self.normal(channels))
        return self.add("SOFTMAX", [last], (1, channels)) if self.chance(0.3) else last


_Step = Callable[[_Draft, int], int]
_STEPS: tuple[_Step, ...] = (
    *(_Draft.convolution,) * 5,
    *(_Draft.depthwise,) * 4,
    *(_Draft.inverted_residual,) * 2,
    *(_Draft.residual,) * 4,
    *(_Draft.pool,) * 2,
    *(_Draft.beside,) * 2,
    *(_Draft.below,) * 2,
    *(_Draft.pad,) * 2,
    _Draft.unary,
    _Draft.scaled,
    _Draft.rows,
)
_RISING: tuple[_Step, ...] = (*(_Draft.resize,) * 6, *(_Draft.spread,) * 4)


# Quantisation


def _calibrated(network: SpatialNetwork, content: bytes, seed: int) -> list[tuple[float, int]]:
    """Scale and zero point of every tensor, from its values in float32 on two random inputs."""
    generator = np.random.default_rng(seed)
    count = len(network.shapes)
    lows, highs = [0.0] * count, [0.0] * count
    reference = LiteRt(content, keep_all_tensors=True)
    for _ in range(2):
        image = generator.integers(-128, 128, network.shapes[0]) * _INPUT_SCALE
        reference.run(image.astype(np.float32))
        for number in range(count):
            values = reference.tensor(number)
            lows[number] = min(lows[number], float(values.min()))
            highs[number] = max(highs[number], float(values.max()))
    affine = [_affine(low, high) for low, high in zip(lows, highs, strict=True)]
    affine[0] = (_INPUT_SCALE, 0)
    for numbers in _alike(network):
        joined = _affine(min(lows[n] for n in numbers), max(highs[n] for n in numbers))
        fixed = _fixed(network, numbers) or ([affine[0]] if 0 in numbers else [])
        for number in numbers:
            affine[number] = fixed[0] if fixed else joined
    return affine


def _affine(low: float, high: float) -> tuple[float, int]:
    """The least scale of few digits that spans a range, and a zero point that can be anything."""
    fraction, exponent = frexp(max(high - low, 1e-3) / 254.0)
    scale = ceil(fraction * 32) / 32 * 2.0**exponent
    return scale, int(np.clip(round(-128 - low / scale), -128, 127))


def _fixed(network: SpatialNetwork, numbers: Sequence[int]) -> list[tuple[float, int]]:
    """What TFLite fixes the quantisation of one of these tensors to, if it does."""
    return [_FIXED[o.kind] for o in network.operators if o.result in numbers and o.kind in _FIXED]


def _alike(network: SpatialNetwork) -> list[list[int]]:
    """Tensors, by groups that are quantised alike."""
    group = list(range(len(network.shapes)))
    for operator in network.operators:
        if operator.kind in _ALIKE:
            joined = {group[number] for number in (operator.result, *operator.sources)}
            group = [min(joined) if own in joined else own for own in group]
    return [[n for n, own in enumerate(group) if own == first] for first in sorted(set(group))]


def _constants(
    builder: ModelBuilder, operator: Operator, affine: Sequence[tuple[float, int]] | None
) -> list[int]:
    """The constant operands of an operator, written."""
    found = [builder.constant("integers", np.asarray(item, np.int32)) for item in operator.integers]
    if operator.weights is None:
        return found
    weights, bias = operator.weights, operator.bias
    if affine is None:
        own = [weights] if bias is None else [weights, bias]
        return [*found, *(builder.constant("constant", array) for array in own)]
    axis = _WEIGHTED.get(operator.kind)
    others = tuple(i for i in range(weights.ndim) if i != axis)
    scales = np.maximum(np.abs(weights).max(axis=None if axis is None else others), 1e-3) / 127
    scales = np.atleast_1d(scales).astype(np.float32).astype(np.float64)
    along = [1] * weights.ndim
    if axis is not None:
        along[axis] = -1
    whole = np.clip(np.rint(weights / scales.reshape(along)), -127, 127).astype(np.int8)
    found.append(builder.constant("weights", whole, scale=scales, quantized_dimension=axis or 0))
    if bias is not None:
        steps = scales * affine[operator.sources[0]][0]
        found.append(builder.constant("bias", np.rint(bias / steps).astype(np.int32), scale=steps))
    return found
