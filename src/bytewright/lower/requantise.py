"""Rescales on one element: their constants as operands of the forms in `lower/rescale.py`."""

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import FLOAT_ROUND, FLOAT_ROUND_SIGNED, REAL_ROUND, REAL_ROUND_WIDE, ROUND
from bytewright.lower.point import Point
from bytewright.lower.rescale import (
    ScaleOperands,
    double_round,
    half_up,
    high_half_up,
    linear,
    scales_of,
    single_round,
    symmetric,
)
from bytewright.lower.scalar import ChannelBounds, Scalar, clamped, in_32_bits, require_i32
from bytewright.ops.arithmetic.fit import LinearRescale, fit_linear
from bytewright.ops.arithmetic.fit_float import FloatRescale, fit_float
from bytewright.ops.arithmetic.fit_symmetric import fit_symmetric
from bytewright.ops.arithmetic.multiplier import single_product
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.arithmetic.rescale import real_round
from bytewright.ops.rescale import Rescale, TflFloatRescale, TflRealRescale

I32 = ir.DType.I32


def rescaled(at: Point, operation: Rescale) -> Scalar:
    """The element of a rescale by multipliers and exponents."""
    special = None if at.kernel.rescale_form is None else at.kernel.rescale_form(at, operation)
    if special is not None:
        return special
    (value,) = at.operands
    if (in_float := _rescaled_in_float(at, operation, value)) is not None:
        return in_float
    if operation.input_zero_point:
        zero_point = operation.input_zero_point
        value = Scalar(value.expr - zero_point, value.low - zero_point, value.high - zero_point)
    if operation.left_shift:
        value = _times_power(at, value, operation.left_shift)
    multipliers, exponents = at.array(1), at.array(2)
    is_single = operation.rounding is Rounding.SINGLE_ROUND
    if (multipliers == 2**30).all() and (exponents == 1).all():
        scaled = value
    elif is_single and (value.expr.dtype is ir.DType.I64 or exponents.astype(np.int64).max() > 0):
        scaled = _named(at, _half_up(at, value, multipliers, 31 - exponents.astype(np.int64)))
    else:
        scale = _scale_operands(at, multipliers, exponents)
        rounding = single_round if is_single else double_round
        scaled = _named(at, rounding(value, scale, at.node.where))
    return _saturated(scaled, operation)


def _half_up(at: Point, value: Scalar, multipliers: ir.Array, shifts: ir.Array) -> Scalar:
    """A rescale by multipliers of 16 bits and right shifts.

    Where half of the last place is a multiple of 2^15, the product's lower 15 bits decide nothing: they are cut off.
    """
    ratio = float((multipliers.astype(np.float64) / 2.0 ** shifts.astype(np.float64)).max())
    rest = np.where(multipliers == 0, shifts.max(), shifts) - 15
    is_short = value.expr.dtype is I32 and value.magnitude < 2**30
    if is_short and multipliers.astype(np.int64).max() < 2**15 and rest.min() >= 1 and rest.max() <= 30:
        multiplier = _per_channel(at, "multiplier", multipliers.astype(np.int64) << 16, I32)
        return high_half_up(value, multiplier, _per_channel(at, "shift", rest, ir.DType.I8), ratio)
    multiplier = _per_channel(at, "multiplier", multipliers, I32)
    return half_up(value, multiplier, _per_channel(at, "shift", shifts, ir.DType.I8), ratio)


def real_rescaled(at: Point, operation: TflRealRescale) -> Scalar:
    """Double-precision scaling as integers: an equal linear form for every accumulator that can occur."""
    value = _narrowed(at.operands[0])
    if (in_float := _rescaled_in_float(at, operation, value)) is not None:
        return in_float
    scales = at.array(1).reshape(-1)
    zero_point = operation.output_zero_point
    low, high = (bound - zero_point for bound in operation.dtype.bounds)
    # Of wider results there are too many steps to compare; of wider sums the forms do not hold.
    if operation.dtype is not ir.DType.I8 or value.expr.dtype is ir.DType.I64:
        return _saturated(_named(at, _scaled_in_double(at, scales, value, (low, high))), operation)
    found = [_fit(float(s), (value.low, value.high), (low, high)) for s in scales]
    fits = [fit for fit in found if fit is not None]
    bounds = [
        (bound * fit.multiplier + fit.addend) >> fit.shift
        for bound in (value.low, value.high)
        for fit in fits
    ]
    # Beyond the outputs a line may be steeper than the scale, and leave 32 bits where the scaled value does not.
    if len(fits) < len(found) or not in_32_bits(min(bounds), max(bounds)):
        return _saturated(_named(at, _scaled_in_double(at, scales, value, (low, high))), operation)
    multiplier = _per_channel(at, "multiplier", np.array([fit.multiplier for fit in fits]), I32)
    addend = _per_channel(at, "addend", np.array([fit.addend for fit in fits]), ir.DType.I64)
    shift = _per_channel(at, "shift", np.array([fit.shift for fit in fits]), ir.DType.I8)
    scaled = linear(value, multiplier, addend, shift, min(bounds), max(bounds))
    return _saturated(_named(at, scaled), operation)


def float_rescaled(at: Point, operation: TflFloatRescale) -> Scalar:
    """Float32 arithmetic as integers: an equal linear form for every sum that can occur, or else in double.

    Not in float32: a compiler may make one multiply-add of the two steps, which rounds once.
    """
    (value,) = at.operands
    zero_point = operation.output_zero_point
    low, high = (bound - zero_point for bound in operation.dtype.bounds)
    # Of wider results there are too many steps to compare, and of sums of so many values as a run has.
    is_narrow = operation.dtype is ir.DType.I8 and isinstance(operation.num_summed, int)
    fit = _fit_float_rescale(operation, (value.low, value.high), (low, high)) if is_narrow else None
    if fit is None:
        scaled = _float_rescaled_in_double(value, operation, (low - 1, high + 1))
    else:
        ends = [(bound * fit.multiplier + fit.addend) >> fit.shift for bound in (value.low, value.high)]
        numbers = (ir.const(fit.multiplier), ir.const(fit.addend, ir.DType.I64), ir.const(fit.shift))
        scaled = linear(value, *numbers, ends[0], ends[1])
    scaled = _named(at, scaled)
    return clamped(
        Scalar(scaled.expr + zero_point, scaled.low + zero_point, scaled.high + zero_point),
        *operation.dtype.bounds,
    )


# A kernel's text stores several elements of one layer.
@lru_cache(maxsize=1 << 8)
def _fit_float_rescale(
    operation: TflFloatRescale, sums: tuple[int, int], outputs: tuple[int, int]
) -> LinearRescale | None:
    """The linear form, if there is one with a multiplier of 32 bits that stays within 32 bits."""
    fit = fit_linear(operation.rounded, sums, outputs)
    if fit is None or fit.multiplier >= 2**31:
        return None
    ends = [(bound * fit.multiplier + fit.addend) >> fit.shift for bound in sums]
    low, _ = ir.DType.I8.bounds
    return fit if in_32_bits(min(ends) + low, max(ends) - low) else None


def _float_rescaled_in_double(value: Scalar, operation: TflFloatRescale, limits: tuple[int, int]) -> Scalar:
    """Each step in double, where it is as good as exact, then rounded to float32: as if it had been computed so."""
    f32, f64 = ir.DType.F32, ir.DType.F64
    product = ir.cast(ir.cast(value.expr, f32), f64) * operation.scale
    if isinstance(operation.num_summed, int):
        addend = ir.const(single_product(operation.addend, float(operation.num_summed)), f64)
    else:
        addend = ir.cast(ir.extent_expr(operation.num_summed), f64) * operation.addend
        addend = ir.cast(ir.cast(addend, f32), f64)
    total = ir.cast(ir.cast(product, f32), f64) + addend
    rounded = ROUND(ir.cast(total, f32))
    limited = ir.clamp(rounded, float(limits[0]), float(limits[1]))
    return Scalar(ir.cast(limited, I32), *limits)


def _rescaled_in_float(at: Point, operation: Rescale | TflRealRescale, value: Scalar) -> Scalar | None:
    """The element in float32, if the style asks for it and that equals the rescale for every accumulator."""
    if not at.kernel.style.float_rescale or value.channels is None or operation.dtype is not ir.DType.I8:
        return None
    if value.expr.dtype is ir.DType.I64:
        return None
    operands = tuple(
        (array.tobytes(), array.dtype.str) for array in map(at.array, range(1, len(at.node.inputs)))
    )
    fit = _fit_float(operation, operands, value.channels)
    if fit is None:
        return None
    offsets = {"offset": fit.offset} if fit.below is None else {"offset": fit.offset, "below": fit.below}
    constants = [
        _per_channel(at, hint, v, ir.DType.F32) for hint, v in {"scale": fit.scale, **offsets}.items()
    ]
    least = fit.offset if fit.below is None else np.minimum(fit.offset, fit.below)
    most = fit.offset if fit.below is None else np.maximum(fit.offset, fit.below)
    ends = [
        np.rint(np.asarray(bounds, np.float64) * fit.scale + offset)
        for bounds, offset in ((value.channels.low, least), (value.channels.high, most))
    ]
    low, high = int(ends[0].min()) - 1, int(ends[1].max()) + 1
    function = FLOAT_ROUND if fit.below is None else FLOAT_ROUND_SIGNED
    scaled = _named(at, Scalar(function(value.expr, *constants), low, high))
    return clamped(scaled, *operation.dtype.bounds)


def _narrowed(value: Scalar) -> Scalar:
    """A value of 64 bits in 32, where its bounds prove that these hold it."""
    return replace(value, expr=ir.cast(value.expr, I32)) if in_32_bits(value.low, value.high) else value


def _named(at: Point, scaled: Scalar) -> Scalar:
    """Under a name, without which lines of C would be broken."""
    return Scalar(at.body.let(at.hint, scaled.expr), scaled.low, scaled.high)


def _saturated(scaled: Scalar, operation: Rescale | TflRealRescale) -> Scalar:
    """The scaled value with the output's zero point, limited to the result's type."""
    zero_point = operation.output_zero_point
    if zero_point and scaled.magnitude >= 2**30:
        # The sum might leave 32 bits; what is cut off here saturates anyway.
        scaled = clamped(scaled, -(2**30), 2**30)
    shifted = Scalar(scaled.expr + zero_point, scaled.low + zero_point, scaled.high + zero_point)
    return clamped(shifted, *operation.dtype.bounds)


def _times_power(at: Point, value: Scalar, bits: int) -> Scalar:
    low, high = value.low << bits, value.high << bits
    require_i32(low, high, f"the operand, times 2^{bits},", at.node.where)
    return Scalar(at.body.let(f"{at.hint}_wide", value.expr * (1 << bits)), low, high)


def _scale_operands(at: Point, multipliers: ir.Array, exponents: ir.Array) -> ScaleOperands:
    return scales_of(multipliers, exponents, partial(_per_channel, at))


def _per_channel(at: Point, hint: str, values: ir.Array, dtype: ir.DType) -> ir.Expr:
    """The value of the channel at hand, I8 as I32: a number where all channels agree."""
    wide = I32 if dtype is ir.DType.I8 else dtype
    if (values == values.flat[0]).all():
        return ir.const(values.flat[0].item(), wide)
    return ir.cast(load(at.kernel.constant(hint, values, dtype), at.coordinates[-1]), wide)


# A kernel's text stores several elements, of the same scales; those of the largest layers fit in.
@lru_cache(maxsize=1 << 16)
def _fit(scale: float, accumulators: tuple[int, int], outputs: tuple[int, int]) -> LinearRescale | None:
    """The linear form of a scale, if there is one with a multiplier of 32 bits."""
    fit = fit_linear(lambda values: real_round(values, scale), accumulators, outputs)
    return fit if fit is not None and fit.multiplier < 2**31 else None


# Constants by their bytes and types, as arrays are no keys.
@lru_cache(maxsize=1 << 10)
def _fit_float(
    operation: Rescale | TflRealRescale, constants: tuple[tuple[bytes, str], ...], bounds: ChannelBounds
) -> FloatRescale | None:
    """The form in float32 of a rescale, if there is one within 32 bits."""
    operands = tuple(np.frombuffer(data, np.dtype(name)) for data, name in constants)
    low, high = np.array(bounds.low, np.int64), np.array(bounds.high, np.int64)
    if isinstance(operation, TflRealRescale):
        ratio = operands[0].astype(np.float64)
    else:
        if operation.input_zero_point or operation.left_shift:
            return None
        ratio = operands[0] * 2.0 ** (operands[1].astype(np.float64) - 31)
    ratio = np.broadcast_to(ratio, low.shape)
    if np.any(np.maximum(np.abs(low), np.abs(high)) * ratio >= 2**30):
        return None

    def staircases(accumulators: np.ndarray) -> np.ndarray:
        return operation.evaluate((accumulators.astype(np.int32), *operands))[0]

    return fit_float(staircases, low, high, ratio)


def _scaled_in_double(at: Point, scales: ir.Array, value: Scalar, outputs: tuple[int, int]) -> Scalar:
    """REAL_ROUND as it is defined, for scales with ties that double precision rounds this way and that.

    Such a scale is next to 1/n for an even n.
    """
    if not at.kernel.style.has_doubles and (scaled := _scaled_symmetrically(at, scales, value, outputs)):
        return scaled
    scale = _per_channel(at, "scale", scales, ir.DType.F64)
    low, high = outputs[0] - 1, outputs[1] + 1
    function = REAL_ROUND_WIDE if value.expr.dtype is ir.DType.I64 else REAL_ROUND
    return Scalar(function(value.expr, scale, low, high), low, high)


def _scaled_symmetrically(
    at: Point, scales: ir.Array, value: Scalar, outputs: tuple[int, int]
) -> Scalar | None:
    """REAL_ROUND in integers, if that is equal for every accumulator of 32 bits that can occur."""
    most, limit = max(-value.low, value.high), max(-outputs[0], outputs[1])
    if most >= 2**31:
        return None
    found = [_fit_symmetric(float(scale), most, limit) for scale in scales]
    fits = [fit for fit in found if fit is not None]
    if len(fits) < len(found):
        return None
    columns = {
        "high": ([fit.high for fit in fits], I32),
        "low": ([fit.low for fit in fits], I32),
        "addend": ([fit.addend for fit in fits], ir.DType.I64),
        "shift": ([fit.shift for fit in fits], ir.DType.I8),
    }
    operands = [_per_channel(at, hint, np.array(column), dtype) for hint, (column, dtype) in columns.items()]
    return symmetric(value, operands, max(int(fit.scaled(np.array(most))) for fit in fits))


# As `_fit`.
_fit_symmetric = lru_cache(maxsize=1 << 16)(fit_symmetric)
