"""int16 operators by tables between whose entries values are interpolated: the unary ones, LOGISTIC, TANH and SOFTMAX.

A table of 65536 outputs would be larger than most networks, so the references compute every 128th output, and lines
between them. The tables are in float32 or in double precision as each reference has them; they were measured.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic.exact import exp_single, log_single
from bytewright.ops.arithmetic.multiplier import (
    INT16,
    Affine,
    Multiplier,
    UnsupportedQuantizationError,
    quantize_multiplier,
    single,
    single_product,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import Int64, double_round_by, round_away
from bytewright.ops.arithmetic.tables import gelu_by_tanh, gelu_single

NUM_ENTRIES = 513
"""Of a table over all int16 values: those of every 128th, and one more, to which the last line goes."""
PART_BITS = 7
"""Bits of a value that lie between two entries."""
SIGMOID_BITS = {False: 9, True: 8}
"""The same of LOGISTIC (False) and TANH (True), of magnitudes in 1/3 of 2**-12."""
SIGMOID_ENTRIES = 257
SIGMOID_MIDDLE = 1 << 15
"""A half in 2**-16: what the entries of `sigmoid_table` are short of, so that 16 bits hold them."""
LOGISTIC_MOST = ((1 << 15) - 1) << 10
"""Where LOGISTIC ends, before its last shift."""
SOFTMAX_RANGE = 10.0
"""Distances from a row's greatest value, in multiples of 1, beyond which exponentials are taken for those of it."""
MAXIMUM_DEPTH = (1 << 16) - 1
"""Most values in one row: the sum of their exponentials, of 15 bits, is below 2**31."""

_FLOAT_SCALE = 1.0 / (1 << 15)
_POWER_TOLERANCE = 1e-3
_Real = Callable[[float], float]
_Kind = type[np.float32] | type[np.float64]


def interpolation_table(
    function: _Real, source: tuple[float, int], target: tuple[float, int], kind: _Kind
) -> NDArray[np.int16]:
    """Entries for the int16 values -32768, -32640, ... of a function, each moved by half of its line's error.

    Args:
        function: From real value to real value.
        source: Scale and zero point of the inputs.
        target: Those of the outputs.
        kind: Of all arithmetic.

    Raises:
        UnsupportedQuantizationError: The function leaves the range of floats.
    """
    (low, high), (least, most) = (
        tuple(kind(scale) * kind(end - zero_point) for end in INT16) for scale, zero_point in (source, target)
    )
    step = (high - low) / kind(NUM_ENTRIES - 1)
    inverse = kind(1 << 16) / (most - least)
    places = low + np.arange(NUM_ENTRIES).astype(kind) * step
    places[-1] = high
    ends, middles = (
        np.array([function(float(place)) for place in each], kind) * inverse
        for each in (places, places[:-1] + step / kind(2))
    )
    if not (np.isfinite(ends).all() and np.isfinite(middles).all()):
        raise UnsupportedQuantizationError(
            "the function of the greatest input is beyond the range of float32"
        )
    entries = _rounded(ends)
    # Of the next entry what it is before it is rounded.
    after = low + np.arange(1, NUM_ENTRIES).astype(kind) * step
    following = np.array([function(float(place)) for place in after], kind) * inverse
    on_line = _rounded((following + entries[:-1]) / kind(2))
    entries[:-1] -= _rounded((on_line - _rounded(middles)) / kind(2))
    return np.clip(entries, *INT16).astype(np.int16)


def _rounded(values: NDArray[Any]) -> NDArray[Any]:
    return round_away(values.astype(np.float64)).astype(values.dtype)


def interpolated(values: NDArray[Any], table: NDArray[Any]) -> Int64:
    """What lies between the entries of a table of 513, for int16 values; lines wrap as `lines_wrap` says."""
    wide, entries = values.astype(np.int64), table.astype(np.int16)
    place = (wide >> PART_BITS) + (NUM_ENTRIES - 1) // 2
    part = wide & ((1 << PART_BITS) - 1)
    rise = np.diff(entries)[place].astype(np.int64)
    line = entries[place] + ((rise * part + (1 << (PART_BITS - 1))) >> PART_BITS)
    return line.astype(np.int16).astype(np.int64)


def lines_wrap(table: NDArray[Any]) -> bool:
    """Whether two neighbours are further apart than 16 bits say: LiteRT wraps the rise, and what the line gives."""
    return bool(np.abs(np.diff(table.astype(np.int64))).max() > INT16[1])


def unary_table(
    function: Callable[[float, float], float], source: Affine, target: Affine
) -> NDArray[np.int16]:
    """The table of a unary int16 operator of LiteRT, which is one of the functions below, in float32."""
    scales = single(source.scale), single(target.scale)
    return interpolation_table(lambda x: function(x, scales[1]), (scales[0], 0), (scales[1], 0), np.float32)


def exponential(x: float, target_scale: float) -> float:
    """EXP."""
    del target_scale
    return exp_single(x)


def logarithm(x: float, target_scale: float) -> float:
    """LOG: of what is not positive, the least output."""
    return log_single(x) if x > 0 else single_product(target_scale, float(INT16[0]))


def reciprocal_square_root(x: float, target_scale: float) -> float:
    """RSQRT: of what is not positive, the greatest output; the reference ends a run of what is negative."""
    if x <= 0:
        return single_product(target_scale, float(INT16[1]))
    return single_quotient(1.0, float(np.sqrt(np.float32(x))))


def gelu(is_approximate: bool, x: float, target_scale: float) -> float:
    """GELU."""
    del target_scale
    return gelu_by_tanh(x) if is_approximate else gelu_single(x)


def is_power_of_two(scale: float) -> tuple[bool, int]:
    """Whether the references take a scale for a power of two, which is up to a thousandth of an exponent; and which."""
    exponent = math.log2(single(scale))
    return abs(exponent - round(exponent)) < _POWER_TOLERANCE, round(exponent)


def sigmoid_output_is_valid(scale: float, numerics: Numerics) -> bool:
    """Whether the set's reference takes this scale of an int16 LOGISTIC's or TANH's output: 1/32768."""
    if numerics is Numerics.LITERT_REF:
        return single(scale) == _FLOAT_SCALE
    return is_power_of_two(scale) == (True, -15)


def prepare_sigmoid(scale: float) -> tuple[int, int]:
    """Multiplier and right shift that take an int16 value to 1/3 of 2**-12: for LOGISTIC and TANH.

    A scale of 2**-12 or 2**-11 has an exact multiplier, another one of 15 bits, truncated.

    Raises:
        UnsupportedQuantizationError: 16 bits do not hold the multiplier.
    """
    is_power, exponent = is_power_of_two(scale)
    if is_power and exponent in (-12, -11):
        return 3 << (exponent + 12), 0
    multiplier, shift = single(scale) * 4096.0 * 3.0, 0
    while multiplier <= INT16[1] / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    if multiplier > INT16[1]:
        raise UnsupportedQuantizationError(f"the input's scale {scale} is too large: 16 bits overflow")
    return int(multiplier), shift


def sigmoid_scale(integer_bits: int) -> tuple[int, int]:
    """Multiplier and right shift that take a number in Q(integer_bits).(15-integer_bits) to 1/3 of 2**-12."""
    left = integer_bits - 3
    return (3 << left, 0) if left >= 0 else (3, -left)


def sigmoid_table() -> NDArray[np.int16]:
    """`1/(1 + exp(-i/24))` in 2**-16 less a half, each moved by half of the largest error of its line.

    The last entries are those of 1. No entry is next to a tie, so that any exponential rounds alike.
    """
    values = 1.0 / (1.0 + np.exp(-np.arange(SIGMOID_ENTRIES) / 24.0))
    curvature = values * (1.0 - values) * (2.0 * values - 1.0)
    entries = np.floor((values + curvature / (16 * 24**2)) * 65536 + 0.5)
    entries[-2:] = 65535
    return (entries - SIGMOID_MIDDLE).astype(np.int16)


def sigmoid_int16(values: NDArray[np.integer], multiplier: int, shift: int, *, is_tanh: bool) -> Int64:
    """LOGISTIC, or TANH, which is `2 * logistic(2x) - 1`, of int16 values, in 2**-15."""
    half = (1 << shift) >> 1
    scaled = (values.astype(np.int64) * multiplier + half) >> shift
    magnitude, bits, table = np.abs(scaled), SIGMOID_BITS[is_tanh], sigmoid_table().astype(np.int64)
    place = np.minimum(magnitude >> bits, SIGMOID_ENTRIES - 2)
    part = magnitude & ((1 << bits) - 1)
    risen = ((table[place] + SIGMOID_MIDDLE) << bits) + part * (table[place + 1] - table[place])
    if is_tanh:
        return np.where(scaled >= 0, risen - (1 << 23) + 128, (1 << 23) - risen + 127) >> 8
    risen = np.minimum(risen, LOGISTIC_MOST)
    return np.where(scaled >= 0, risen + 512, (1 << 25) - risen + 511) >> 10


@cache
def sigmoid_end(*, is_tanh: bool) -> int:
    """The magnitude, in 1/3 of 2**-12, from which LOGISTIC, or TANH, is what it is at the end of the table."""
    magnitudes = np.arange(SIGMOID_ENTRIES << SIGMOID_BITS[is_tanh])
    moves = np.zeros(len(magnitudes), bool)
    for values in (magnitudes, -magnitudes):
        results = sigmoid_int16(values, 1, 0, is_tanh=is_tanh)
        moves |= results != results[-1]
    return int(np.flatnonzero(moves)[-1]) + 1


def softmax16_output_is_valid(scale: float) -> bool:
    """Whether the references take this scale of an int16 SOFTMAX's output: 1/32768, within a thousandth."""
    return abs(single(scale) - _FLOAT_SCALE) <= 0.001 * _FLOAT_SCALE


def prepare_softmax16(input_scale: float, beta: float, numerics: Numerics) -> Multiplier:
    """The factor from a difference of int16 inputs to 10/65535: the product with beta is a float32 one in LiteRT."""
    scale, factor = single(input_scale), single(beta)
    product = single_product(scale, factor) if numerics is Numerics.LITERT_REF else scale * factor
    return quantize_multiplier(product / (SOFTMAX_RANGE / 65535.0))


def softmax16_tables(numerics: Numerics) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
    """Exponentials of -10 to 0, and 1/(1 + x) of 0 to 1: by LiteRT in double precision, by the other in float32."""
    kind: _Kind = np.float64 if numerics is Numerics.LITERT_REF else np.float32
    power: _Real = math.exp if kind is np.float64 else exp_single
    target = 2.0 / 65535.0, 0

    def reciprocal(x: float) -> float:
        return float(kind(1) / (kind(1) + kind(x)))

    return (
        interpolation_table(power, (SOFTMAX_RANGE / 65535.0, INT16[1]), target, kind),
        interpolation_table(reciprocal, (1.0 / 65535.0, INT16[0]), target, kind),
    )


def softmax_int16(
    values: NDArray[Any], factor: Multiplier, exponentials: NDArray[Any], reciprocals: NDArray[Any]
) -> NDArray[np.int16]:
    """SOFTMAX along the last axis of an int16 array.

    The sum of exponentials of 15 bits is shifted left to [2**30, 2**31); the reciprocal of what is behind its first
    bit comes from the other table.
    """
    wide = values.astype(np.int64)
    difference = wide - wide.max(axis=-1, keepdims=True)
    scaled = double_round_by(difference, factor)
    powers = interpolated(np.clip(scaled + INT16[1], *INT16), exponentials)
    total = powers.sum(axis=-1, keepdims=True)
    headroom = 31 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    behind = (((total << headroom) + (1 << 13)) >> 14) - ((1 << 15) + (1 << 16))
    reciprocal = interpolated(np.clip(behind, *INT16), reciprocals)
    shift = 30 - headroom
    shares = (powers * reciprocal + (np.int64(1) << (shift - 1))) >> shift
    return np.clip(shares, 0, INT16[1]).astype(np.int16)
