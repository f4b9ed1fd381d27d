"""Lines between the entries of a table of i16, in expressions."""

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.ops.arithmetic.interpolation import PART_BITS

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


def _wrapped(value: ir.Expr) -> ir.Expr:
    """At 16 bits."""
    return ir.cast(ir.cast(value, ir.DType.I16), I32)
