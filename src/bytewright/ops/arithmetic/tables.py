"""Every unary int8 operator as one table of 256 outputs, exact for the numerics set.

Entry i is the output for the input value i - 128. The operators differ in arithmetic (float32 functions,
gemmlowp's fixed point, one or two rescales, 16-bit fixed point); a table makes them all the same kernel.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bytewright.ops.arithmetic import fixedpoint
from bytewright.ops.arithmetic.exact import erfc_single, exp_single, expm1_single, log_single, tanh_single
from bytewright.ops.arithmetic.factors import real_factor
from bytewright.ops.arithmetic.multiplier import (
    INT8,
    INT8_MAX,
    INT8_MIN,
    Affine,
    Multiplier,
    UnsupportedQuantizationError,
    activation_range,
    quantize_multiplier,
    round_half_away,
    single,
    single_product,
    single_quotient,
    upper_half,
)
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.arithmetic.rescale import (
    Int64,
    double_round,
    double_round_by,
    real_round,
    rounding_shift_right,
)

Table = NDArray[np.int8]
_INPUTS: Int64 = np.arange(INT8_MIN, INT8_MAX + 1, dtype=np.int64)


_FAR = 2.0**40
_SQRT_HALF = single(math.sqrt(0.5))
_SQRT_2_OVER_PI = single(math.sqrt(2 / math.pi))
_GELU_CUBIC = single(0.044715)
Int8Function = Callable[[Affine, Affine, Numerics], Int64]
"""The outputs of all inputs before they are limited to int8, from the quantisations of input and output."""


def int8_table(function: Int8Function, source: Affine, target: Affine, numerics: Numerics) -> Table:
    """The table of a unary int8 operator, which is one of the functions below.

    Raises:
        UnsupportedQuantizationError: The reference would refuse the model.
    """
    source, target = (Affine(single(each[0]), each[1]) for each in (source, target))
    values = function(source, target, numerics)
    return np.clip(values, INT8_MIN, INT8_MAX).astype(np.int8)


def _rescale(values: Int64, factor: Multiplier) -> Int64:
    """DOUBLE_ROUND, checked against overflow; a negative factor negates the result, as the references do.

    That is not the same as multiplying by it: ties go the other way.
    """
    magnitude = abs(factor.multiplier)
    if int(np.abs(values).max()) << factor.left_shift > 1 << 31:
        raise UnsupportedQuantizationError(
            "the input's scale is too large for the output's: 32 bits overflow"
        )
    scaled = double_round(values, magnitude, factor.left_shift, factor.right_shift)
    return scaled if factor.multiplier >= 0 else -scaled


def rescale_factor(numerics: Numerics, source_scale: float, target_scale: float) -> Multiplier:
    """s_in/s_out (measured at ties)."""
    return quantize_multiplier(real_factor(numerics, source_scale, over=target_scale))


def slope_factor(numerics: Numerics, source_scale: float, alpha: float, target_scale: float) -> Multiplier:
    """s_in*alpha/s_out, likewise: of LEAKY_RELU below zero."""
    return quantize_multiplier(real_factor(numerics, source_scale, alpha, over=target_scale))


def _float_table(function: Callable[[float], float], source: Affine, target: Affine) -> Int64:
    """A float32 table: `round(f(s_in*(x - zero)) * (1/s_out)) + zero`, each operation in float32.

    What goes beyond 32 bits, which is undefined in the references, is as good as infinite here.
    """
    inverse = single_quotient(1.0, target.scale)
    values: list[int] = []
    for value in range(INT8_MIN, INT8_MAX + 1):
        result = function(single_product(source.scale, float(value - source.zero_point)))
        scaled = single_product(result, inverse)
        values.append(round_half_away(max(-_FAR, min(scaled, _FAR))) + target.zero_point)
    return np.array(values, np.int64)


def _real(source: Affine) -> NDArray[np.float32]:
    """What the inputs stand for, each one float32 product."""
    return np.float32(source.scale) * (_INPUTS - source.zero_point).astype(np.float32)


def _logistic_single(x: float) -> float:
    """`1 / (1 + exp(-x))`, each operation rounded to float32."""
    denominator = single(1.0 + exp_single(-x))
    return 0.0 if math.isinf(denominator) else single_quotient(1.0, denominator)


def _fixed_point_table(function: Callable[[Int64], Int64], source: Affine, shift: int) -> Int64:
    """TensorFlow Lite Micro's logistic and tanh: inputs to Q4.27, saturated outside the radius, Q0.31 out.

    Inputs whose magnitude reaches the radius give -128 or 127.
    """
    factor = quantize_multiplier(source.scale * (1 << 27))
    radius = math.floor(15 * (1 << 27) / 2.0**factor.exponent)
    centred = _INPUTS - source.zero_point
    inside = np.abs(centred) < radius
    scaled = double_round_by(np.where(inside, centred, 0), factor)
    result = rounding_shift_right(function(scaled), shift)
    return np.where(inside, result, np.where(centred > 0, 1 << 20, -(1 << 20)))


def logistic(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """LOGISTIC.

    LiteRT wants the output scale 1/256; TensorFlow Lite Micro wants zero point -128, and ignores the scale.
    """
    if numerics is Numerics.LITERT_REF:
        if target.scale != 1.0 / 256:
            raise UnsupportedQuantizationError(f"LOGISTIC's int8 output has scale 1/256, not {target.scale}")
        return _float_table(_logistic_single, source, target)
    if target.zero_point != INT8_MIN:
        raise UnsupportedQuantizationError(
            f"LOGISTIC's int8 output has zero point -128, not {target.zero_point}"
        )
    return _fixed_point_table(fixedpoint.logistic, source, 23) + INT8_MIN


def tanh(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """TANH. TensorFlow Lite Micro takes scale 1/128 and zero point 0 for granted, whatever the file says."""
    if numerics is Numerics.LITERT_REF:
        return _float_table(tanh_single, source, target)
    return _fixed_point_table(fixedpoint.tanh, source, 24)


def leaky_relu(alpha: float, source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """LEAKY_RELU: one factor for x >= zero point and another, with alpha, below; both DOUBLE_ROUND."""
    centred = _INPUTS - source.zero_point
    above = _rescale(np.maximum(centred, 0), rescale_factor(numerics, source.scale, target.scale))
    below = _rescale(np.minimum(centred, 0), slope_factor(numerics, source.scale, alpha, target.scale))
    return np.where(centred >= 0, above, below) + target.zero_point


def negate(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """NEG: the raw value negated, -128 to itself, whatever the quantisations."""
    del source, target, numerics
    return np.where(_INPUTS == INT8_MIN, INT8_MIN, -_INPUTS)


def absolute(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """ABS: a rescale of the magnitude; none at all between equal scales."""
    magnitude = np.abs(_INPUTS - source.zero_point)
    if source.scale == target.scale:
        return magnitude + target.zero_point
    return _rescale(magnitude, rescale_factor(numerics, source.scale, target.scale)) + target.zero_point


def square_root(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """SQRT: `trunc(sqrt(s_in*(x - zero)) / s_out) + zero` in float32.

    A value below zero ends the reference's run; here it is zero.
    """
    del numerics
    roots = np.sqrt(np.maximum(_real(source), np.float32(0)))
    return np.trunc(roots / np.float32(target.scale)).astype(np.int64) + target.zero_point


def reciprocal_square_root(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """RSQRT: 1/sqrt of the integer x - zero in fixed point, then a rescale by 1/(sqrt(s_in)*s_out).

    Zero gives 127. A value below zero ends the references' run; here it is as zero.
    """
    factor = prepare_inverse_root(source.scale, target.scale, numerics)
    centred = _INPUTS - source.zero_point
    roots = fixedpoint.inverse_root(np.maximum(centred, 0))
    scaled = double_round_by(roots, factor)
    return np.where(centred > 0, scaled + target.zero_point, INT8_MAX)


def prepare_inverse_root(source_scale: float, target_scale: float, numerics: Numerics) -> Multiplier:
    """What a root with 20 fractional bits is scaled by, DOUBLE_ROUND: 1/(sqrt(s_in)*s_out), of `tflm` in double.

    Raises:
        UnsupportedQuantizationError: 32 bits overflow.
    """
    source_scale, target_scale = single(source_scale), single(target_scale)
    if numerics is Numerics.LITERT_REF:
        root = float(np.sqrt(np.float32(source_scale)))
        factor = quantize_multiplier(1.0 / single_product(root, target_scale))
    else:
        factor = quantize_multiplier(1.0 / (math.sqrt(source_scale) * target_scale))
    exponent = factor.exponent - fixedpoint.ROOT_BITS
    # A root is below 2**20: 1 << 20 times a multiplier below 1.
    if exponent < -31 or exponent > 31 - fixedpoint.ROOT_BITS:
        raise UnsupportedQuantizationError("RSQRT's output scale does not fit the input's: 32 bits overflow")
    return Multiplier(factor.multiplier, exponent)


def exponential(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """EXP."""
    del numerics
    return _float_table(exp_single, source, target)


def logarithm(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """LOG: of what is not positive, the least output."""
    del numerics
    least = single_product(float(INT8_MIN - target.zero_point), target.scale)
    return _float_table(lambda x: log_single(x) if x > 0 else least, source, target)


def elu(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """ELU: `expm1(x)` below zero in LiteRT; in TensorFlow Lite Micro `exp(x) - 1`, of the rounded exponential."""

    def below(x: float) -> float:
        return expm1_single(x) if numerics is Numerics.LITERT_REF else single(exp_single(x) - 1.0)

    return _float_table(lambda x: below(x) if x < 0 else x, source, target)


def gelu(is_approximate: bool, source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """GELU: `x/2 * erfc(-x/sqrt(2))`, or the approximation by tanh, each operation in float32."""
    del numerics
    return _float_table(gelu_by_tanh if is_approximate else gelu_single, source, target)


def gelu_single(x: float) -> float:
    """GELU as it is defined, each operation in float32."""
    return single_product(single_product(0.5, x), erfc_single(single_product(x, -_SQRT_HALF)))


def gelu_by_tanh(x: float) -> float:
    """GELU by its approximation, likewise."""
    cube = single_product(single_product(single_product(_GELU_CUBIC, x), x), x)
    gate = tanh_single(single_product(_SQRT_2_OVER_PI, single(x + cube)))
    return single_product(single_product(0.5, x), single(1.0 + gate))


def relu(operator: str, source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1: a rescale and a clamp.

    RELU6 of `tflm` clamps the raw input and takes no notice of the output's scale.
    """
    if operator == "RELU6" and numerics is Numerics.TFLM:
        return np.clip(_INPUTS, *activation_range("RELU6", *source))
    scaled = (
        _rescale(_INPUTS - source.zero_point, rescale_factor(numerics, source.scale, target.scale))
        + target.zero_point
    )
    return np.clip(scaled, *activation_range(operator, *target))


def _high_multiply_16(values: Int64, factor: int) -> Int64:
    """Rounded high half of a doubled 16-bit product, saturated."""
    return np.minimum((values * factor + (1 << 14)) >> 15, (1 << 15) - 1)


def _saturate_16(values: Int64) -> Int64:
    return np.clip(values, -(1 << 15), (1 << 15) - 1)


def _shift_right_16(values: Int64, shift: int) -> Int64:
    """`rounding_shift_right` as the references compute it on 16 bits.

    From 16 on their mask of the remainder is -1, and what should round to zero becomes 1, or -1 below zero.
    """
    if shift < 16:
        return rounding_shift_right(values, shift)
    return np.where(values >= 0, 1, -1)


def hard_swish(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """HARD_SWISH: `x * relu6(x + 3) / 6` in 16-bit fixed point; the two numerics sets agree.

    The input gains 7 bits; one branch scales it for the output, the other to 3/2**15, where the shifted and
    halved value is the gate in [0, 1]; their product is truncated, then rounded to the output.
    """
    del numerics
    fine_scale = single_product(single_quotient(1.0, 128.0), source.scale)
    output = quantize_multiplier(single_quotient(fine_scale, target.scale))
    gate = quantize_multiplier(single_quotient(fine_scale, single_quotient(3.0, 32768.0)))
    if output.exponent > 0:
        raise UnsupportedQuantizationError("HARD_SWISH's input scale is more than 128 times its output scale")
    fine = (_INPUTS - source.zero_point) << 7
    scaled = _high_multiply_16(fine, upper_half(output.multiplier))
    opening = fine
    if gate.exponent > 0:
        opening = _saturate_16(opening << (gate.exponent - 1))
    opening = _high_multiply_16(opening, upper_half(gate.multiplier))
    if gate.exponent > 0:
        opening = _saturate_16(opening << 1)
    opening = _shift_right_16(opening, gate.right_shift)
    product = ((opening + (1 << 15)) >> 1) * scaled
    truncated = np.where(product >= 0, product >> 15, -(-product >> 15))
    return _shift_right_16(truncated, output.right_shift) + target.zero_point


def quantize(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """QUANTIZE int8 to int8: a rescale by a factor in double; the two numerics sets agree."""
    del numerics
    return (
        _rescale(_INPUTS - source.zero_point, quantize_multiplier(source.scale / target.scale))
        + target.zero_point
    )


def joined(source: Affine, target: Affine, numerics: Numerics) -> Int64:
    """CONCATENATION of uint8: `round(x * f32(s_in * f32(1 / s_out)) + b)`, in float32, of raw values; here 128 less."""
    del numerics
    least = INT8_MIN
    scale = np.float32(source.scale) * (np.float32(1) / np.float32(target.scale))
    bias = np.float32(least - source.zero_point) * scale
    scaled = (_INPUTS - least).astype(np.float32) * scale + bias
    return real_round(scaled.astype(np.float64), 1.0) + target.zero_point


def quantize_float(
    values: NDArray[np.float32], scale: float, zero_point: int, bounds: tuple[int, int] = INT8
) -> Int64:
    """QUANTIZE of float32: `clamp(round(x / scale) + zero_point)`, a float32 division, half away.

    Where |x / scale| >= 2**31 the references' conversion to an integer is undefined; here it saturates, and what
    is not a number becomes the least value.
    """
    quotient = np.asarray(values, np.float32) / np.float32(scale)
    wide = np.fmin(np.fmax(quotient.astype(np.float64), -(2.0**31)), 2.0**31)
    return np.clip(real_round(wide, 1.0) + zero_point, *bounds)


def dequantize(values: NDArray[np.integer], scale: float, zero_point: int) -> NDArray[np.float32]:
    """DEQUANTIZE to float32: `scale * (x - zero_point)`, one float32 multiplication."""
    centred = (values.astype(np.int32) - zero_point).astype(np.float32)
    return np.float32(scale) * centred
