"""AVERAGE_POOL_2D, MAX_POOL_2D and MEAN on int8; the two numerics sets agree on all three."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.multiplier import (
    INT8_MAX,
    INT8_MIN,
    Multiplier,
    activation_range,
    quantize_multiplier,
    require_left_shift,
    single,
)
from bytewright.ops.arithmetic.rescale import double_round, to_int8


@dataclass(frozen=True, slots=True)
class Window:
    """Geometry of a pooling window: sizes, strides, and the padding before the first row and column."""

    height: int
    width: int
    stride_height: int
    stride_width: int
    pad_top: int
    pad_left: int


@dataclass(frozen=True, slots=True)
class PoolInt8:
    """The clamp of an int8 pool. Values are averaged or compared raw: no zero point, no scale."""

    low: int
    high: int


def prepare_pool(activation: str, output_scale: float, output_zero_point: int) -> PoolInt8:
    """The clamp of an int8 AVERAGE_POOL_2D or MAX_POOL_2D.

    Input and output have one quantisation; where a file's differ, `litert-ref` copies raw values and clamps by
    the output's, and `tflm` refuses the model.
    """
    return PoolInt8(*activation_range(activation, output_scale, output_zero_point))


def windows(
    values: NDArray[Any], window: Window, output_height: int, output_width: int
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Each output position with the part of its window that lies inside the input (batch, h, w, channel)."""
    height, width = values.shape[1:3]
    for row in range(output_height):
        top = row * window.stride_height - window.pad_top
        for column in range(output_width):
            left = column * window.stride_width - window.pad_left
            yield (
                row,
                column,
                values[
                    :,
                    max(top, 0) : min(top + window.height, height),
                    max(left, 0) : min(left + window.width, width),
                ],
            )


def divide_half_away(total: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """`(total +- count/2) / count` with C's truncating division, + where total > 0: halves go away from zero."""
    magnitude = (np.abs(total) + count // 2) // count
    return np.where(total > 0, magnitude, -magnitude)


def average_pool_int8(
    values: NDArray[Any], window: Window, output_height: int, output_width: int, prepared: PoolInt8
) -> NDArray[np.int8]:
    """AVERAGE_POOL_2D of [batch, height, width, channels]: padding is not counted, the mean is of raw values."""
    shape = (values.shape[0], output_height, output_width, values.shape[3])
    result = np.empty(shape, np.int64)
    for row, column, part in windows(values.astype(np.int64), window, output_height, output_width):
        count = part.shape[1] * part.shape[2]
        result[:, row, column] = divide_half_away(part.sum(axis=(1, 2)), count)
    return to_int8(result, 0, prepared.low, prepared.high)


def max_pool_int8(
    values: NDArray[Any], window: Window, output_height: int, output_width: int, prepared: PoolInt8
) -> NDArray[np.int8]:
    """MAX_POOL_2D of [batch, height, width, channels], over the part of each window inside the input."""
    shape = (values.shape[0], output_height, output_width, values.shape[3])
    result = np.empty(shape, np.int64)
    for row, column, part in windows(values, window, output_height, output_width):
        result[:, row, column] = part.max(axis=(1, 2))
    return to_int8(result, 0, prepared.low, prepared.high)


@dataclass(frozen=True, slots=True)
class MeanInt8:
    """The integers of one MEAN: `clamp(rescale(sum(x) - offset, factor) + zero_point)`, DOUBLE_ROUND.

    `offset` is the input's zero point times the number of values reduced. The factor's multiplier may be below
    2**30.
    """

    offset: int
    factor: Multiplier
    zero_point: int


def prepare_mean(
    input_scale: float, input_zero_point: int, output_scale: float, output_zero_point: int, count: int
) -> MeanInt8:
    """Integers of an int8 MEAN over `count` values per output.

    (q, e) of s_in/s_out in double; with n = min(floor(log2 count), 32, 31 + e), the division enters the
    multiplier: `q' = (q << n) / count`, truncated, and `e' = e - n`. Raises UnsupportedQuantizationError where
    the rescale overflows 32 bits.
    """
    scale = quantize_multiplier(single(input_scale) / single(output_scale))
    shift = min(count.bit_length() - 1, 32, 31 + scale.exponent)
    factor = Multiplier((scale.multiplier << shift) // count, scale.exponent - shift)
    require_left_shift(factor, 255 * count, "MEAN")
    return MeanInt8(input_zero_point * count, factor, output_zero_point)


def mean_int8(
    values: NDArray[Any], axes: Sequence[int], keep_dims: bool, prepared: MeanInt8
) -> NDArray[np.int8]:
    """MEAN of an int8 array over `axes`."""
    total = values.astype(np.int64).sum(axis=tuple(axes), keepdims=keep_dims) - prepared.offset
    factor = prepared.factor
    scaled = double_round(total, factor.multiplier, factor.left_shift, factor.right_shift)
    return to_int8(scaled, prepared.zero_point, INT8_MIN, INT8_MAX)
