"""ADD, SUB and MUL on int8."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bytewright.ops.arithmetic.multiplier import (
    Multiplier,
    activation_range,
    quantize_multiplier,
    require_left_shift,
    single,
    single_product,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics

Quantization = tuple[float, int]
"""Scale and zero point of a per-tensor quantised tensor."""

LEFT_SHIFT = 20
"""Bits the inputs of ADD and SUB gain before they meet: an int8 difference stays below 2**28."""


@dataclass(frozen=True, slots=True)
class AddInt8:
    """The integers of one ADD or SUB.

    `y = clamp(rescale(rescale((a - a_zero) << 20, first) +- rescale((b - b_zero) << 20, second), output) + zero)`,
    each rescale a DOUBLE_ROUND. `sign` is +1 for ADD, -1 for SUB.
    """

    sign: int
    first_zero_point: int
    second_zero_point: int
    first: Multiplier
    second: Multiplier
    output: Multiplier
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class MulInt8:
    """The integers of one MUL: `y = clamp(rescale((a - a_zero)*(b - b_zero), output) + zero)`, DOUBLE_ROUND."""

    first_zero_point: int
    second_zero_point: int
    output: Multiplier
    zero_point: int
    low: int
    high: int


def prepare_add(
    operator: Literal["ADD", "SUB"],
    first: Quantization,
    second: Quantization,
    output: Quantization,
    activation: str,
) -> AddInt8:
    """Integers of an int8 ADD or SUB; the two numerics sets agree.

    With m = 2*max(s1, s2), in double: the inputs' factors are s1/m and s2/m, the output's is m/(2**20 * s_out).
    Raises UnsupportedQuantizationError where that overflows 32 bits.
    """
    scale1, scale2, scale_out = single(first[0]), single(second[0]), single(output[0])
    twice_maximum = 2.0 * max(scale1, scale2)
    factor = quantize_multiplier(twice_maximum / ((1 << LEFT_SHIFT) * scale_out))
    # Both inputs' factors are at most a half, so their sum is at most one shifted difference.
    require_left_shift(factor, 255 << LEFT_SHIFT, operator)
    low, high = activation_range(activation, scale_out, output[1])
    return AddInt8(
        sign=1 if operator == "ADD" else -1,
        first_zero_point=first[1],
        second_zero_point=second[1],
        first=quantize_multiplier(scale1 / twice_maximum),
        second=quantize_multiplier(scale2 / twice_maximum),
        output=factor,
        zero_point=output[1],
        low=low,
        high=high,
    )


def prepare_mul(
    first: Quantization, second: Quantization, output: Quantization, activation: str, numerics: Numerics
) -> MulInt8:
    """Integers of an int8 MUL.

    The factor is s1*s2/s_out: `tflm` computes it in double, `litert-ref` in float32 with a rounding after the
    product and after the quotient. The two differ at ties.
    """
    scale1, scale2, scale_out = single(first[0]), single(second[0]), single(output[0])
    if numerics is Numerics.LITERT_REF:
        real = single_quotient(single_product(scale1, scale2), scale_out)
    else:
        real = scale1 * scale2 / scale_out
    factor = quantize_multiplier(real)
    require_left_shift(factor, 255 * 255, "MUL")
    low, high = activation_range(activation, scale_out, output[1])
    return MulInt8(first[1], second[1], factor, output[1], low, high)
