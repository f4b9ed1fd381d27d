"""Requantisation in expressions: 32-bit accumulator to the output's scale, bit for bit as the named reference.

All forms below are equal to the definitions in docs/numerics.md for the operands they are chosen for; the choice
rests on proven bounds. The shorter forms keep the arithmetic in 32 bits, where compilers vectorise it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.scalar_functions import (
    DOUBLE_ROUND,
    DOUBLE_ROUND_WIDE,
    HIGH_MULTIPLY,
    HIGH_MULTIPLY_WIDE,
    SCALE_HALF_UP,
    SCALE_HALF_UP_WIDE,
    SCALE_HIGH,
    SCALE_LINEAR,
    SCALE_SYMMETRIC,
    SINGLE_ROUND,
)
from bytewright.ir.where import Where
from bytewright.lower.scalar import Scalar, require_i32


@dataclass(frozen=True, slots=True)
class ScaleOperands:
    """The multiplier and right shift of the channel at hand, and what is known of all channels.

    Attributes:
        multiplier: I32, in `[0, 2^31)`.
        shift: I32, the right shift after the high multiplication, in `[0, 31]`.
        left: I32, a power of two that the value is multiplied by first; None where it is always 1.
        shifts: All right shifts that occur.
        left_bits: The greatest exponent of `left`.
        ratio: An upper bound of multiplier / 2^(31 + shift) over all channels.
    """

    multiplier: ir.Expr
    shift: ir.Expr
    left: ir.Expr | None
    shifts: frozenset[int]
    left_bits: int
    ratio: float


def fixed_scale(multiplier: int, exponent: int) -> ScaleOperands:
    """The operands of one factor `multiplier * 2^(exponent - 31)` for all channels."""
    shift = max(-exponent, 0)
    return ScaleOperands(
        multiplier=ir.const(multiplier),
        shift=ir.const(shift),
        left=ir.const(1 << exponent) if exponent > 0 else None,
        shifts=frozenset({shift}),
        left_bits=max(exponent, 0),
        ratio=multiplier / 2.0 ** (31 + shift),
    )


def scales_of(
    multipliers: np.ndarray, exponents: np.ndarray, entry: Callable[[str, np.ndarray, ir.DType], ir.Expr]
) -> ScaleOperands:
    """The operands of several factors, which are as `fixed_scale` has them.

    Args:
        multipliers: Of all factors.
        exponents: Of all factors.
        entry: The value of the factor at hand, given what to call it, the values of all, and their type.
    """
    shifts, lefts = split_exponents(exponents)
    shifts = np.where(multipliers == 0, shifts.max(initial=0), shifts)
    return ScaleOperands(
        multiplier=entry("multiplier", multipliers, ir.DType.I32),
        shift=entry("shift", shifts, ir.DType.I8),
        left=None if (lefts == 1).all() else entry("left", lefts, ir.DType.I32),
        shifts=frozenset(int(shift) for shift in shifts),
        left_bits=int(lefts.max()).bit_length() - 1,
        ratio=float((multipliers.astype(np.float64) / 2.0 ** (31 + shifts)).max()),
    )


def double_round(value: Scalar, scale: ScaleOperands, where: Where) -> Scalar:
    """Saturating rounding doubling high multiply, then division by 2^shift rounding half away from zero.

    Source: gemmlowp's fixed point, as used by TensorFlow Lite's `MultiplyByQuantizedMultiplier`.
    """
    value = _shifted_left(value, scale, where)
    is_short = value.magnitude < 2**30
    if not any(scale.shifts):
        multiply = HIGH_MULTIPLY if is_short else HIGH_MULTIPLY_WIDE
        return Scalar(multiply(value.expr, scale.multiplier), *scaled_bounds(value, scale.ratio))
    function = DOUBLE_ROUND if is_short and 0 not in scale.shifts else DOUBLE_ROUND_WIDE
    return _called(function, value, scale)


def single_round(value: Scalar, scale: ScaleOperands, where: Where) -> Scalar:
    """One rounding, half up, of the 64-bit product.

    Source: TOSA 1.0, `apply_scale_32` with SINGLE_ROUND.
    """
    return _called(SINGLE_ROUND, _shifted_left(value, scale, where), scale)


def high_half_up(value: Scalar, multiplier: ir.Expr, shift: ir.Expr, ratio: float) -> Scalar:
    """As `half_up`, of |value| < 2^30, multipliers times 2^16 and shifts less 15, which are 1 to 30."""
    return Scalar(SCALE_HIGH(value.expr, multiplier, shift), *scaled_bounds(value, ratio))


def half_up(value: Scalar, multiplier: ir.Expr, shift: ir.Expr, ratio: float) -> Scalar:
    """`value * multiplier / 2^shift`, rounded half up, of which `ratio` is an upper bound over all channels.

    Source: `MultiplyByQuantizedMultiplier` of TensorFlow Lite for 64 bits.
    """
    function = SCALE_HALF_UP_WIDE if value.expr.dtype is ir.DType.I64 else SCALE_HALF_UP
    return Scalar(function(value.expr, multiplier, shift), *scaled_bounds(value, ratio))


def linear(
    value: Scalar, multiplier: ir.Expr, addend: ir.Expr, shift: ir.Expr, low: int, high: int
) -> Scalar:
    """`(value * multiplier + addend) >> shift` in 64 bits, whose result lies in `[low, high]`."""
    return Scalar(SCALE_LINEAR(value.expr, multiplier, addend, shift), low, high)


def symmetric(value: Scalar, operands: Sequence[ir.Expr], most: int) -> Scalar:
    """The magnitude of a value scaled by factors of 64 bits, with its sign; at most `most`."""
    return Scalar(SCALE_SYMMETRIC(value.expr, *operands), -most, most)


def _called(function: ir.ScalarFunction, value: Scalar, scale: ScaleOperands) -> Scalar:
    return Scalar(function(value.expr, scale.multiplier, scale.shift), *scaled_bounds(value, scale.ratio))


def _shifted_left(value: Scalar, scale: ScaleOperands, where: Where) -> Scalar:
    if scale.left is None:
        return value
    low, high = min(value.low << scale.left_bits, value.low), max(value.high << scale.left_bits, value.high)
    require_i32(low, high, f"the accumulator, times 2^{scale.left_bits},", where)
    return Scalar(value.expr * scale.left, low, high)


def scaled_bounds(value: Scalar, ratio: float) -> tuple[int, int]:
    """Bounds of the scaled value: real scaling, and one more for each of the two roundings.

    The least factor of all channels is not known, so a scaled value may be anything between zero and its bound.
    """
    low = -int(-value.low * ratio) - 2 if value.low < 0 else 0
    high = int(value.high * ratio) + 2 if value.high > 0 else 0
    return low, high


def split_exponents(exponents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right shifts and left factors of exponents `e` (scale = multiplier * 2^(e - 31))."""
    signed = exponents.astype(np.int64)
    return np.maximum(-signed, 0), np.left_shift(1, np.maximum(signed, 0))
