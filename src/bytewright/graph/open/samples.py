"""The graph as the file has it for some extents: what its shape arithmetic, which is done at import, comes to in each.

What is the same for all of them is so for the others; a number that is not follows from an extent of the graph: it is
so many times that, and so many more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bytewright import ir

Sample = tuple[Mapping[ir.Symbol, int], ir.Module]
_MOST_PERIOD = 16
_MOST_AXES = 8  # of shapes that are looked at as numbers


class Samples:
    """Graphs for several extents: of the same operators as the largest has, and others.

    A file is written in other operators for some extents, a transposition of one row as a reshape of it. Of these
    only numbers and shapes are compared with what they are elsewhere.

    Attributes:
        extents: What the symbols are in each graph of the same operators, the largest first.
    """

    def __init__(self, samples: Sequence[Sample]) -> None:
        outlines = [_outline(module) for _, module in samples]
        alike, self._unlike = (
            [
                sample
                for sample, own in zip(samples, outlines, strict=True)
                if (own == outlines[0]) is is_alike
            ]
            for is_alike in (True, False)
        )
        self.extents = tuple(extents for extents, _ in alike)
        modules = [module for _, module in alike]
        self._nodes = {
            nodes[0].outputs[0].name: nodes
            for nodes in zip(*map(_nodes_of, modules), strict=True)
            if nodes[0].outputs
        }
        self._constants = list(map(_constants_of, modules))

    @property
    def are_several(self) -> bool:
        """Whether what depends on the extent is known."""
        return len(self.extents) > 1

    def nodes(self, node: ir.Node) -> tuple[ir.Node, ...]:
        """The operator in each of them."""
        return self._nodes[node.outputs[0].name]

    def constants(self, name: str) -> tuple[ir.TensorData, ...]:
        """The values of a constant in each of them; none of what is no constant, or the same in all."""
        if name not in self._constants[0]:
            return ()
        found = tuple(constants[name] for constants in self._constants)
        return () if all(each == found[0] for each in found[1:]) else found

    def deciding(self, found: Sequence[ir.TensorData]) -> ir.Symbol | None:
        """The one extent that decides what a constant is, of which these are the values in each of them."""
        for symbol in self.extents[0]:
            own: dict[int, ir.TensorData] = {}
            pairs = zip(self.extents, found, strict=True)
            if all(own.setdefault(extents[symbol], data) == data for extents, data in pairs):
                return symbol
        return None

    def table(self, name: str, symbol: ir.Symbol) -> tuple[ir.TensorData, ...]:
        """The values of a constant for each extent there is, from the least; none if some are not known."""
        modules = [*zip(self.extents, self._constants, strict=True)]
        modules += [(extents, _constants_of(own)) for extents, own in self._unlike]
        found = {extents[symbol]: constants[name] for extents, constants in modules if name in constants}
        whole = range(symbol.lower, symbol.upper + 1)
        return tuple(found[extent] for extent in whole) if found.keys() >= {*whole} else ()

    def varying(self, node: ir.Node) -> dict[str, tuple[Any, ...]]:
        """The attributes of an operator that are not the same in all of them, with what they are in each."""
        operations = [each.operation for each in self.nodes(node)]
        names = [each.name for each in fields(cast("Any", operations[0]))]
        named = ((name, [getattr(own, name) for own in operations]) for name in names)
        return {name: tuple(values) for name, values in named if any(each != values[0] for each in values)}

    def fitted(self, values: Sequence[int], known: Iterable[ir.Extent]) -> ir.Extent | None:
        """What is one of these values in each of them: so many times a known extent, and more, divided; None if not.

        Of the divisors the least is taken, so that what is no quotient is told from one that is.
        """
        if len({*values}) == 1:
            return values[0]
        lines = [
            (extent, [self.at(extent, number) for number in range(len(self.extents))]) for extent in known
        ]
        for divisor in range(1, _MOST_PERIOD + 1):
            for extent, of in lines:
                line = _line(of, values, divisor)
                if line is not None:
                    factor, offset = line
                    return ir.quotient(ir.multiple(extent, factor), offset, divisor)
        return None

    def require_one_law(self, shapes: Mapping[str, Sequence[ir.Extent]]) -> None:
        """Holds the graphs of other operators against what the open one becomes for their extents.

        Raises:
            ValueError: A number of the file, or a shape, is not what follows from the other extents.
        """
        for extents, module in self._unlike:
            types = module.graph_types
            # Of tensors of the file: what its operators are written with has other names, or other forms.
            for name in shapes.keys() & types.keys() & module.sources.keys():
                shape = tuple(_closed(extent, extents) for extent in shapes[name])
                if shape != types[name].shape:
                    raise ValueError(f"'{name}' would be [{ir.format_shape(shape)}] for {_named(extents)}")
            for constant in module.constants:
                if not self._follows(constant, extents):
                    raise ValueError(f"'{constant.name}' follows from no extent for {_named(extents)}")

    def _follows(self, constant: ir.Constant, extents: Mapping[ir.Symbol, int]) -> bool:
        """Whether a number is for these extents what it is by those that differ from them in one alone."""
        if constant.name in self._constants[0] and not self.constants(constant.name):  # as weights are
            return constant.data == self._constants[0][constant.name]
        if self._is_of_extents(constant, extents):
            return True
        lines = [
            {
                own[symbol]: constants[constant.name].array
                for own, constants in zip(self.extents, self._constants, strict=True)
                if constant.name in constants and all(own[n] == extents[n] for n in own if n is not symbol)
            }
            for symbol in extents
        ]
        number = max(range(len(lines)), key=lambda n: len(lines[n]))
        at = [*extents.values()][number]
        line, wanted = lines[number], constant.data.array
        sizes = {n: np.array(each.shape) for n, each in line.items()}
        return not line or (_follows(sizes, at, np.array(wanted.shape)) and _follows(line, at, wanted))

    def _is_of_extents(self, constant: ir.Constant, extents: Mapping[ir.Symbol, int]) -> bool:
        """Whether each element of a shape is, for these extents, the extent that it is in all of them."""
        found, wanted = self.constants(constant.name), constant.data.array
        if not (0 < wanted.size <= _MOST_AXES and constant.data.dtype.is_integer):
            return False
        if {each.shape for each in found} != {wanted.shape}:
            return False
        own = zip(*(each.array.ravel().tolist() for each in found), strict=True)
        fitted = [self.fitted(values, extents) for values in own]
        return [
            each if each is None else _closed(each, extents) for each in fitted
        ] == wanted.ravel().tolist()

    def agrees(self, extent: ir.Extent, values: Sequence[int]) -> bool:
        """Whether an extent is one of these values in each of them."""
        return all(self.at(extent, number) == value for number, value in enumerate(values))

    def at(self, extent: ir.Extent, number: int) -> int:
        """An extent in one of them."""
        return _closed(extent, self.extents[number])


def _line(of: Sequence[int], values: Sequence[int], divisor: int) -> tuple[int, int] | None:
    """The factor and the offset, with which numbers divided by the divisor come to the values."""
    low, high = of.index(min(of)), of.index(max(of))
    if of[low] == of[high] or len({each % divisor for each in of}) < divisor:  # not each rest is known
        return None
    factor = round((values[high] - values[low]) * divisor / (of[high] - of[low]))
    offsets = [value * divisor - factor * each for each, value in zip(of, values, strict=True)]
    offset = max(offsets)
    return (factor, offset) if factor >= 1 and offset < min(offsets) + divisor else None


def _follows(values: Mapping[int, NDArray[Any]], at: int, wanted: NDArray[Any]) -> bool:
    """Whether values that grow by the same in each period of extents come to those that are wanted.

    Values that have no period are no numbers that anything follows from, but for those of one extent or two: they are
    the same for all, or unknown.
    """
    part = tuple(map(slice, wanted.shape))
    least = {n: each[part] for n, each in values.items() if each[part].shape == wanted.shape}
    if len(least) < 3:
        return all(np.array_equal(each, wanted) for each in least.values()) and bool(least)
    exact = {n: each.astype(np.float64 if each.dtype.kind == "f" else np.int64) for n, each in least.items()}
    for period in range(1, _MOST_PERIOD + 1):
        growths = [exact[n + period] - each for n, each in exact.items() if n + period in exact]
        of = next((n for n in exact if (n - at) % period == 0), None)
        if len(growths) > 1 and of is not None and all(np.array_equal(each, growths[0]) for each in growths):
            return np.array_equal(exact[of] - growths[0] * ((of - at) // period), wanted)
    return True


def _closed(extent: ir.Extent, extents: Mapping[ir.Symbol, int]) -> int:
    symbol = ir.symbol_in(extent)
    return ir.extent_at(extent, 0 if symbol is None else extents[symbol])


def _named(extents: Mapping[ir.Symbol, int]) -> str:
    return " and ".join(f"{symbol.name}={extent}" for symbol, extent in extents.items())


def _outline(module: ir.Module) -> tuple[Any, ...]:
    """The operators and their operands, whatever their attributes and types."""
    return tuple(
        (
            function.name,
            tuple(value.name for value in function.parameters),
            tuple(_described(node) for node in function.nodes),
            function.results,
        )
        for function in module.functions
    )


def _described(node: ir.Node) -> tuple[Any, ...]:
    operation = node.operation
    callees = operation.callees if isinstance(operation, ir.ControlOperation) else ()
    return (
        type(operation),
        callees,
        node.inputs,
        tuple((value.name, len(value.type.shape), value.type.dtype) for value in node.outputs),
    )


def _constants_of(module: ir.Module) -> dict[str, ir.TensorData]:
    return {constant.name: constant.data for constant in module.constants}


def _nodes_of(module: ir.Module) -> list[ir.Node]:
    return [node for function in module.functions for node in function.nodes]
