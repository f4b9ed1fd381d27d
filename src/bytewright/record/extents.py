"""Extents of tensors as a plan has them: numbers, names of what runs are given, and quotients of these in C."""

import re
from collections.abc import Iterable, Mapping

from bytewright import ir

# As `ir.Quotient.text` writes it.
_QUOTIENT = re.compile(r"\((?:(\d+)\*)?([^\W\d]\w*|\(\(.+\)/\d+\))([+-]\d+)?\)(?:/(\d+))?")


def read_extent(extent: int | str, symbols: Mapping[str, ir.Symbol]) -> ir.Extent | None:
    """The extent that a plan states, of those that runs are given; None where it states none.

    One that is less than 1 in a run, where the data does not decide it, or takes more than 32 bits, or is not as
    `ir.Quotient.text` writes it, is none.
    """
    found = _read(extent, symbols)
    if found is None or isinstance(found, int):
        return found
    if isinstance(found, ir.Quotient):
        is_stated = found.is_in_lowest_terms and found.text(found.symbol.name) == extent
        if not is_stated or not found.fits_i32:
            return None
    symbol = ir.symbol_in(found)
    return found if symbol is not None and ir.lower_bound(found) >= min(1, symbol.lower) else None


def _read(extent: int | str, symbols: Mapping[str, ir.Symbol]) -> ir.Extent | None:
    """The extent of a text, whatever its values are."""
    if isinstance(extent, int):
        return extent
    found = _QUOTIENT.fullmatch(extent)
    if found is None:
        return symbols.get(extent)
    scale, inner, offset, divisor = found.groups()
    of = _read(inner[1:-1] if inner.startswith("(") else inner, symbols)
    if of is None or isinstance(of, int):
        return None
    return ir.Quotient(of, int(scale or 1), int(offset or 0), int(divisor or 1))


def read_extents(extents: Iterable[int | str], symbols: Iterable[ir.Symbol]) -> tuple[ir.Extent | None, ...]:
    """The extents that a plan states, each as `read_extent`."""
    by_name = {symbol.name: symbol for symbol in symbols}
    return tuple(read_extent(extent, by_name) for extent in extents)


def largest_extents(extents: tuple[int | str, ...], symbols: tuple[ir.Symbol, ...]) -> tuple[int | None, ...]:
    """The extents with what runs are given at its largest; None in place of what is none."""
    read = read_extents(extents, symbols)
    return tuple(None if extent is None else ir.upper_bound(extent) for extent in read)


def extents_for(extents: tuple[int | str, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    """The extents in a run that is given these values."""
    symbols = {name: ir.Symbol(name, value, value) for name, value in values.items()}
    read = (_read(extent, symbols) for extent in extents)
    return tuple(0 if extent is None else ir.upper_bound(extent) for extent in read)
