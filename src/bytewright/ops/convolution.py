"""Convolutions, with TOSA's layouts. Integer accumulators are exact; that they fit 32 bits is checked.

Integer sums are formed in float64, which is exact here: a product is below 2^16, a sum would need 2^37 of them
to leave the 53 bits, and the numpy reference becomes a matrix product of the quick kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright.ir.graph import Array, Operation
from bytewright.ir.types import DType, TensorType, format_shape
from bytewright.ops.checks import ARITHMETIC, require, require_count, require_dtype, require_rank
from bytewright.ops.window import Padding, Pair, pad_spatial, tap, window_shape


@dataclass(frozen=True, slots=True)
class Conv2d(Operation):
    """x [N,H,W,IC], weights [OC,KH,KW,IC], bias [OC] -> [N,OH,OW,OC].

    i8 with i32 bias gives the i32 accumulator; f32 gives f32. Taps outside the input contribute nothing, which
    for i8 means that padding holds `input_zero_point`.

    Attributes:
        stride, dilation: (vertical, horizontal).
        padding: (top, bottom, left, right).
    """

    name: ClassVar[str] = "conv2d"
    stride: Pair
    padding: Padding
    dilation: Pair
    input_zero_point: int = 0

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """[N,OH,OW,OC], i32 for i8 operands and f32 for f32."""
        result = _check_operands(inputs)
        operand, weights, bias = inputs
        channels, kernel_height, kernel_width, depth = weights.fixed_shape
        require(
            depth == operand.fixed_shape[3],
            f"weights [{format_shape(weights.shape)}] do not fit {operand.fixed_shape[3]} input channels",
        )
        _check_bias(bias, channels)
        spatial = window_shape(
            operand, (kernel_height, kernel_width), self.stride, self.padding, self.dilation
        )
        return (TensorType((*spatial, channels), result),)

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Sum of a matrix product per tap, plus bias."""
        operand, weights, bias = inputs
        padded = _centred(operand, self.padding, self.input_zero_point)
        outputs = _output_extents(padded, weights.shape[1:3], self.stride, self.dilation)
        taps = weights.astype(np.float64)
        total = np.zeros((operand.shape[0], *outputs, weights.shape[0]), dtype=np.float64)
        for row in range(weights.shape[1]):
            for column in range(weights.shape[2]):
                offset = (row * self.dilation[0], column * self.dilation[1])
                total += tap(padded, offset, outputs, self.stride) @ taps[:, row, column, :].T
        return (_finish(total, bias),)


@dataclass(frozen=True, slots=True)
class DepthwiseConv2d(Operation):
    """x [N,H,W,C], weights [KH,KW,C,M], bias [C*M] -> [N,OH,OW,C*M], where channel c*M+m reads channel c.

    Types, attributes and padding as for `Conv2d`.
    """

    name: ClassVar[str] = "depthwise_conv2d"
    stride: Pair
    padding: Padding
    dilation: Pair
    input_zero_point: int = 0

    def infer(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """[N,OH,OW,C*M], i32 for i8 operands and f32 for f32."""
        result = _check_operands(inputs)
        operand, weights, bias = inputs
        kernel_height, kernel_width, depth, multiplier = weights.fixed_shape
        require(
            depth == operand.fixed_shape[3],
            f"weights [{format_shape(weights.shape)}] do not fit {operand.fixed_shape[3]} input channels",
        )
        _check_bias(bias, depth * multiplier)
        spatial = window_shape(
            operand, (kernel_height, kernel_width), self.stride, self.padding, self.dilation
        )
        return (TensorType((*spatial, depth * multiplier), result),)

    def evaluate(self, inputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Sum over taps of an outer product per channel, plus bias."""
        operand, weights, bias = inputs
        padded = _centred(operand, self.padding, self.input_zero_point)
        outputs = _output_extents(padded, weights.shape[:2], self.stride, self.dilation)
        taps = weights.astype(np.float64)
        total = np.zeros((operand.shape[0], *outputs, *weights.shape[2:]), dtype=np.float64)
        for row in range(weights.shape[0]):
            for column in range(weights.shape[1]):
                offset = (row * self.dilation[0], column * self.dilation[1])
                seen = tap(padded, offset, outputs, self.stride)
                total += seen[..., np.newaxis] * taps[row, column]
        flat = total.reshape((*total.shape[:3], weights.shape[2] * weights.shape[3]))
        return (_finish(flat, bias),)


def _check_operands(inputs: tuple[TensorType, ...]) -> DType:
    """Types and ranks of a convolution's operands; returns the result's element type."""
    require_count(inputs, 3)
    operand, weights, bias = inputs
    require_rank(operand, 4, "the input")
    require_rank(weights, 4, "the weights")
    require_dtype(operand, ARITHMETIC, "the input")
    require_dtype(weights, (operand.dtype,), "the weights")
    result = DType.I32 if operand.dtype is DType.I8 else DType.F32
    require_dtype(bias, (result,), "the bias")
    return result


def _check_bias(bias: TensorType, channels: int) -> None:
    """The bias has one value per output channel."""
    require(bias.shape == (channels,), f"bias [{format_shape(bias.shape)}] does not fit {channels} channels")


def _centred(operand: Array, padding: Padding, zero_point: int) -> NDArray[np.float64]:
    """The operand in float64 with its zero point subtracted and zeros around it."""
    return pad_spatial(operand.astype(np.float64) - zero_point, padding, 0.0)


def _output_extents(padded: Array, kernel: tuple[int, ...], stride: Pair, dilation: Pair) -> Pair:
    """Height and width of the output over an operand that is padded already."""
    reach = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in range(2)]
    height, width = ((padded.shape[axis + 1] - reach[axis]) // stride[axis] + 1 for axis in range(2))
    return height, width


def _finish(total: NDArray[np.float64], bias: Array) -> Array:
    """Adds the bias and converts to the result's type.

    Raises:
        OverflowError: An accumulator does not fit 32 bits; importing proves that this cannot happen.
    """
    total = total + bias.astype(np.float64)
    if bias.dtype != np.int32:
        return total.astype(np.float32)
    bounds = np.iinfo(np.int32)
    if total.size and (total.min() < bounds.min or total.max() > bounds.max):
        raise OverflowError("an accumulator of a convolution does not fit 32 bits")
    return total.astype(np.int32)
