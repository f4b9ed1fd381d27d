"""The factors of ADD, SUB, MUL, SQUARED_DIFFERENCE, PRELU, comparisons and MEAN on integers.

Each is refused where the references' rescale overflows 32 bits.
"""

from functools import reduce
from math import prod

from bytewright.ops.arithmetic.multiplier import (
    INT8,
    INT16,
    INT32_MAX,
    Multiplier,
    UnsupportedQuantizationError,
    quantize_multiplier,
    reduced,
    require_left_shift,
    single,
    single_product,
    single_quotient,
)
from bytewright.ops.arithmetic.numerics import Numerics

LEFT_SHIFTS: dict[tuple[int, int], int] = {INT8: 20, INT16: 15}
"""Bits the inputs of ADD and SUB gain before they meet, by the type's bounds: a difference stays below 2**31."""
DIFFERENCE_LEFT_SHIFT = 7
"""Bits the inputs of SQUARED_DIFFERENCE gain: the square of a difference stays below 2**30."""
COMPARISON_LEFT_SHIFT = 8
"""Bits the operands of a comparison gain."""


def real_factor(numerics: Numerics, *scales: float, over: float) -> float:
    """The product of scales over another: in double of `tflm`, in `litert-ref` rounded to float32 at each step."""
    factors = [single(scale) for scale in scales]
    if numerics is Numerics.LITERT_REF:
        return single_quotient(reduce(single_product, factors), single(over))
    return prod(factors) / single(over)


def prepare_sum(
    operator: str, first: float, second: float, output: float, bounds: tuple[int, int] = INT8
) -> tuple[Multiplier, Multiplier, Multiplier]:
    """Of both inputs and of the output of an ADD or SUB, from their scales; the two numerics sets agree.

    `y = clamp(rescale(rescale((a - a_zero) << 20, first) +- rescale((b - b_zero) << 20, second), output) + zero)`,
    each rescale a DOUBLE_ROUND; 15 bits for 20 on int16. With m = 2*max(s1, s2), in double: the inputs' factors are
    s1/m and s2/m, the output's is m/(2**20 * s_out).

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    twice_maximum = 2.0 * max(scale1, scale2)
    left_shift = LEFT_SHIFTS[bounds]
    factor = quantize_multiplier(twice_maximum / ((1 << left_shift) * scale_out))
    # Both inputs' factors are at most a half, so their sum is at most one shifted difference.
    require_left_shift(factor, (bounds[1] - bounds[0]) << left_shift, operator)
    return quantize_multiplier(scale1 / twice_maximum), quantize_multiplier(scale2 / twice_maximum), factor


def prepare_product(
    first: float, second: float, output: float, numerics: Numerics, reach: int = 255 * 255
) -> Multiplier:
    """Of a MUL: `y = clamp(rescale((a - a_zero)*(b - b_zero), factor) + zero)`, DOUBLE_ROUND.

    The factor is s1*s2/s_out (`real_factor`). The two sets differ at ties. Products have the magnitude `reach` at most.
    Where the left shift would overflow 32 bits, which is undefined, but a shorter one takes each product but zero to an
    end of int8 as well, that is the factor's.

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    factor = quantize_multiplier(real_factor(numerics, first, second, over=output))
    most = (INT32_MAX // reach).bit_length() - 1
    if factor.left_shift > most and 1 << most > 2 * (INT8[1] - INT8[0]):
        return Multiplier(factor.multiplier, most)
    require_left_shift(factor, reach, "MUL")
    return factor


def prepare_batch_matmul(first: float, second: float, output: float, numerics: Numerics) -> Multiplier:
    """Of a BATCH_MATMUL: `y = clamp(rescale(sum((a - a_zero)*(b - b_zero)), factor) + zero)`, DOUBLE_ROUND.

    The factor is s1*s2/s_out: `tflm` computes it in double; `litert-ref` rounds the product to float32, and divides in
    double. The two differ at ties.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    product = single_product(scale1, scale2) if numerics is Numerics.LITERT_REF else scale1 * scale2
    return quantize_multiplier(product / scale_out)


def prepare_squared_difference(
    first: float, second: float, output: float
) -> tuple[Multiplier, Multiplier, Multiplier]:
    """Of both inputs and of the output of a SQUARED_DIFFERENCE; the two numerics sets agree.

    As for a SUB with 7 more bits, whose result is squared: with m = 2*max(s1, s2), in double, the output's factor is
    m*m/(2**14 * s_out).

    Raises:
        UnsupportedQuantizationError: That is not below 1, where the references end the program.
    """
    scale1, scale2, scale_out = single(first), single(second), single(output)
    twice_maximum = 2.0 * max(scale1, scale2)
    factor = twice_maximum * twice_maximum / ((1 << 2 * DIFFERENCE_LEFT_SHIFT) * scale_out)
    factors = (scale1 / twice_maximum, scale2 / twice_maximum, factor)
    require_below_one("SQUARED_DIFFERENCE", "the inputs' scales are too large for the output's", *factors)
    return quantize_multiplier(factors[0]), quantize_multiplier(factors[1]), quantize_multiplier(factor)


def require_below_one(operator: str, reason: str, *factors: float) -> None:
    """Raise UnsupportedQuantizationError unless all factors are: the references end the program at others.

    One that rounds to 1 has an exponent above 0.
    """
    if any(quantize_multiplier(factor).exponent > 0 for factor in factors):
        raise UnsupportedQuantizationError(f"{operator}: {reason}; the rescale is not below 1")


def prepare_comparison(scale: float, operator: str) -> Multiplier:
    """Of an operand of an int8 comparison, which is compared as `rescale((x - zero) << 8, scale)`, DOUBLE_ROUND.

    Raises:
        UnsupportedQuantizationError: The scale is not below 1, where the references end the program.
    """
    require_below_one(operator, f"an operand has scale {scale}", single(scale))
    return quantize_multiplier(single(scale))


def prepare_prelu(
    source: float, slope: float, output: float, numerics: Numerics
) -> tuple[Multiplier, Multiplier]:
    """Of a PRELU: what is not below zero is scaled by s_in/s_out, products with slopes by s_in*s_slope/s_out."""
    above = real_factor(numerics, source, over=output)
    below = real_factor(numerics, source, slope, over=output)
    return quantize_multiplier(above), quantize_multiplier(below)


def prepare_mean(input_scale: float, output_scale: float, count: int, reach: int = 255) -> Multiplier:
    """Of a MEAN: s_in/s_out in double; of `count` values per output, `divided_by` makes the factor of it.

    `clamp(rescale(sum(x - zero), factor) + output zero)` is DOUBLE_ROUND. Values without their zero point have the
    magnitude `reach` at most.

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    scale = quantize_multiplier(single(input_scale) / single(output_scale))
    require_left_shift(divided_by(scale, count), reach * count, "MEAN")
    return scale


def divided_by(scale: Multiplier, count: int) -> Multiplier:
    """The factor of a mean of `count` values.

    With (q, e) of the scale and n = min(floor(log2 count), 32, 31 + e), the division enters the multiplier:
    `q' = (q << n) / count`, truncated, and `e' = e - n`. The multiplier may be below 2**30. The two sets agree.
    """
    shift = min(count.bit_length() - 1, 32, 31 + scale.exponent)
    return Multiplier((scale.multiplier << shift) // count, scale.exponent - shift)


def prepare_float_sum(input_scale: float, input_zero_point: int, output_scale: float) -> tuple[float, float]:
    """Scale and addend of a SUM over n values in LiteRT: `round(sum(x)*scale + addend*n) + zero`, in float32.

    The scale is s_in/s_out, the addend -zero*scale, each operation rounded. (`tflm` has DOUBLE_ROUND.)
    """
    scale = single_quotient(single(input_scale), single(output_scale))
    return scale, single_product(float(-input_zero_point), scale)


def prepare_reduced_product(input_scale: float, output_scale: float, count: int) -> Multiplier:
    """Of a REDUCE_PROD of `count` values: what each product so far is scaled by, and the last one once more.

    The factor is s_in divided by the root of which s_out is the `count`-th power, in double, as a multiplier of 16
    bits: SINGLE_ROUND follows. LiteRT alone has the operator.

    Raises:
        UnsupportedQuantizationError: The factor is beyond what LiteRT shifts by.
    """
    factor = reduced(quantize_multiplier(single(input_scale) / single(output_scale) ** (1 / count)))
    if factor.exponent > 30:
        raise UnsupportedQuantizationError(
            f"REDUCE_PROD: the input's scale {input_scale} is too large for the output's {output_scale}"
        )
    return factor
