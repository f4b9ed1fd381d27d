"""Formulas of the references that a compiled model computes in other steps: what tests hold the references to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.elementwise import LEFT_SHIFT, AddInt8, MulInt8
from bytewright.ops.arithmetic.float32 import Float32, clamp
from bytewright.ops.arithmetic.multiplier import Multiplier, activation_range
from bytewright.ops.arithmetic.rescale import double_round, to_int8


def _rescale(values: NDArray[np.int64], factor: Multiplier) -> NDArray[np.int64]:
    return double_round(values, factor.multiplier, factor.left_shift, factor.right_shift)


def add_int8(a: NDArray[Any], b: NDArray[Any], prepared: AddInt8) -> NDArray[np.int8]:
    """ADD or SUB of int8 arrays, which broadcast."""
    first = (np.asarray(a, np.int64) - prepared.first_zero_point) << LEFT_SHIFT
    second = (np.asarray(b, np.int64) - prepared.second_zero_point) << LEFT_SHIFT
    total = _rescale(first, prepared.first) + prepared.sign * _rescale(second, prepared.second)
    return to_int8(_rescale(total, prepared.output), prepared.zero_point, prepared.low, prepared.high)


def mul_int8(a: NDArray[Any], b: NDArray[Any], prepared: MulInt8) -> NDArray[np.int8]:
    """MUL of int8 arrays, which broadcast."""
    first = np.asarray(a, np.int64) - prepared.first_zero_point
    second = np.asarray(b, np.int64) - prepared.second_zero_point
    scaled = _rescale(first * second, prepared.output)
    return to_int8(scaled, prepared.zero_point, prepared.low, prepared.high)


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


def average_pool(
    values: Float32, window: Window, output_height: int, output_width: int, activation: str
) -> Float32:
    """AVERAGE_POOL_2D of [batch, height, width, channels]: the mean of the window's part inside the input."""
    result = np.empty((values.shape[0], output_height, output_width, values.shape[3]), np.float32)
    for row, column, part in windows(values, window, output_height, output_width):
        count = np.float32(part.shape[1] * part.shape[2])
        result[:, row, column] = part.sum(axis=(1, 2), dtype=np.float32) / count
    return clamp(result, activation)


def max_pool(
    values: Float32, window: Window, output_height: int, output_width: int, activation: str
) -> Float32:
    """MAX_POOL_2D of [batch, height, width, channels]."""
    result = np.empty((values.shape[0], output_height, output_width, values.shape[3]), np.float32)
    for row, column, part in windows(values, window, output_height, output_width):
        result[:, row, column] = part.max(axis=(1, 2))
    return clamp(result, activation)


def softmax(values: Float32, beta: float) -> Float32:
    """SOFTMAX along the last axis: exp(beta*(x - max)) over its sum."""
    shifted = (values - values.max(axis=-1, keepdims=True)) * np.float32(beta)
    exponentials = np.exp(shifted)
    return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True, dtype=np.float32), np.float32)


def hard_swish(values: Float32) -> Float32:
    """HARD_SWISH: x * clamp(x + 3, 0, 6) / 6."""
    gate = np.clip(values + np.float32(3), np.float32(0), np.float32(6))
    return np.asarray(values * gate / np.float32(6), np.float32)
