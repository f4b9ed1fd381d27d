"""Random models of several operators, and of one hard convolution, each determined by a seed.

What `random_models` draws is small, so that hypothesis can shrink it. Here are the things that need size or
company: many channels (tails of blocks), windows larger than the input, more than 25 taps, weights of -128, big
biases; pads before convolutions, residuals, tensors with several readers, results that are inputs, constants or
stated twice. Every model is one that LiteRT runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.random_draft import FLOAT_TOLERANCE
from support.random_models import RandomModel
from tflite_writer import ModelBuilder, Subgraph

Affine = tuple[float, int]
_ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


@dataclass(frozen=True)
class Tensor:
    """A tensor of the model; `index` is its place in the file."""

    index: int
    shape: tuple[int, ...]
    affine: Affine
    dtype: str


class Network:
    """A model under construction; what is made next is of element type `dtype`, and its peers are of that type too."""

    def __init__(
        self, seed: int, dtype: str, *, is_tflm: bool = False, has_gaps: bool = False, is_hybrid: bool = False
    ) -> None:
        self.generator = np.random.default_rng(seed)
        self.dtype = dtype
        self.is_tflm = is_tflm
        self.has_gaps = has_gaps
        self.is_hybrid = is_hybrid
        self.tolerance = FLOAT_TOLERANCE
        self.builder = ModelBuilder()
        self.inputs: list[Tensor] = []
        self.tensors: list[Tensor] = []
        self.functions: list[Subgraph] = []
        self.story: list[str] = [f"seed={seed}"]

    # Draws

    def below(self, count: int) -> int:
        return int(self.generator.integers(count))

    def between(self, low: int, high: int) -> int:
        return int(self.generator.integers(low, high + 1))

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def one_of(self, items: Sequence[Any]) -> Any:
        return items[self.below(len(items))]

    def peers(self) -> list[Tensor]:
        """The tensors of the present type."""
        return [tensor for tensor in self.tensors if tensor.dtype == self.dtype]

    def zero_point(self) -> int:
        if self.is_int16:
            return 0
        return self.one_of([-128, 0, 127, self.between(-128, 127)]) + 128 + self.least

    def affine(self) -> Affine:
        scale = 2.0 ** self.between(-7, 0) if self.chance(0.4) else float(self.generator.uniform(0.004, 0.5))
        return float(np.float32(scale / 256 if self.is_int16 else scale)), self.zero_point()

    # Tensors

    @property
    def is_int8(self) -> bool:
        return self.dtype == "int8"

    @property
    def is_int16(self) -> bool:
        return self.dtype == "int16"

    @property
    def is_uint8(self) -> bool:
        return self.dtype == "uint8"

    @property
    def is_quantised(self) -> bool:
        return self.is_int8 or self.is_uint8 or self.is_int16

    @property
    def least(self) -> int:
        """The least byte."""
        return 0 if self.is_uint8 else -128

    def tensor(self, shape: Sequence[int], affine: Affine, name: str = "") -> Tensor:
        name = name or f"tensor_{len(self.tensors)}"
        keywords: dict[str, Any] = {"scale": affine[0], "zero_point": affine[1]} if self.is_quantised else {}
        index = self.builder.tensor(name, shape, self.dtype, **keywords)
        made = Tensor(index, tuple(int(extent) for extent in shape), affine, self.dtype)
        self.tensors.append(made)
        return made

    def input(self, shape: Sequence[int]) -> Tensor:
        made = self.tensor(shape, self.affine(), f"input_{len(self.inputs)}")
        self.inputs.append(made)
        return made

    def weights(self, shape: Sequence[int], low: int = -127) -> NDArray[Any]:
        if self.is_uint8:  # without a zero point, which may be any
            zero_point = self.zero_point()
            return self.generator.integers(-zero_point, 256 - zero_point, shape).astype(np.int16)
        if self.is_quantised:
            return self.generator.integers(low, 128, shape).astype(np.int8)
        return self.values(shape)

    def values(self, shape: Sequence[int]) -> NDArray[Any]:
        if self.is_int16:
            return self.generator.integers(-32768, 32768, shape).astype(np.int16)
        if self.is_uint8:
            return self.generator.integers(0, 256, shape).astype(np.uint8)
        if self.is_int8:
            return self.weights(shape)
        return (self.generator.integers(-16, 17, shape) / 8).astype(np.float32)

    def constant(self, shape: Sequence[int], affine: Affine) -> Tensor:
        keywords: dict[str, Any] = {"scale": affine[0], "zero_point": affine[1]} if self.is_quantised else {}
        index = self.builder.constant(f"constant_{len(self.tensors)}", self.values(shape), **keywords)
        made = Tensor(index, tuple(shape), affine, self.dtype)
        self.tensors.append(made)
        return made

    def integers(self, values: Any) -> int:
        return self.builder.constant("integers", np.asarray(values, dtype=np.int32))

    def operator(self, kind: str, sources: Sequence[int], results: Sequence[Tensor], **options: Any) -> None:
        self.builder.operator(kind, sources, [result.index for result in results], **options)
        stated = " ".join(f"{key}={value}" for key, value in options.items())
        self.story.append(f"{kind}({stated}){[r.shape for r in results]}")

    def finish(self, results: Sequence[int]) -> RandomModel:
        content = self.builder.build([tensor.index for tensor in self.inputs], results, *self.functions)
        shapes, dtypes = (tuple(getattr(t, each) for t in self.inputs) for each in ("shape", "dtype"))
        description = f"{self.inputs[0].dtype} {'; '.join(self.story)} -> {results}"
        return RandomModel(
            content, description, shapes, self.inputs[0].dtype, dtypes=dtypes, tolerance=self.tolerance
        )

    # Weighted operators

    def weighted(
        self,
        kind: str,
        source: Tensor,
        weights: NDArray[Any],
        output_shape: Sequence[int],
        channels: int,
        axis: int,
        **options: Any,
    ) -> Tensor:
        """What has weights and a bias, scaled to give values of some spread."""
        activation = self.one_of(_ACTIVATIONS)
        taps = weights.size // channels
        empty = self.gaps(weights, axis) if self.has_gaps else np.zeros(channels, bool)
        if not self.is_quantised:
            bias = self.builder.constant("bias", self.values((channels,)))
            result = self.tensor(output_shape, source.affine)
            index = self.float_weights(kind, weights, channels, axis)
            operands = _operands(self, kind, source, index, bias, output_shape)
            self.operator(kind, operands, [result], activation=activation, **options)
            return result
        count = 1 if self.is_uint8 else self.one_of([1, channels])
        scales = [float(np.float32(self.generator.uniform(2.0**-9, 2.0**-5))) for _ in range(count)]
        if self.chance(0.3):
            scales = [2.0 ** self.between(-9, -5) for _ in range(count)]
        if count > 1 and self.chance(0.1):
            scales[0] = 2.0 ** self.between(-44, -30)
        reach = 70 * 70 * float(np.sqrt(taps)) / self.one_of([20, 60, 127])
        spread = 2.0 ** round(np.log2(reach)) if self.chance(0.3) else reach
        output = (float(np.float32(source.affine[0] * max(scales) * spread)), self.zero_point())
        limit = 1 << 29 if self.chance(0.05) else 1 << 13
        bias = self.generator.integers(-limit, limit, channels).astype(np.int32)
        if self.is_int16:
            if kind in ("CONV_2D", "FULLY_CONNECTED") and self.chance(0.4):
                options["quantized_bias_type"] = "INT32"
            else:
                bias = bias.astype(np.int64)
        if self.has_gaps and self.chance(0.6):
            bias[empty] = 0  # what an empty channel gives is then the zero point
        weights_index = self.integer_weights(weights, scales, axis)
        bias_index = self.builder.constant("bias", bias, scale=[source.affine[0] * scale for scale in scales])
        result = self.tensor(output_shape, output)
        operands = _operands(self, kind, source, weights_index, bias_index, output_shape)
        self.operator(kind, operands, [result], activation=activation, **options)
        return result

    def integer_weights(self, weights: NDArray[Any], scales: Sequence[float], axis: int) -> int:
        """Under integers."""
        if self.is_uint8:
            zero_point = self.between(max(0, -int(weights.min())), min(255, 255 - int(weights.max())))
            stored = (weights + zero_point).astype(np.uint8)
            return self.builder.constant("weights", stored, scale=scales, zero_point=zero_point)
        return self.builder.constant("weights", weights, scale=scales, quantized_dimension=axis)

    def float_weights(self, kind: str, weights: NDArray[Any], channels: int, axis: int) -> int:
        """Under float32: as they are, or as int8 with scales."""
        if not self.is_hybrid or self.chance(0.2):
            return self.builder.constant("weights", weights)
        count = channels if kind == "DEPTHWISE_CONV_2D" else self.one_of([1, channels])
        scales = self.generator.uniform(2.0**-5, 2.0**-3, count).astype(np.float32)
        integers = np.round(weights * 8).astype(np.int8)
        return self.builder.constant("weights", integers, scale=scales, quantized_dimension=axis)

    def gaps(self, weights: NDArray[Any], axis: int) -> NDArray[np.bool_]:
        """Makes weights zero, of some results and of some channels of the input; returns which results are empty."""
        by_result = np.moveaxis(weights, axis, 0)
        empty = self.generator.random(len(by_result)) < self.one_of([0.0, 0.3, 0.6, 0.9, 1.0])
        by_result[empty] = 0
        if axis == 0:
            weights[..., self.generator.random(weights.shape[-1]) < self.one_of([0.0, 0.3, 0.6])] = 0
        return empty

    def convolution(self, source: Tensor, *, hard: bool = False) -> Tensor | None:
        """CONV_2D or DEPTHWISE_CONV_2D."""
        batch, *spatial, depth = source.shape
        is_depthwise = self.chance(0.4)
        padding = self.one_of(["SAME", "VALID"])
        kernel: list[int] = []
        strides: list[int] = []
        dilations: list[int] = []
        outputs: list[int] = []
        for extent in spatial:
            step, spread = self.one_of([1, 1, 2, 3]), self.one_of([1, 1, 1, 2, 3])
            size = self.between(1, 7 if hard else 3)
            if padding == "VALID":
                size = min(size, (extent - 1) // spread + 1)
            taken = extent if padding == "SAME" else extent - (size - 1) * spread
            kernel.append(size)
            strides.append(step)
            dilations.append(spread)
            outputs.append(-(-taken // step))
        options = {
            "padding": padding,
            "stride_h": strides[0],
            "stride_w": strides[1],
            "dilation_h_factor": dilations[0],
            "dilation_w_factor": dilations[1],
        }
        low = -128 if self.chance(0.3) else -127
        if is_depthwise:
            options["depth_multiplier"] = multiplier = self.one_of([1, 1, 1, 2, 3] if depth < 14 else [1])
            channels = depth * multiplier
            shape = (batch, *outputs, channels)
            weights = self.weights((1, *kernel, channels), low)
            return self.weighted("DEPTHWISE_CONV_2D", source, weights, shape, channels, 3, **options)
        channels = self.between(1, 40) if hard else self.between(1, 9)
        weights = self.weights((channels, *kernel, depth), low)
        return self.weighted("CONV_2D", source, weights, (batch, *outputs, channels), channels, 0, **options)

    def fully_connected(self, source: Tensor) -> Tensor:
        """FULLY_CONNECTED on the last axis."""
        depth, channels = source.shape[-1], self.between(1, 24)
        keep = self.chance(0.5)
        rows = prod(source.shape[:-1])
        shape = (*source.shape[:-1], channels) if keep else (rows, channels)
        weights = self.weights((channels, depth))
        return self.weighted("FULLY_CONNECTED", source, weights, shape, channels, 0, keep_num_dims=keep)

    # Elements

    def binary(self, source: Tensor) -> Tensor:
        """ADD, SUB or MUL: with another tensor, with itself, or with a constant that broadcasts."""
        kind = self.one_of(["ADD", "ADD", "SUB", "MUL"])
        peers = [tensor for tensor in self.peers() if tensor.shape == source.shape]
        if self.chance(0.6):
            other = self.one_of(peers)
        elif self.chance(0.5):
            other = self.constant(self.one_of([source.shape[-1:], source.shape, (1,)]), self.affine())
        else:
            shape = tuple(1 if self.chance(0.4) else extent for extent in source.shape)
            fitting = [tensor for tensor in self.peers() if tensor.shape == shape]
            other = self.one_of(fitting) if fitting else self.constant(shape, self.affine())
        operands = [source, other] if self.chance(0.5) else [other, source]
        scale, zero_point = self.affine()
        # A factor far above one overflows 32 bits, which is undefined in the references and refused.
        product = source.affine[0] * other.affine[0] if kind == "MUL" else 0.0
        least = product * 1.01 if self.is_int16 else product / 64
        result = self.tensor(source.shape, (float(np.float32(max(scale, least))), zero_point))
        options = {"pot_scale_int16": False} if self.is_int16 and kind != "MUL" else {}
        activation = self.one_of(_ACTIVATIONS)
        self.operator(kind, [x.index for x in operands], [result], activation=activation, **options)
        return result

    def unary(self, source: Tensor) -> Tensor:
        """An element-wise operator of one operand."""
        kinds = ["RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH"]
        kinds += [] if self.is_tflm else ["RELU_N1_TO_1"]
        if self.is_int16:
            kinds = ["RELU", "RELU6", "LEAKY_RELU", "LOGISTIC", "TANH"]
        kind = self.one_of([*kinds, "QUANTIZE"] if self.is_quantised else kinds)
        target = source.affine if self.chance(0.5) else self.affine()
        if self.is_int16 and kind in ("LOGISTIC", "TANH"):
            target = (1.0 / 32768, 0)
        elif kind == "LOGISTIC":
            target = (1.0 / 256, self.least)
        elif kind == "TANH":
            target = (1.0 / 128, self.least + 128)
        elif kind == "HARD_SWISH" and source.affine[0] > 64 * target[0]:
            target = source.affine
        result = self.tensor(source.shape, target)
        options = (
            {"alpha": self.one_of([0.1, 0.25, 0.3 if self.is_int16 else -0.3])}
            if kind == "LEAKY_RELU"
            else {}
        )
        self.operator(kind, [source.index], [result], **options)
        return result

    def softmax(self, source: Tensor) -> Tensor:
        """SOFTMAX on the last axis."""
        result = self.tensor(source.shape, (1.0 / 32768, 0) if self.is_int16 else (1.0 / 256, self.least))
        self.operator("SOFTMAX", [source.index], [result], beta=1.0)
        return result

    # Reductions

    def pool(self, source: Tensor) -> Tensor:
        """AVERAGE_POOL_2D or MAX_POOL_2D."""
        kind, padding = self.one_of(["AVERAGE_POOL_2D", "MAX_POOL_2D"]), self.one_of(["SAME", "VALID"])
        batch, *spatial, depth = source.shape
        kernel = [self.between(1, min(5, extent)) for extent in spatial]
        strides = [self.between(1, 3) for _ in spatial]
        outputs = [
            -(-(extent if padding == "SAME" else extent - size + 1) // step)
            for extent, size, step in zip(spatial, kernel, strides, strict=True)
        ]
        result = self.tensor((batch, *outputs, depth), source.affine)
        options = {"stride_h": strides[0], "stride_w": strides[1], "padding": padding}
        options |= {"filter_height": kernel[0], "filter_width": kernel[1]}
        self.operator(kind, [source.index], [result], activation=self.one_of(_ACTIVATIONS), **options)
        return result

    def mean(self, source: Tensor) -> Tensor | None:
        """MEAN over some axes."""
        rank = len(source.shape)
        axes = sorted({self.below(rank) for _ in range(self.between(1, rank))})
        if len(axes) == rank:
            axes = axes[:-1]
        if not axes:
            return None
        keep = self.chance(0.5)
        shape = [1 if axis in axes else extent for axis, extent in enumerate(source.shape)]
        if not keep:
            shape = [extent for axis, extent in enumerate(source.shape) if axis not in axes]
        result = self.tensor(shape, source.affine if self.chance(0.5) else self.affine())
        self.operator("MEAN", [source.index, self.integers(axes)], [result], keep_dims=keep)
        return result

    # Moves

    def reshape(self, source: Tensor) -> Tensor:
        """RESHAPE, SQUEEZE or EXPAND_DIMS."""
        kind = self.one_of(["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
        ones = [axis for axis, extent in enumerate(source.shape) if extent == 1]
        if kind == "SQUEEZE" and ones and len(source.shape) > 2:
            axis = self.one_of(ones)
            result = self.tensor((*source.shape[:axis], *source.shape[axis + 1 :]), source.affine)
            self.operator(kind, [source.index], [result], squeeze_dims=[axis])
            return result
        if kind == "EXPAND_DIMS" and len(source.shape) < 4:
            axis = self.between(0, len(source.shape))
            result = self.tensor((*source.shape[:axis], 1, *source.shape[axis:]), source.affine)
            self.operator(kind, [source.index, self.integers([axis])], [result])
            return result
        order = list(self.generator.permutation(len(source.shape)))
        shape = [source.shape[axis] for axis in order]
        if self.chance(0.3) and len(shape) > 1:
            shape = [shape[0] * shape[1], *shape[2:]]
        result = self.tensor(shape, source.affine)
        self.operator("RESHAPE", [source.index, self.integers(shape)], [result], new_shape=shape)
        return result

    def transpose(self, source: Tensor) -> Tensor:
        """TRANSPOSE."""
        order = [int(axis) for axis in self.generator.permutation(len(source.shape))]
        result = self.tensor([source.shape[axis] for axis in order], source.affine)
        self.operator("TRANSPOSE", [source.index, self.integers(order)], [result])
        return result

    def slice(self, source: Tensor) -> Tensor:
        """SLICE, or STRIDED_SLICE with steps."""
        begin = [self.below(extent) for extent in source.shape]
        end = [self.between(first + 1, extent) for first, extent in zip(begin, source.shape, strict=True)]
        if self.chance(0.5):
            size = [last - first for first, last in zip(begin, end, strict=True)]
            result = self.tensor(size, source.affine)
            self.operator("SLICE", [source.index, self.integers(begin), self.integers(size)], [result])
            return result
        step = [self.one_of([1, 1, 2, 3]) for _ in begin]
        size = [-(-(last - first) // by) for first, last, by in zip(begin, end, step, strict=True)]
        result = self.tensor(size, source.affine)
        operands = [source.index, *(self.integers(x) for x in (begin, end, step))]
        self.operator("STRIDED_SLICE", operands, [result])
        return result

    def split(self, source: Tensor) -> Tensor | None:
        """SPLIT; all parts may be used later."""
        axis = self.below(len(source.shape))
        divisors = [n for n in (2, 3, 4) if source.shape[axis] % n == 0]
        if not divisors:
            return None
        parts = self.one_of(divisors)
        shape = [*source.shape]
        shape[axis] //= parts
        results = [self.tensor(shape, source.affine) for _ in range(parts)]
        axis_tensor = self.builder.tensor("axis", [], "int32", data=np.array(axis, dtype=np.int32))
        self.operator("SPLIT", [axis_tensor, source.index], results, num_splits=parts)
        return self.one_of(results)

    def concatenation(self, source: Tensor) -> Tensor:
        """CONCATENATION with tensors of the same quantisation, itself perhaps."""
        axis = self.below(len(source.shape))

        def fits(other: Tensor) -> bool:
            same_rank = len(other.shape) == len(source.shape)
            rest = [
                a == b for i, (a, b) in enumerate(zip(source.shape, other.shape, strict=False)) if i != axis
            ]
            return same_rank and all(rest) and (not self.is_quantised or other.affine == source.affine)

        fitting = [tensor for tensor in self.peers() if fits(tensor)]
        others = [self.one_of(fitting) for _ in range(self.between(1, 2))]
        if self.chance(0.2):
            others.append(self.constant(source.shape, source.affine))
        operands = [source, *others]
        shape = [*source.shape]
        shape[axis] = sum(tensor.shape[axis] for tensor in operands)
        result = self.tensor(shape, source.affine)
        self.operator("CONCATENATION", [tensor.index for tensor in operands], [result], axis=axis)
        return result

    def pad(self, source: Tensor) -> Tensor:
        """PAD, before a convolution more often than not."""
        spatial = len(source.shape) == 4 and self.chance(0.7)
        widths = [
            [0, 0] if spatial and axis in (0, 3) else [self.between(0, 2), self.between(0, 2)]
            for axis in range(len(source.shape))
        ]
        shape = [extent + sum(width) for extent, width in zip(source.shape, widths, strict=True)]
        result = self.tensor(shape, source.affine)
        self.operator("PAD", [source.index, self.integers(widths)], [result])
        if spatial and self.chance(0.8):
            return self.convolution(result) or result
        return result


Make = Callable[[Any, Tensor], Tensor | None]


def _operands(
    network: Network, kind: str, source: Tensor, weights: int, bias: int, shape: Sequence[int]
) -> list[int]:
    """Of a layer, in their order; a TRANSPOSE_CONV is given the shape of its result."""
    if kind == "TRANSPOSE_CONV":
        return [network.integers(shape), weights, source.index, bias]
    return [source.index, weights, bias]


@dataclass(frozen=True)
class NodeKind:
    """A kind of node: what makes it, or nothing where the drawn numbers do not fit, and after which tensors it may be
    drawn.
    """

    make: Make
    may_be_drawn: Callable[[Any, Tensor], bool]


def _of_any_rank(_network: Network, _source: Tensor) -> bool:
    return True


def _of_four_axes(_network: Network, source: Tensor) -> bool:
    return len(source.shape) == 4


NODE_KINDS = (
    *(
        NodeKind(make, _of_any_rank)
        for make in (
            *(Network.binary, Network.binary, Network.unary, Network.mean, Network.reshape),
            *(Network.transpose, Network.slice, Network.split, Network.concatenation, Network.pad),
            *(Network.softmax, Network.fully_connected),
        )
    ),
    *(NodeKind(make, _of_four_axes) for make in (*(Network.convolution,) * 3, Network.pool, Network.pad) * 2),
)
"""Of operators with operands of one type. Who stands here twice is drawn twice as often."""


def random_convolution(seed: int, dtype: str) -> RandomModel:
    """One CONV_2D or DEPTHWISE_CONV_2D of the hard kind."""
    network = Network(seed, dtype)
    depth = network.one_of([1, 2, 3, 4, 8, 8, 15, 16, 17, network.between(1, 40)])
    shape = (network.one_of([1, 1, 1, 2]), network.between(1, 11), network.between(1, 11), depth)
    result = network.convolution(network.input(shape), hard=True)
    assert result is not None
    return network.finish([result.index])


def random_transposed(seed: int, dtype: str) -> RandomModel:
    """One TRANSPOSE_CONV: of cells that the result lacks a side of, of phases that fewer taps reach, or none."""
    network = Network(seed, dtype)
    depth, channels = (network.one_of([1, 3, 4, 8, 9, 16, 17, network.between(1, 40)]) for _ in range(2))
    source = network.input((network.one_of([1, 1, 2]), network.between(1, 6), network.between(1, 9), depth))
    padding = network.one_of(["SAME", "VALID"])
    kernel, stride = ([network.between(1, most) for _ in range(2)] for most in (5, 4))
    outputs = [
        extent * step + (0 if padding == "SAME" else size - 1) - network.below(step)
        for extent, size, step in zip(source.shape[1:3], kernel, stride, strict=True)
    ]
    weights = network.weights((channels, *kernel, depth), -128 if network.chance(0.3) else -127)
    options = {"padding": padding, "stride_h": stride[0], "stride_w": stride[1]}
    shape = (source.shape[0], *outputs, channels)
    result = network.weighted("TRANSPOSE_CONV", source, weights, shape, channels, 0, **options)
    return network.finish([result.index])


def random_reduction(seed: int, dtype: str) -> RandomModel:
    """A pool, or a mean over some axes; what computes on its elements may follow."""
    network = Network(seed, dtype)
    depth = network.one_of([1, 3, 4, 7, 8, 16, 17, 23, 32, 64, network.between(1, 80)])
    rank = network.one_of([2, 3, 4, 4, 4, 4])
    shape = [network.one_of([1, 1, 1, 2]), network.between(1, 9), network.between(1, 9), depth]
    source = network.input(shape[4 - rank :])
    result = network.pool(source) if rank == 4 and network.chance(0.7) else network.mean(source)
    if result is None:
        result = network.unary(source)
    elif network.chance(0.4):
        result = network.one_of([network.unary, network.binary])(result)
    return network.finish([result.index])


def random_function(seed: int) -> RandomModel:
    """A function of a byte, over elements that fill registers of bytes, or do not."""
    network = Network(seed, "int8")
    x = network.input((network.between(1, 3), network.one_of([1, 5, 31, 32, 33, 64, 100, 200])))
    kind, scale = network.one_of([("LOGISTIC", 1 / 256), ("TANH", 1 / 128), ("HARD_SWISH", 0.05)])
    result = network.tensor(x.shape, (scale, -128 if kind == "LOGISTIC" else 0))
    network.operator(kind, [x.index], [result])
    return network.finish([result.index])


def random_softmax(seed: int) -> RandomModel:
    """A SOFTMAX of int8 over rows that fill vectors, or do not; LiteRT aborts on 512 equal elements."""
    network = Network(seed, "int8")
    depth = network.one_of([4, 5, 7, 16, 17, 31, 64, 100, 255, 256, 510, 511])
    return network.finish([network.softmax(network.input((network.between(1, 4), depth))).index])


def random_elements(seed: int) -> RandomModel:
    """Element-wise operators of int8 on shapes that fill vectors, or do not, with operands that are broadcast."""
    network = Network(seed, "int8")
    shape = [network.one_of([1, 2]), network.between(1, 7), network.between(1, 7), network.between(1, 21)]
    recent = network.input(shape[network.below(4) :])
    network.input(recent.shape)
    if network.chance(0.5):
        network.input([extent if network.chance(0.5) else 1 for extent in recent.shape])
    for _ in range(network.between(1, 3)):
        recent = network.binary(recent) if network.chance(0.7) else network.unary(recent)
    return network.finish([recent.index])


def random_network(
    seed: int,
    dtype: str,
    *,
    size: int = 6,
    is_tflm: bool = False,
    has_gaps: bool = False,
    is_hybrid: bool = False,
) -> RandomModel:
    """A network of about `size` operators with one to four results.

    With gaps, many weights are zero, by channels; in hybrid ones, of float32, most weights are int8.
    """
    network = Network(seed, dtype, is_tflm=is_tflm, has_gaps=has_gaps, is_hybrid=is_hybrid)
    depth = network.between(1, 10)
    first = network.input((network.one_of([1, 1, 2]), network.between(1, 8), network.between(1, 8), depth))
    recent = first
    if network.chance(0.3):
        network.input(first.shape)
    for _ in range(network.between(1, size)):
        kinds = [kind for kind in NODE_KINDS if kind.may_be_drawn(network, recent)]
        made = network.one_of(kinds).make(network, recent)
        if made is not None:
            recent = made if network.chance(0.85) else network.one_of(network.tensors)
        if prod(recent.shape) > 4000:
            recent = first
    if len(network.tensors) == len(network.inputs):
        network.unary(first)
    made_by_operators = [t.index for t in network.tensors if t not in network.inputs]
    results = [made_by_operators[-1]]
    for _ in range(network.below(3)):
        extra = network.one_of(network.tensors).index
        if not is_tflm or extra not in results:
            results.append(extra)
    return network.finish(results)
