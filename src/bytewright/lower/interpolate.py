"""Lines between the entries of a table of i16, in expressions."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.kernel import KernelBuilder
from bytewright.ops.arithmetic.interpolation import (
    LOGISTIC_MOST,
    PART_BITS,
    SIGMOID_BITS,
    SIGMOID_ENTRIES,
    SIGMOID_MIDDLE,
    sigmoid_table,
)

I32 = ir.DType.I32


def entry_and_rise(body: BodyBuilder, table: ir.Buffer, place: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """An entry, and what the next one has more."""
    entry = body.let("entry", ir.cast(load(table, place), I32))
    return entry, ir.cast(load(table, place + 1), I32) - entry


def interpolated_at(body: BodyBuilder, table: ir.Buffer, value: ir.Expr, *, wraps: bool = False) -> ir.Expr:
    """What a table of 513 has for a value of 16 bits, which is I32; `wraps` is what `lines_wrap` says of the table."""
    value = body.let("value", value)
    place = body.let("place", (value >> PART_BITS) + ir.num_elements(table) // 2)
    entry, rise = entry_and_rise(body, table, place)
    part = value & ((1 << PART_BITS) - 1)
    rise = _wrapped(rise) if wraps else rise
    line = entry + ((rise * part + (1 << (PART_BITS - 1))) >> PART_BITS)
    return _wrapped(line) if wraps else line


def sigmoid_by_table(
    kernel: KernelBuilder, value: ir.Expr, scale: tuple[int, int], *, is_tanh: bool
) -> ir.Expr:
    """LOGISTIC, or TANH, in Q0.15, of an I32 that multiplier and right shift take to 1/3 of 2^-12.

    By magnitude, since the table is of what is above zero; beyond it is its last entry.
    """
    body, (multiplier, shift) = kernel.body, scale
    half, bits = (1 << shift) >> 1, SIGMOID_BITS[is_tanh]
    scaled = body.let("scaled", (value * multiplier + half) >> shift)
    magnitude = body.let("magnitude", ir.maximum(scaled, 0 - scaled))
    place = body.let("place", ir.minimum(magnitude >> bits, SIGMOID_ENTRIES - 2))
    first, rise = entry_and_rise(body, kernel.constant("sigmoid", sigmoid_table(), ir.DType.I16), place)
    part = magnitude & ((1 << bits) - 1)
    risen = body.let("risen", (first + SIGMOID_MIDDLE) * (1 << bits) + part * rise)
    if is_tanh:
        return ir.select(scaled >= 0, risen - (1 << 23) + (1 << 7), (1 << 23) - risen + (1 << 7) - 1) >> 8
    risen = body.let("limited", ir.minimum(risen, LOGISTIC_MOST))
    return ir.select(scaled >= 0, risen + 512, (1 << 25) - risen + 511) >> 10


def _wrapped(value: ir.Expr) -> ir.Expr:
    """At 16 bits."""
    return ir.cast(ir.cast(value, ir.DType.I16), I32)
