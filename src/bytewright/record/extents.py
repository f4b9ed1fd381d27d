"""Extents of tensors as a plan has them: numbers, names of what runs are given, and quotients of these in C."""

import re
from collections.abc import Mapping

from bytewright import ir

# As `ir.Quotient.text` writes it.
_QUOTIENT = re.compile(r"\((?:(\d+)\*)?([^\W\d]\w*)([+-]\d+)?\)(?:/(\d+))?")


def read_extent(extent: int | str, symbols: Mapping[str, ir.Symbol]) -> ir.Extent | None:
    """The extent that a plan states, of those that runs are given; None where it states none."""
    if isinstance(extent, int):
        return extent
    found = _QUOTIENT.fullmatch(extent)
    symbol = symbols.get(extent if found is None else found[2])
    if found is None or symbol is None:
        return symbol
    scale, _, offset, divisor = found.groups()
    return ir.Quotient(symbol, int(scale or 1), int(offset or 0), max(int(divisor or 1), 1))


def largest_extents(extents: tuple[int | str, ...], symbols: tuple[ir.Symbol, ...]) -> tuple[int | None, ...]:
    """The extents with what runs are given at its largest; None in place of what is none."""
    by_name = {symbol.name: symbol for symbol in symbols}
    read = (read_extent(extent, by_name) for extent in extents)
    return tuple(None if extent is None else ir.upper_bound(extent) for extent in read)


def extents_for(extents: tuple[int | str, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    """The extents in a run that is given these values."""
    symbols = {name: ir.Symbol(name, value, value) for name, value in values.items()}
    read = (read_extent(extent, symbols) for extent in extents)
    return tuple(0 if extent is None else ir.upper_bound(extent) for extent in read)
