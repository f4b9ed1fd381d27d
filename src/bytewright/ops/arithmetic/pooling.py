"""MEAN on int8; the two numerics sets agree on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.multiplier import (
    INT8_MAX,
    INT8_MIN,
    Multiplier,
    quantize_multiplier,
    require_left_shift,
    single,
)
from bytewright.ops.arithmetic.rescale import double_round, to_int8


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
