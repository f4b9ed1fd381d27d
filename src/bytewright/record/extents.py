"""Extents of tensors as a plan has them: numbers, names of what runs are given, and quotients of these in C."""

import re
from collections.abc import Iterable, Mapping

from bytewright import ir

# As `ir.Quotient.text` writes it.
_QUOTIENT = re.compile(r"\((?:(\d{1,10})\*)?([^\W\d]\w*|\(\(.+\)/\d+\))([+-]\d{1,10})?\)(?:/(\d{1,10}))?")
_MAX_DEPTH = 64  # quotients of quotients


def read_extent(extent: int | str, symbols: Mapping[str, ir.Symbol]) -> ir.Extent | None:
    """The extent that a plan states, of those that runs are given; None where it states none.

    One that is less than 1 in a run, where the data does not decide it, or takes more than 32 bits, or is not as
    `ir.Quotient.text` writes it, is none.
    """
    found = _read(extent, symbols)
    if found is None or isinstance(found, int):
        return found
    if isinstance(found, ir.Quotient):
        is_stated = found.text(found.symbol.name) == extent and _are_in_lowest_terms(found)
        if not is_stated or not found.fits_i32:
            return None
    symbol = ir.symbol_in(found)
    return found if symbol is not None and ir.lower_bound(found) >= min(1, symbol.lower) else None


def _are_in_lowest_terms(extent: ir.OpenExtent) -> bool:
    """Whether a quotient is, and before it each that it is of."""
    return isinstance(extent, ir.Symbol) or (_are_in_lowest_terms(extent.of) and extent.is_in_lowest_terms)


def _read(extent: int | str, symbols: Mapping[str, ir.Symbol], depth: int = 0) -> ir.Extent | None:
    """The extent of a text, whatever its values are; None where its scale or divisor is less than 1."""
    if isinstance(extent, int):
        return extent
    found = _QUOTIENT.fullmatch(extent)
    if found is None or depth == _MAX_DEPTH:
        return symbols.get(extent)
    inner = found[2]
    of = _read(inner[1:-1] if inner.startswith("(") else inner, symbols, depth + 1)
    scale, offset, divisor = int(found[1] or 1), int(found[3] or 0), int(found[4] or 1)
    if of is None or isinstance(of, int) or min(scale, divisor) < 1:
        return None
    return ir.Quotient(of, scale, offset, divisor)


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
