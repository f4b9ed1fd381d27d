"""Features of sound on one element: the logarithm and the gain control of audio front ends."""

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import BIT_LENGTH
from bytewright.lower.point import Point
from bytewright.lower.scalar import Scalar, clamped
from bytewright.ops.arithmetic.spectrum import (
    GAIN_FIRST,
    GAIN_FRACTION_BITS,
    GAIN_STEP,
    LOG_FRACTION_BITS,
    LOG_OF_TWO,
    LOG_SEGMENT_BITS,
    SHRINK_FROM,
    U32_MAX,
    log_corrections,
)
from bytewright.ops.spectrum import TflFixedLog, TflGainControl

I16, I32, I64 = ir.DType.I16, ir.DType.I32, ir.DType.I64


def fixed_log(at: Point, operation: TflFixedLog) -> Scalar:
    """The whole part is the place of the highest bit, the fraction what is behind it, corrected by a table."""
    body, (x,) = at.body, at.operands
    table = at.kernel.constant("corrections", log_corrections().astype(np.int16), I16)
    shifted = body.let("shifted", (x.expr * (1 << operation.input_bits)) & U32_MAX)
    value = body.let("value", ir.maximum(shifted, 2))
    whole = body.let("whole", BIT_LENGTH(value) - 1)
    wide = body.let("wide", ir.cast(whole, I64))
    behind = (value - (ir.const(1, I64) << wide)) * (1 << LOG_FRACTION_BITS) >> wide
    fraction = body.let("fraction", ir.cast(behind, I32))
    segment_bits = LOG_FRACTION_BITS - LOG_SEGMENT_BITS
    segment = body.let("segment", fraction >> segment_bits)
    low, high = (ir.cast(load(table, segment + end), I32) for end in range(2))
    low = body.let("low", low)
    slope = (high - low) * (fraction & ((1 << segment_bits) - 1)) >> LOG_FRACTION_BITS
    binary = body.let("binary", whole * (1 << LOG_FRACTION_BITS) + fraction + low + slope)
    half = 1 << (LOG_FRACTION_BITS - 1)
    natural = body.let("natural", (ir.cast(binary, I64) * LOG_OF_TWO + half) >> LOG_FRACTION_BITS)
    scaled = ((natural * operation.output_scale + half) & U32_MAX) >> LOG_FRACTION_BITS
    found = ir.select(shifted > 1, ir.cast(scaled, I32), ir.const(0))
    return clamped(Scalar(found, 0, U32_MAX >> LOG_FRACTION_BITS), 0, I16.bounds[1])


def gain_control(at: Point, operation: TflGainControl) -> Scalar:
    """A parabola in each power of two of the noise, and two ways to shrink the product."""
    body, (signal, estimate) = at.body, at.operands
    table = at.kernel.constant("gains", at.array(2), I16)

    def entry(place: ir.Expr) -> ir.Expr:
        return ir.cast(load(table, place), I32)

    noise = body.let("noise", estimate.expr)
    is_small = body.let("is_small", noise < 3)
    value = body.let("value", ir.maximum(noise, 3))
    bits = body.let("bits", BIT_LENGTH(value))
    wide = ir.cast(bits, I64)
    width = GAIN_FRACTION_BITS + 1
    aligned = ir.select(bits < width, value << (ir.const(width, I64) - wide), value >> (wide - width))
    fraction = body.let("fraction", ir.cast(aligned & ((1 << GAIN_FRACTION_BITS) - 1), I32))
    first = body.let("first", bits * GAIN_STEP + GAIN_FIRST)
    slope = body.let("slope", (entry(first + 2) * fraction >> 5) + entry(first + 1) * 32)
    raised = entry(first) + ((slope * fraction + (1 << 14)) >> 15)
    few = ir.cast(ir.minimum(noise, 2), I32)
    gain = body.let("gain", ir.select(is_small, entry(few), ir.cast(ir.cast(raised, I16), I32)))
    ratio = body.let("ratio", (signal.expr * ir.cast(gain, I64) >> operation.shift) & U32_MAX)
    shrunk = ir.select(ratio < SHRINK_FROM, ratio * ratio >> 20, (ratio >> 6) - 64)
    return Scalar(shrunk, 0, U32_MAX)
