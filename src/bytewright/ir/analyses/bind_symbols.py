"""What a callee's extents are at one of its calls, in terms of the caller.

A symbol of the callee is what the call passes for the scalar parameter of its name: a constant makes the extent
constant, a symbol of the caller takes its place with its bounds, and of anything else the largest value counts, so
that what is allocated for the call is never too small.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from bytewright import ir
from bytewright.ir.analyses.arguments import scalar_arguments
from bytewright.ir.analyses.ranges import Range, range_of, ranges_of
from bytewright.ir.symbols import symbols_of

# Names of a callee's symbols -> extents of the caller.
Binding = Mapping[str, ir.Extent]


@dataclass(frozen=True, slots=True)
class Known:
    """A function with what it says of its scalars, found out when it is asked for, and once."""

    function: ir.PrimFunc

    @property
    def symbols(self) -> Mapping[str, ir.Symbol]:
        """Extents that it is given, by name."""
        return symbols_of(self.function)

    @property
    def ranges(self) -> Mapping[str, Range]:
        """Of its variables, as far as they are known."""
        return ranges_of(self.function)


def binding_at(callee: Known, call: ir.Call, caller: Known) -> Binding:
    """The extents that the callee's symbols stand for at one call."""
    if not callee.symbols:
        return {}
    arguments = {p.variable.name: argument for p, argument in scalar_arguments(callee.function, call)}
    binding: dict[str, ir.Extent] = {}
    for name, symbol in callee.symbols.items():
        argument = arguments.get(name)
        if isinstance(argument, ir.Const) and isinstance(argument.value, int):
            binding[name] = argument.value
        elif isinstance(argument, ir.Var) and argument.name in caller.symbols:
            binding[name] = caller.symbols[argument.name]
        else:
            known = None if argument is None else range_of(argument, caller.ranges)
            binding[name] = symbol.upper if known is None else known[1]
    return binding


def bound_extents(extents: Sequence[ir.Extent], binding: Binding) -> tuple[ir.Extent, ...]:
    """The extents with the callee's symbols replaced."""
    return tuple(_bound(extent, binding) for extent in extents)


def _bound(extent: ir.Extent, binding: Binding) -> ir.Extent:
    """The extent for what stands for its symbol."""
    symbol = ir.symbol_in(extent)
    given = None if symbol is None else binding.get(symbol.name)
    return extent if given is None else ir.replace_symbol(extent, given)


def bound_buffer(buffer: ir.Buffer, binding: Binding) -> ir.Buffer:
    """The buffer as the caller has to provide it."""
    return replace(buffer, shape=bound_extents(buffer.shape, binding))


def always_holds(available: Sequence[ir.Extent], needed: Sequence[ir.Extent]) -> bool:
    """Whether one shape has at least as many elements as another, whatever values the symbols take."""
    if ir.elements_of(available) == ir.elements_of(needed):
        return True
    rest, unmatched = list(available), list[ir.Extent]()
    for extent in needed:
        if not isinstance(extent, int) and extent in rest:
            rest.remove(extent)
        else:
            unmatched.append(extent)
    return prod(map(ir.lower_bound, rest)) >= prod(map(ir.upper_bound, unmatched))
