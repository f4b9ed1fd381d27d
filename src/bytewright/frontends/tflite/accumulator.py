"""Accumulators: their exact ranges, the proof that their type holds them, and the way back to activations.

The references add in 32 bits, or in 64 where activations are int16, and do not look. Whatever order a kernel adds in,
and whether it subtracts the input's zero point from each value or folds it into the bias, no partial sum leaves the
ranges proved here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.unsigned import UNSIGNED
from bytewright.ops.arithmetic.multiplier import (
    ACTIVATIONS,
    INT32_MAX,
    INT32_MIN,
    Affine,
    Multiplier,
    activation_range,
    convolution_scale,
    quantize_multiplier,
    reduced,
    round_half_away,
)
from bytewright.ops.arithmetic.numerics import Numerics, Rounding, convolution_rounding
from bytewright.ops.arithmetic.rescale import Int64, double_round_by, single_round
from bytewright.ops.arithmetic.sums import sums_by_sign
from bytewright.ops.elementwise import Clamp
from bytewright.ops.rescale import Rescale, TflRealRescale

_MAX_F32 = float(np.finfo(np.float32).max)
MOST_OF_64_BITS = (1 << 47) - 1
"""The greatest accumulator that the references scale where they keep it in 64 bits."""
_SCALE_HELP = "the output's scale is too small for the input's; quantise the model again"


@dataclass(frozen=True, slots=True)
class Reach:
    """How far accumulators go.

    Attributes:
        greatest: The greatest magnitude of each channel's finished accumulator, over all inputs.
        worst: That of each channel's partial sums.
    """

    greatest: Int64
    worst: Int64

    @property
    def fits_32_bits(self) -> bool:
        """Whether 32 bits hold every partial sum."""
        return int(self.worst.max()) <= INT32_MAX


def accumulator_reach(weights: NDArray[np.generic], bias: Int64, source: Affine) -> Reach:
    """How far the accumulators of weights [channels, taps] go, over all inputs of a quantisation."""
    low, high = source.ends
    positive, negative = sums_by_sign(weights)
    magnitude = positive - negative
    centred = np.abs(bias) + magnitude * source.reach
    folded = np.abs(bias - source.zero_point * (positive + negative)) + magnitude * -source.bounds[0]
    least, greatest = bias + positive * low + negative * high, bias + positive * high + negative * low
    return Reach(np.maximum(np.abs(least), np.abs(greatest)), np.maximum(centred, folded))


def require_reach(at: Conversion, reach: Reach, most: int = INT32_MAX) -> None:
    """Refuses accumulators whose partial sums are beyond `most`, which is that of 32 bits, or of what 64 are used for.

    Raises:
        CompileError: BW110.
    """
    channel = int(reach.worst.argmax())
    if reach.worst[channel] > most:
        at.fail(
            f"the accumulator of channel {channel} can reach {int(reach.worst[channel])}, beyond "
            f"{most.bit_length() + 1} bits",
            code="BW110",
            help="train or quantise the model so that bias and weights of this layer are smaller",
        )


def rescale_accumulator(
    at: Conversion,
    accumulator: str,
    reach: Int64,
    scales: tuple[Affine, Sequence[float], Affine],
    activation: str,
    *,
    is_wide: bool = False,
) -> str:
    """From the accumulator of a convolution to the result; `scales` are of input, weights and output.

    `is_wide` says that the references keep it in 64 bits, whatever it reaches.
    """
    source, weight_scales, target = scales
    dtype = at.output_dtype()
    rounding = convolution_rounding(at.operator.kind, at.numerics, is_wide=is_wide)
    in_single = at.output_tensor().element_type == UNSIGNED and rounding is not Rounding.REAL_ROUND
    factors = [
        convolution_scale(source.scale, scale, target.scale, in_single=in_single) for scale in weight_scales
    ]
    if rounding is Rounding.REAL_ROUND:
        greatest = round_half_away(float((reach * np.array(factors)).max()))
        require_sum(at, -greatest, greatest, target.zero_point)
        scale = at.constant("scale", np.array(factors, dtype=np.float64), ir.DType.F64)
        operation = TflRealRescale(target.zero_point, dtype)
        rescaled = at.emit(operation, (accumulator, scale), "rescaled")
    else:
        exact = [quantize_multiplier(factor) for factor in factors]
        reaches = reach.tolist() if len(factors) > 1 else [int(reach.max())]
        check = reduced_multiplier if rounding is Rounding.SINGLE_ROUND else checked_multiplier
        multipliers = [check(at, *pair, target.zero_point) for pair in zip(exact, reaches, strict=True)]
        zero_points = 0, target.zero_point
        rescaled = rescale(at, accumulator, multipliers, *zero_points, dtype, "rescaled", rounding=rounding)
    return clamp_activation(at, rescaled, activation, target)


def reduced_multiplier(at: Conversion, multiplier: Multiplier, reach: int, zero_point: int = 0) -> Multiplier:
    """The multiplier of 16 bits for accumulators of at most the magnitude `reach`, which the references keep in 64.

    Raises:
        CompileError: BW110, the scaled accumulator leaves 32 bits.
    """
    short = reduced(multiplier)
    greatest = int(single_round(reach, short.multiplier, 31 - short.exponent))
    require_sum(at, -greatest - 1, greatest, zero_point)
    return short


def checked_multiplier(at: Conversion, multiplier: Multiplier, reach: int, zero_point: int = 0) -> Multiplier:
    """The multiplier, for accumulators of at most the magnitude `reach`; zero where they all are.

    Raises:
        CompileError: BW110, such an accumulator leaves 32 bits in the left shift, or with the zero point after it.
    """
    if reach == 0:
        return Multiplier(0, 0)
    bits = multiplier.left_shift
    if bits > 31 or reach << bits > INT32_MAX:
        at.fail(
            f"an accumulator of magnitude {reach} times 2^{bits} leaves 32 bits",
            code="BW110",
            help=_SCALE_HELP,
        )
    # DOUBLE_ROUND never falls, so what the ends of the range become are the ends of what it all becomes.
    least, greatest = double_round_by([-reach, reach], multiplier)
    require_sum(at, int(least), int(greatest), zero_point)
    return multiplier


def require_sum(at: Conversion, least: int, greatest: int, zero_point: int) -> None:
    """Scaled accumulators of this range fit 32 bits together with the zero point."""
    if least + zero_point < INT32_MIN or greatest + zero_point > INT32_MAX:
        reach = max(-least, greatest)
        at.fail(
            f"a scaled accumulator can reach {reach}, which with the zero point {zero_point} leaves 32 bits",
            code="BW110",
            help=_SCALE_HELP,
        )


def rescale(
    at: Conversion,
    value: str,
    multipliers: Sequence[Multiplier],
    input_zero_point: int,
    output_zero_point: int,
    dtype: ir.DType,
    role: str,
    left_shift: int = 0,
    rounding: Rounding = Rounding.DOUBLE_ROUND,
) -> str:
    """Emits a rescale with its constants."""
    multiplier = np.array([m.multiplier for m in multipliers], dtype=np.int32)
    exponent = np.array([m.exponent for m in multipliers], dtype=np.int8)
    operands = (
        value,
        at.constant(f"{role}_multiplier", multiplier, ir.DType.I32),
        at.constant(f"{role}_shift", exponent, ir.DType.I8),
    )
    operation = Rescale(rounding, input_zero_point, output_zero_point, left_shift, dtype)
    return at.emit(operation, operands, role)


def clamp_activation(at: Conversion, value: str, activation: str, target: Affine) -> str:
    """The fused activation of a quantised result; nothing where it does not narrow the type."""
    low, high = activation_range(activation, *target)
    # A bound may lie outside the type; the references clamp to what remains, lower bound first.
    low, high = min(low, target.bounds[1]), max(high, target.bounds[0])
    at.require(low <= high, f"the range of {activation} is empty with scale {target.scale}")
    return value if (low, high) == target.bounds else limited(at, value, low, high)


def limited(at: Conversion, value: str, low: float, high: float, role: str = "clamped") -> str:
    """The nearest value between two."""
    return at.emit(Clamp(low, high), (value,), role)


def saturated(at: Conversion, value: str, dtype: ir.DType) -> str:
    """A wide integer as the nearest one that a type has."""
    return limited(at, value, *dtype.bounds, "saturated")


def clamp_integer(at: Conversion, value: str, activation: str) -> str:
    """The fused activation of an int32 or int64 result, to which the bounds apply as they are."""
    if activation == "NONE":
        return value
    if at.operator.kind == "ADD" and at.numerics is Numerics.TFLM:
        at.fail(
            f"TensorFlow Lite Micro leaves out the fused activation {activation} on int32",
            help="compile for --numerics litert-ref",
        )
    limits = zip(ACTIVATIONS[activation], at.type_of(value).dtype.bounds, strict=True)
    low, high = (int(limit) if isfinite(limit) else bound for limit, bound in limits)
    return limited(at, value, low, high)


def clamp_float(at: Conversion, value: str, activation: str, *, is_infinite: bool = False) -> str:
    """The fused activation of a float32 result.

    The reference has no infinite bounds. That costs two comparisons a value, and no result of finite numbers that is
    not an overflow differs, so it is done where the model itself has numbers that are infinite or none, where an
    operand may be infinite, and where finite numbers make infinite ones (`is_infinite`).
    """
    low, high = ACTIVATIONS[activation]
    if not (is_infinite or at.graph.has_infinities or at.reads_infinities()):
        return value if activation == "NONE" else limited(at, value, low, high)
    name = limited(at, value, max(low, -_MAX_F32), min(high, _MAX_F32))
    at.limited.add(name)
    return name
