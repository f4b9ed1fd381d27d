"""SOFTMAX and LOG_SOFTMAX int8: one integer algorithm of each for both numerics sets.

Measured: `ai-edge-litert` 2.3.0 and TensorFlow Lite Micro both use gemmlowp's fixed point, also where a
table of float32 exponentials gives another result.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.fixedpoint import (
    exp_on_negative_values,
    log_of_one_and_more,
    num_leading_zeros,
    one_over_one_plus,
)
from bytewright.ops.arithmetic.multiplier import (
    INT8_MAX,
    INT8_MIN,
    INT32_MAX,
    INT32_MIN,
    UnsupportedQuantizationError,
    quantize_multiplier,
    single,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import Int64, double_round, high_multiply, rounding_shift_right

_INT8 = np.dtype(np.int8)
# Of SOFTMAX on int8, by the type of its result, whose whole range is probabilities from 0 to 1.
OUTPUT_SCALES = {_INT8: 1.0 / 256, np.dtype(np.int16): 1.0 / 65536}
LOG_OUTPUT_SCALE = 16.0 / 256
LOG_OUTPUT_ZERO_POINT = 127

_DIFFERENCE_INTEGER_BITS = 5
_SUM_INTEGER_BITS = 12
MAXIMUM_DEPTH = (1 << _SUM_INTEGER_BITS) - 1
"""Most values in one row: the sum of their exponentials is a Q12.19 number below 2**31."""


def softmax_output_is_valid(scale: float, zero_point: int, dtype: np.dtype[Any], numerics: Numerics) -> bool:
    """Whether the set's reference takes this quantisation of the output of SOFTMAX on int8.

    It is 1/256 and -128 of int8, 1/65536 and -32768 of int16. TensorFlow Lite Micro wants 1/256 exactly, else scales
    within a thousandth are taken, and by LiteRT any of int16; the result is the same.
    """
    if numerics is Numerics.LITERT_REF and dtype == np.int16:
        return True
    wanted = OUTPUT_SCALES[dtype]
    tolerance = 0.0 if dtype == np.int8 and numerics is Numerics.TFLM else 0.001 * wanted
    return zero_point == np.iinfo(dtype).min and abs(single(scale) - wanted) <= tolerance


def prepare_softmax(input_scale: float, beta: float) -> tuple[int, int, int]:
    """Multiplier, left shift and least difference of a SOFTMAX on int8.

    `(x - max) << left_shift`, multiplied high by the multiplier, is the exponent in Q5.26; lower differences than the
    least count as probability zero.

    `factor = min(beta * scale * 2**26, 2**31 - 1)` in double. The input's zero point plays no part. Raises
    UnsupportedQuantizationError where the factor is not above 1: the references abort there.
    """
    factor = min(
        single(beta) * single(input_scale) * (1 << (31 - _DIFFERENCE_INTEGER_BITS)), float(INT32_MAX)
    )
    if not factor > 1.0:
        raise UnsupportedQuantizationError(
            f"beta {beta} times the input scale {input_scale} is not above 2**-26: a flat softmax"
        )
    quantized = quantize_multiplier(factor)
    largest = ((1 << _DIFFERENCE_INTEGER_BITS) - 1) * 2.0 ** (31 - _DIFFERENCE_INTEGER_BITS)
    radius = math.floor(largest / 2.0**quantized.exponent)
    return quantized.multiplier, quantized.exponent, -radius


def softmax_int8(
    values: NDArray[Any],
    multiplier: int,
    left_shift: int,
    difference_min: int,
    dtype: np.dtype[Any] = _INT8,
) -> NDArray[Any]:
    """SOFTMAX along the last axis of an int8 array, in int8 or int16.

    With d = x - max(x), per row: e = exp(Q5.26 of d) in Q0.31; the sum of `round(e / 2**12)` in Q12.19; its
    reciprocal by Newton's method, normalised by the sum's leading zeros; output `round(reciprocal*e / 2**n)` plus the
    type's least number. Values with d < difference_min take no part and give that. The shift n is above 31 for a sum
    of 512 or more and int8; the result is then 0 before the offset.
    """
    limits = np.iinfo(dtype)
    counts, scaled = _scaled_differences(values, multiplier, left_shift, difference_min)
    exponentials = exp_on_negative_values(scaled, _DIFFERENCE_INTEGER_BITS)
    total = _sum_of_exponentials(counts, exponentials)
    leading_zeros = num_leading_zeros(total)  # of at least 1.0 = 2**19 - 1
    reciprocal = one_over_one_plus((total << leading_zeros) - (1 << 31))
    shift = _SUM_INTEGER_BITS - leading_zeros + 31 - limits.bits
    shares = rounding_shift_right(high_multiply(reciprocal, exponentials), shift)
    clipped = np.clip(shares + limits.min, limits.min, limits.max)
    return np.where(counts, clipped, limits.min).astype(dtype)


def _scaled_differences(
    values: NDArray[Any], multiplier: int, left_shift: int, difference_min: int
) -> tuple[NDArray[np.bool_], Int64]:
    """Which values of a row take part, and the differences of these from its greatest, in Q5.26; 0 of the others."""
    raw = np.asarray(values, np.int64)
    difference = raw - raw.max(axis=-1, keepdims=True)
    counts = difference >= difference_min
    return counts, high_multiply(np.where(counts, difference, 0) << left_shift, multiplier)


def _sum_of_exponentials(counts: NDArray[np.bool_], exponentials: Int64) -> Int64:
    """The sum over each row in Q12.19 of exponentials in Q0.31."""
    terms = np.where(counts, rounding_shift_right(exponentials, _SUM_INTEGER_BITS), 0)
    return terms.sum(axis=-1, keepdims=True)


def log_softmax_output_is_valid(scale: float, zero_point: int) -> bool:
    """Whether the references take this quantisation of an int8 LOG_SOFTMAX's output: 1/16 and 127."""
    return single(scale) == LOG_OUTPUT_SCALE and zero_point == LOG_OUTPUT_ZERO_POINT


def prepare_log_softmax(input_scale: float) -> tuple[int, int, int, int, int]:
    """Multiplier, left shift and least difference as of a SOFTMAX; multiplier and right shift of the way back.

    The way back, from Q5.26 to steps of the input, is `2**(31 - left_shift) / multiplier` in double: it bounds which
    values are not -128.
    """
    multiplier, left_shift, difference_min = prepare_softmax(input_scale, 1.0)
    back = quantize_multiplier((1 << (31 - left_shift)) / multiplier)
    return multiplier, left_shift, difference_min, back.multiplier, back.right_shift


def log_softmax_int8(
    values: NDArray[Any],
    multiplier: int,
    left_shift: int,
    difference_min: int,
    back_multiplier: int,
    back_shift: int,
) -> NDArray[np.int8]:
    """LOG_SOFTMAX along the last axis of an int8 array.

    The sum of exponentials is that of SOFTMAX. With its logarithm l in Q5.26, and the scaled difference d, an output is
    `round((d - l) / 2**22)` + 127; where d is too far down it is -128.
    """
    counts, scaled = _scaled_differences(values, multiplier, left_shift, difference_min)
    exponentials = exp_on_negative_values(scaled, _DIFFERENCE_INTEGER_BITS)
    logarithm = log_of_one_and_more(_sum_of_exponentials(counts, exponentials))
    least = double_round(logarithm + INT32_MIN, back_multiplier, 0, back_shift)
    raw = np.asarray(values, np.int64)
    is_near = raw - raw.max(axis=-1, keepdims=True) > np.maximum(difference_min - 1, least)
    result = (
        rounding_shift_right(scaled - logarithm, 31 - _DIFFERENCE_INTEGER_BITS - 4) + LOG_OUTPUT_ZERO_POINT
    )
    return np.where(is_near, np.clip(result, INT8_MIN, INT8_MAX), INT8_MIN).astype(np.int8)
