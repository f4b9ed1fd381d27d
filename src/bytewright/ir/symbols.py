"""Symbols of a PrimFunc: extents that are known only at run time, each a scalar parameter of the same name."""

from collections.abc import Mapping

from bytewright.ir.expr import Buffer
from bytewright.ir.prim import PrimFunc, ScalarParameter
from bytewright.ir.remember import remembered
from bytewright.ir.types import Symbol, symbol_in
from bytewright.ir.walk import definitions


def buffers_of(function: PrimFunc) -> tuple[Buffer, ...]:
    """The buffers that a function is given, and those that it allocates."""
    return tuple(definition.buffer for definition in definitions(function))


@remembered
def symbols_of(function: PrimFunc) -> Mapping[str, Symbol]:
    """The symbols in the shapes of a function's parameters and allocations, by name, in order of first use."""
    found: dict[str, Symbol] = {}
    for buffer in buffers_of(function):
        for extent in buffer.shape:
            symbol = symbol_in(extent)
            if symbol is not None:
                found.setdefault(symbol.name, symbol)
    return found


def scalar_symbols(function: PrimFunc) -> tuple[tuple[ScalarParameter, Symbol | None], ...]:
    """The scalar parameters of a function in order, each with the symbol that it gives the value of, if any."""
    symbols = symbols_of(function)
    return tuple(
        (parameter, symbols.get(parameter.variable.name))
        for parameter in function.parameters
        if isinstance(parameter, ScalarParameter)
    )
