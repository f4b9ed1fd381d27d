"""The factors of ADD, SUB, MUL and MEAN on int8. Each is refused where the references' rescale overflows 32 bits."""

from bytewright.ops.arithmetic.multiplier import (
    Multiplier,
    quantize_multiplier,
    require_left_shift,
    single,
    single_product,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics

LEFT_SHIFT = 20
"""Bits the inputs of ADD and SUB gain before they meet: an int8 difference stays below 2**28."""


def prepare_sum(
    operator: str, first: float, second: float, output: float
) -> tuple[Multiplier, Multiplier, Multiplier]:
    """Of both inputs and of the output of an ADD or SUB, from their scales; the two numerics sets agree.

    `y = clamp(rescale(rescale((a - a_zero) << 20, first) +- rescale((b - b_zero) << 20, second), output) + zero)`,
    each rescale a DOUBLE_ROUND. With m = 2*max(s1, s2), in double: the inputs' factors are s1/m and s2/m, the output's
    is m/(2**20 * s_out).

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    twice_maximum = 2.0 * max(scale1, scale2)
    factor = quantize_multiplier(twice_maximum / ((1 << LEFT_SHIFT) * scale_out))
    # Both inputs' factors are at most a half, so their sum is at most one shifted difference.
    require_left_shift(factor, 255 << LEFT_SHIFT, operator)
    return quantize_multiplier(scale1 / twice_maximum), quantize_multiplier(scale2 / twice_maximum), factor


def prepare_product(first: float, second: float, output: float, numerics: Numerics) -> Multiplier:
    """Of a MUL: `y = clamp(rescale((a - a_zero)*(b - b_zero), factor) + zero)`, DOUBLE_ROUND.

    The factor is s1*s2/s_out: `tflm` computes it in double, `litert-ref` in float32 with a rounding after the
    product and after the quotient. The two differ at ties.

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    if numerics is Numerics.LITERT_REF:
        real = single_quotient(single_product(scale1, scale2), scale_out)
    else:
        real = scale1 * scale2 / scale_out
    factor = quantize_multiplier(real)
    require_left_shift(factor, 255 * 255, "MUL")
    return factor


def prepare_batch_matmul(first: float, second: float, output: float, numerics: Numerics) -> Multiplier:
    """Of a BATCH_MATMUL: `y = clamp(rescale(sum((a - a_zero)*(b - b_zero)), factor) + zero)`, DOUBLE_ROUND.

    The factor is s1*s2/s_out: `tflm` computes it in double; `litert-ref` rounds the product to float32, and divides in
    double. The two differ at ties.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    product = single_product(scale1, scale2) if numerics is Numerics.LITERT_REF else scale1 * scale2
    return quantize_multiplier(product / scale_out)


def prepare_mean(input_scale: float, output_scale: float, count: int) -> Multiplier:
    """Of a MEAN over `count` values per output: `clamp(rescale(sum(x - zero), factor) + output zero)`, DOUBLE_ROUND.

    (q, e) of s_in/s_out in double; with n = min(floor(log2 count), 32, 31 + e), the division enters the
    multiplier: `q' = (q << n) / count`, truncated, and `e' = e - n`. The multiplier may be below 2**30. The two
    numerics sets agree.

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    scale = quantize_multiplier(single(input_scale) / single(output_scale))
    shift = min(count.bit_length() - 1, 32, 31 + scale.exponent)
    factor = Multiplier((scale.multiplier << shift) // count, scale.exponent - shift)
    require_left_shift(factor, 255 * count, "MEAN")
    return factor
