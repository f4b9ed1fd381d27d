"""Lines between the entries of a table of i16, in expressions."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.kernel import KernelBuilder
from bytewright.ops.arithmetic.interpolation import (
    PART_BITS,
    SIGMOID_BITS,
    SIGMOID_MIDDLE,
    sigmoid_end,
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

    By magnitude, since the table is of what is above zero; what is below is the complement. The value is of 16 bits.
    """
    body, (multiplier, shift) = kernel.body, scale
    half, bits = (1 << shift) >> 1, SIGMOID_BITS[is_tanh]
    scaled = body.let("scaled", (value * multiplier + half) >> shift)
    magnitude, end = ir.maximum(scaled, 0 - scaled), sigmoid_end(is_tanh=is_tanh)
    if abs((ir.DType.I16.bounds[0] * multiplier + half) >> shift) > end:
        magnitude = ir.minimum(magnitude, end)
    magnitude = body.let("magnitude", magnitude)
    table = kernel.constant("sigmoid", sigmoid_table(), ir.DType.I16)
    entry, rise = entry_and_rise(body, table, magnitude >> bits)
    part = magnitude & ((1 << bits) - 1)
    line = body.let("line", entry * (1 << bits) + part * rise)
    signed = ir.select(scaled >= 0, line, -1 - line)
    if is_tanh:
        return (signed + (1 << 7)) >> 8
    return (signed + ((SIGMOID_MIDDLE << bits) + (1 << 9))) >> 10


def _wrapped(value: ir.Expr) -> ir.Expr:
    """At 16 bits."""
    return ir.cast(ir.cast(value, ir.DType.I16), I32)
