"""Scale and zero point of values of which the range is known, as LiteRT's hybrid kernels compute them.

What is not a number gives the least value, where the reference's conversion to an integer is undefined.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.multiplier import INT8_MAX, INT8_MIN
from bytewright.ops.arithmetic.rescale import real_round

# A quotient of this magnitude saturates, whatever the zero point.
_FARTHEST = 256.0
SYMMETRIC_STEPS = np.float32(127)
"""Of int8 without a zero point: as many steps below zero as above."""
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def dynamic_scale(least: NDArray[Any], greatest: NDArray[Any]) -> Float32:
    """f32(f32(greatest - least) / 255), of a range that has been widened to zero; 1 where that is none."""
    scale = _step(*_with_zero(least, greatest)).astype(np.float32)
    return np.asarray(np.where(scale > 0, scale, np.float32(1)), np.float32)


def dynamic_zero_point(least: NDArray[Any], greatest: NDArray[Any]) -> NDArray[np.int8]:
    """Where zero lies, counted from that end of the range from which double precision gives it with the less error."""
    low, high = _with_zero(least, greatest)
    with np.errstate(all="ignore"):
        step = _step(low, high)
        below, above = low.astype(np.float64) / step, high.astype(np.float64) / step
    from_least, from_greatest = INT8_MIN - below, INT8_MAX - above
    place = np.where(-INT8_MIN - below < INT8_MAX + above, from_least, from_greatest)
    raised = np.where(place > INT8_MIN, place, np.float64(INT8_MIN))
    return np.asarray(real_round(np.where(raised < INT8_MAX, raised, np.float64(INT8_MAX)), 1.0), np.int8)


def quantize_dynamically(scaled: NDArray[Any], zero_point: NDArray[Any]) -> NDArray[np.int8]:
    """Values that have been divided by their scale: rounded half away from zero, plus the zero point, saturated."""
    limited = np.clip(np.where(np.isnan(scaled), -_FARTHEST, scaled), -_FARTHEST, _FARTHEST)
    return np.asarray(np.clip(real_round(limited, 1.0) + zero_point, INT8_MIN, INT8_MAX), np.int8)


def quantize_rows(values: Float32, *, is_symmetric: bool) -> tuple[NDArray[np.int64], Float32]:
    """Rows [N,K] by the range of each, less their zero points, and their scales [N,1]."""
    least, greatest = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    if is_symmetric:
        reach = np.maximum(greatest, -least)
        reach = np.where(reach == 0, SYMMETRIC_STEPS, reach).astype(np.float32)
        scale, inverse = reach / SYMMETRIC_STEPS, SYMMETRIC_STEPS / reach
        zero_point = np.zeros_like(least, np.int8)
    else:
        scale, zero_point = dynamic_scale(least, greatest), dynamic_zero_point(least, greatest)
        inverse = np.float32(1) / scale
    steps = quantize_dynamically(values * inverse, zero_point)
    return steps.astype(np.int64) - zero_point, scale


def _with_zero(least: NDArray[Any], greatest: NDArray[Any]) -> tuple[Float32, Float32]:
    zero = np.float32(0)
    return np.where(least < zero, least, zero), np.where(greatest > zero, greatest, zero)


def _step(low: Float32, high: Float32) -> Float64:
    """Of int8, in double precision."""
    with np.errstate(all="ignore"):
        return (high - low).astype(np.float64) / 255.0
