"""Scales become integers: multiplier and exponent of a rescale, and the range of a fused activation.

Each scale of a TFLite file is a float32. Which products and quotients of scales are taken in double and which
in single precision differs between operators and numerics sets, changes results at ties, and was measured; the
functions here are the two arithmetics, and their callers say which one holds. All operations are scalar IEEE
operations without transcendental functions, so results are the same on every machine.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

INT8_MIN = -128
INT8_MAX = 127
INT8 = (INT8_MIN, INT8_MAX)
INT16 = (-(1 << 15), (1 << 15) - 1)
INT32_MIN = -(1 << 31)
INT32_MAX = (1 << 31) - 1

ACTIVATIONS = {
    "NONE": (-math.inf, math.inf),
    "RELU": (0.0, math.inf),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
    "RELU_0_TO_1": (0.0, 1.0),
}
"""The activations that are clamps, fused or alone: the least and the greatest real value of each."""


class UnsupportedQuantizationError(ValueError):
    """The reference refuses the operator with these scales and zero points, or its result is undefined."""


class Affine(NamedTuple):
    """Scale and zero point of a quantised tensor, and the least and the greatest value of its type."""

    scale: float
    zero_point: int
    bounds: tuple[int, int] = INT8

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest value without the zero point."""
        return self.bounds[0] - self.zero_point, self.bounds[1] - self.zero_point

    @property
    def reach(self) -> int:
        """The greatest magnitude of a value without the zero point."""
        return max(map(abs, self.ends))


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A real factor `multiplier * 2**(exponent - 31)`.

    `quantize_multiplier` gives |multiplier| in [2**30, 2**31) or zero; MEAN makes it smaller afterwards.
    """

    multiplier: int
    exponent: int

    @property
    def left_shift(self) -> int:
        """Bits the accumulator is shifted left before the multiplication."""
        return max(self.exponent, 0)

    @property
    def right_shift(self) -> int:
        """Bits the product's high half is shifted right, with rounding."""
        return max(-self.exponent, 0)


def single(value: float) -> float:
    """`value` rounded to float32, as a Python float (which holds it exactly)."""
    return float(np.float32(value))


def single_product(a: float, b: float) -> float:
    """`a * b` of two float32 values in float32.

    The product of two 24-bit significands is exact in double precision, so one rounding follows.
    """
    return single(a * b)


def single_quotient(a: float, b: float) -> float:
    """`a / b` of two float32 values in float32 (IEEE division, rounded once)."""
    return float(np.float32(a) / np.float32(b))


def round_half_away(value: float | Fraction) -> int:
    """The nearest integer, ties away from zero: C's `round`, without its floating-point result."""
    exact = Fraction(value)
    magnitude = math.floor(abs(exact) + Fraction(1, 2))
    return magnitude if exact >= 0 else -magnitude


def quantize_multiplier(real: float) -> Multiplier:
    """The integer form of a real factor (TFLite's `QuantizeMultiplier`; measured in both sets).

    `real = m * 2**e` with |m| in [0.5, 1); the multiplier is `round(m * 2**31)`, halved with e + 1 where that is
    2**31. Below 2**-32 (e < -31) the factor is zero. Negative factors keep their sign.
    """
    if not math.isfinite(real):
        raise ValueError(f"a scale factor must be finite, not {real}")
    if real == 0.0:
        return Multiplier(0, 0)
    significand, exponent = math.frexp(real)
    multiplier = round_half_away(Fraction(significand) * (1 << 31))
    if abs(multiplier) == 1 << 31:
        multiplier //= 2
        exponent += 1
    if exponent < -31:
        return Multiplier(0, 0)
    return Multiplier(multiplier, exponent)


def upper_half(multiplier: int) -> int:
    """The upper 16 bits of a multiplier, rounded and saturated."""
    return min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1)


def reduced(multiplier: Multiplier) -> Multiplier:
    """A multiplier of 16 bits, as the references have it for sums of 64 bits: SINGLE_ROUND follows."""
    return Multiplier(upper_half(multiplier.multiplier), multiplier.exponent + 16)


def convolution_scale(
    input_scale: float, weight_scale: float, output_scale: float, *, in_single: bool = False
) -> float:
    """The real factor of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED, per tensor or per channel.

    `double(s_in) * double(s_w) / double(s_out)`, measured at ties in both sets; `in_single` says that the product is
    rounded to float32, as that of convolutions in uint8 is.
    """
    product = single(input_scale) * single(weight_scale)
    return (single(product) if in_single else product) / single(output_scale)


def require_left_shift(multiplier: Multiplier, magnitude: int, operator: str) -> None:
    """Raise UnsupportedQuantizationError unless values up to `magnitude` survive DOUBLE_ROUND's left shift in 32 bits.

    Where one does not, the references' behaviour is undefined, and a compiler must refuse.
    """
    if magnitude << multiplier.left_shift > INT32_MAX:
        raise UnsupportedQuantizationError(
            f"{operator}: the output's scale is too small for the input's; the rescale overflows 32 bits"
        )


def activation_range(
    activation: str, scale: float, zero_point: int, bounds: tuple[int, int] = INT8
) -> tuple[int, int]:
    """Smallest and largest output under a fused activation (measured in both sets).

    A bound b becomes `zero_point + round(float32(b) / float32(scale))`, divided in float32 and rounded half away
    from zero, within the type's `bounds`.
    """

    def quantized(bound: float) -> int:
        return zero_point + round_half_away(single_quotient(bound, scale))

    low, high = ACTIVATIONS[activation]
    return (
        max(quantized(low), bounds[0]) if math.isfinite(low) else bounds[0],
        min(quantized(high), bounds[1]) if math.isfinite(high) else bounds[1],
    )
