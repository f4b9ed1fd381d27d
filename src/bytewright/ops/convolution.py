"""Convolutions, with TOSA's layouts. Integer accumulators are exact; that they fit their type is checked.

Weights have a type of their own, and sums have the bias's (`SUMS`). Integer sums are formed in float64, which is exact
here: a product is at most 2^30, a sum would need 2^23 of them to leave the 53 bits, and the numpy reference becomes a
matrix product of the quick kind.
"""

from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.graph import OMIT_DEFAULT
from bytewright.ops.checks import QUANTISED, WIDE, require, require_count, require_dtype, require_rank
from bytewright.ops.result import in_integers
from bytewright.ops.window import Padding, Pair, padding_for, turned_padding, window_shape, windows

Float64 = NDArray[np.float64]
SUMS: dict[tuple[ir.DType, ir.DType], tuple[ir.DType, ...]] = {
    (ir.DType.F32, ir.DType.F32): (ir.DType.F32,),
    (ir.DType.F32, ir.DType.I8): (ir.DType.F32,),
    **{(ir.DType.I8, own): (ir.DType.I32,) for own in QUANTISED},
    **{(ir.DType.I16, own): WIDE for own in QUANTISED},
}
"""What products of activations and weights may be summed in, by the types of both."""


@dataclass(frozen=True, slots=True)
class _Convolution(ir.Operation):
    """Abstract: a window over the rows and columns of x [N,H,W,C], with weights, and a bias for each channel.

    The result has the type of the sums, which is the bias's. Taps outside the input contribute nothing, which for
    integers means that padding holds `input_zero_point`.

    Attributes:
        stride, dilation: (vertical, horizontal).
        padding: (top, bottom, left, right).
        is_same: Whether the padding is what SAME makes of the extents that there are; `padding` has the most of each.
    """

    stride: Pair
    padding: Padding
    dilation: Pair
    input_zero_point: int = 0
    is_same: bool = field(default=False, kw_only=True, metadata=OMIT_DEFAULT)
    operand_names: ClassVar[tuple[str, ...]] = ("input", "weights", "bias")
    kernel_axis: ClassVar[int]

    @property
    def turned(self) -> Self:
        """The operator with rows and columns swapped; axes `kernel_axis` and the next of its weights are, too."""
        padding = turned_padding(self.padding)
        return replace(self, stride=self.stride[::-1], dilation=self.dilation[::-1], padding=padding)

    def kernel(self, weights: tuple[int, ...]) -> Pair:
        """Height and width of the window, of the weights' shape."""
        return weights[self.kernel_axis], weights[self.kernel_axis + 1]

    def channels(self, weights: tuple[int, ...]) -> tuple[int, int]:
        """Channels of the input and of the output, of the weights' shape."""
        raise NotImplementedError

    def tap(self, seen: Float64, weights: Float64, row: int, column: int) -> Float64:
        """What one tap adds to [N,OH,OW,OC], where it sees [N,OH,OW,C]."""
        raise NotImplementedError

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """[N,OH,OW,OC] of the bias's type."""
        operand, weights, bias = _checked(inputs)
        depth, channels = self.channels(weights.fixed_shape)
        _check_channels(inputs, depth, channels)
        kernel = self.kernel(weights.fixed_shape)
        spatial = window_shape(
            operand, kernel, self.stride, self.padding, self.dilation, is_same=self.is_same
        )
        return (ir.TensorType((*spatial, channels), bias.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Sum over the taps, plus bias."""
        operand, weights, bias = inputs
        centred = operand.astype(np.float64) - self.input_zero_point
        kernel = self.kernel(weights.shape)
        padding = padding_for(
            operand.shape, kernel, self.stride, self.padding, self.dilation, is_same=self.is_same
        )
        seen = windows(centred, kernel, self.stride, padding, self.dilation)
        factors = weights.astype(np.float64)
        total = np.zeros((*seen.shape[:3], bias.size), dtype=np.float64)
        for row, column in product(*map(range, kernel)):
            total += self.tap(seen[..., row, column], factors, row, column)
        return (_finish(total, bias),)

    def num_macs(self, inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
        """Every tap of every window, whether it is in the padding or not."""
        return self.work_per_element(inputs) * results[0].sample_elements

    def work_per_element(self, inputs: tuple[ir.TensorType, ...]) -> int:
        """One product for each weight of a channel."""
        return inputs[1].num_elements // self.channels(inputs[1].fixed_shape)[1]


@dataclass(frozen=True, slots=True)
class Conv2d(_Convolution):
    """x [N,H,W,IC], weights [OC,KH,KW,IC], bias [OC] -> [N,OH,OW,OC]."""

    name: ClassVar[str] = "conv2d"
    kernel_axis: ClassVar[int] = 1

    def channels(self, weights: tuple[int, ...]) -> tuple[int, int]:
        """[OC,KH,KW,IC]."""
        return weights[3], weights[0]

    def tap(self, seen: Float64, weights: Float64, row: int, column: int) -> Float64:
        """A matrix product."""
        return seen @ weights[:, row, column, :].T


@dataclass(frozen=True, slots=True)
class DepthwiseConv2d(_Convolution):
    """x [N,H,W,C], weights [KH,KW,C,M], bias [C*M] -> [N,OH,OW,C*M], where channel c*M+m reads channel c."""

    name: ClassVar[str] = "depthwise_conv2d"
    kernel_axis: ClassVar[int] = 0

    def channels(self, weights: tuple[int, ...]) -> tuple[int, int]:
        """[KH,KW,C,M]."""
        return weights[2], weights[2] * weights[3]

    def tap(self, seen: Float64, weights: Float64, row: int, column: int) -> Float64:
        """An outer product per channel."""
        return (seen[..., np.newaxis] * weights[row, column]).reshape((*seen.shape[:3], -1))


@dataclass(frozen=True, slots=True)
class GroupedConv2d(_Convolution):
    """x [N,H,W,G*IC], weights [OC,KH,KW,IC], bias [OC] -> [N,OH,OW,OC].

    Channels are in groups: the first OC/G channels of the result read the first IC of the input, and so on.
    """

    name: ClassVar[str] = "grouped_conv2d"
    kernel_axis: ClassVar[int] = 1
    groups: int = 1

    def channels(self, weights: tuple[int, ...]) -> tuple[int, int]:
        """[OC,KH,KW,IC]; the input has those of all groups."""
        require(
            self.groups >= 1 and weights[0] % self.groups == 0,
            f"{weights[0]} channels are not in {self.groups} groups",
        )
        return weights[3] * self.groups, weights[0]

    def tap(self, seen: Float64, weights: Float64, row: int, column: int) -> Float64:
        """A matrix product per group."""
        given = np.split(seen, self.groups, axis=3)
        filters = np.split(weights[:, row, column, :], self.groups)
        return np.concatenate([part @ own.T for part, own in zip(given, filters, strict=True)], axis=3)


@dataclass(frozen=True, slots=True)
class TransposeConv2d(ir.Operation):
    """x [N,H,W,IC], weights [OC,KH,KW,IC], bias [OC] -> [N,OH,OW,OC]: each element of x is spread over a window.

    Element (y, x) adds to (y * stride + ky + top, x * stride + kx + left) of the result, as far as that has it.
    The result has the type of the sums, which is the bias's.

    Attributes:
        stride: (vertical, horizontal).
        out_pad: (top, bottom, left, right), what the result has around the windows of all elements; negative where
            it has less.
    """

    name: ClassVar[str] = "transpose_conv2d"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "weights", "bias")
    stride: Pair
    out_pad: Padding
    input_zero_point: int = 0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """[N,OH,OW,OC] of the bias's type."""
        operand, weights, bias = _checked(inputs)
        channels, *kernel, depth = weights.fixed_shape
        _check_channels(inputs, depth, channels)
        require(min(self.stride) >= 1, f"stride {self.stride} is not positive")
        require(min(kernel) >= 1, f"kernel {tuple(kernel)} has no element")
        extents: list[ir.Extent] = []
        for extent, step, size, pads in zip(operand.shape[1:3], self.stride, kernel, self._pads, strict=True):
            extents.append(ir.quotient(ir.multiple(extent, step), size - step + sum(pads)))
        result = ir.format_shape(tuple(extents))
        require(min(map(ir.lower_bound, extents)) >= 1, f"the result of {result} has no element")
        return (ir.TensorType((operand.shape[0], *extents, channels), bias.dtype),)

    @property
    def _pads(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Those of rows, and of columns."""
        top, bottom, left, right = self.out_pad
        return (top, bottom), (left, right)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Spread out, then cut or padded."""
        operand, weights, bias = inputs
        num, height, width, _ = operand.shape
        centred, factors = operand.astype(np.float64) - self.input_zero_point, weights.astype(np.float64)
        kernel = weights.shape[1:3]
        extents = [
            (extent - 1) * step + size
            for extent, step, size in zip((height, width), self.stride, kernel, strict=True)
        ]
        spread = np.zeros((num, *extents, bias.size))
        for row, column in product(*map(range, kernel)):
            rows = slice(row, row + (height - 1) * self.stride[0] + 1, self.stride[0])
            columns = slice(column, column + (width - 1) * self.stride[1] + 1, self.stride[1])
            spread[:, rows, columns] += centred @ factors[:, row, column, :].T
        widths = [(max(first, 0), max(last, 0)) for first, last in self._pads]
        padded = np.pad(spread, ((0, 0), *widths, (0, 0)))
        cut = tuple(
            slice(max(-first, 0), extent - max(-last, 0))
            for (first, last), extent in zip(self._pads, padded.shape[1:3], strict=True)
        )
        return (_finish(padded[:, cut[0], cut[1]], bias),)

    def num_macs(self, inputs: tuple[ir.TensorType, ...], results: tuple[ir.TensorType, ...]) -> int:
        """Every element of the input with its window, whether the result has it all or not."""
        del results
        channels, height, width, _ = inputs[1].fixed_shape
        return inputs[0].sample_elements * channels * height * width

    def work_per_element(self, inputs: tuple[ir.TensorType, ...]) -> int:
        """The products of the taps that reach an element, at most."""
        _, height, width, depth = inputs[1].fixed_shape
        return -(-height // self.stride[0]) * -(-width // self.stride[1]) * depth


def _checked(inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ir.TensorType, ir.TensorType]:
    """A convolution's operands, whose types and ranks fit."""
    require_count(inputs, 3)
    operand, weights, bias = inputs
    require_rank(operand, 4, "the input")
    require_rank(weights, 4, "the weights")
    require_dtype(operand, tuple(dict.fromkeys(held for held, _ in SUMS)), "the input")
    require_dtype(weights, tuple(own for held, own in SUMS if held is operand.dtype), "the weights")
    require_dtype(bias, SUMS[operand.dtype, weights.dtype], "the bias")
    return operand, weights, bias


def _check_channels(inputs: tuple[ir.TensorType, ...], depth: int, channels: int) -> None:
    """The weights read as many channels as there are, and give as many as the bias has."""
    operand, weights, bias = inputs
    given = operand.fixed_shape[3]
    require(depth == given, f"weights [{ir.format_shape(weights.shape)}] do not fit {given} input channels")
    fits = bias.shape == (channels,)
    require(fits, f"bias [{ir.format_shape(bias.shape)}] does not fit {channels} channels")


def _finish(total: Float64, bias: ir.Array) -> ir.Array:
    """Adds the bias and converts to the result's type."""
    if bias.dtype == np.float32:
        return (total + bias.astype(np.float64)).astype(np.float32)
    return in_integers(
        total.astype(np.int64) + bias.astype(np.int64), bias.dtype, "an accumulator of a convolution"
    )


OPERATIONS = (Conv2d, DepthwiseConv2d, GroupedConv2d, TransposeConv2d)
