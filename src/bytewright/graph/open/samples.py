"""The graph as the file has it for some extents: what its shape arithmetic, which is done at import, comes to in each.

What is the same for all of them is so for the others; a number that is not follows from an extent of the graph: it is
so many times that, and so many more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from bytewright import ir


class Samples:
    """Graphs of the same operators, for several extents.

    Attributes:
        extents: What the symbols are in each.
    """

    def __init__(self, samples: Sequence[tuple[Mapping[ir.Symbol, int], ir.Module]]) -> None:
        self.extents = tuple(extents for extents, _ in samples)
        modules = [module for _, module in samples]
        self._nodes = {
            nodes[0].outputs[0].name: nodes
            for nodes in zip(*map(_nodes_of, modules), strict=True)
            if nodes[0].outputs
        }
        self._constants = [{each.name: each.data for each in module.constants} for module in modules]

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

    def varying(self, node: ir.Node) -> dict[str, tuple[Any, ...]]:
        """The attributes of an operator that are not the same in all of them, with what they are in each."""
        operations = [each.operation for each in self.nodes(node)]
        names = [each.name for each in fields(cast("Any", operations[0]))]
        named = ((name, [getattr(own, name) for own in operations]) for name in names)
        return {name: tuple(values) for name, values in named if any(each != values[0] for each in values)}

    def fitted(self, values: Sequence[int], known: Iterable[ir.Extent]) -> ir.Extent | None:
        """What is one of these values in each of them, as so many times a known extent, and more; None if it is not."""
        if len({*values}) == 1:
            return values[0]
        for extent in known:
            of = [self.at(extent, number) for number in range(len(self.extents))]
            other = next((n for n, each in enumerate(of) if each != of[0]), 0)
            factor, rest = divmod(values[0] - values[other], of[0] - of[other]) if other else (0, 1)
            scaled = None if rest or factor < 1 else ir.multiple(extent, factor)
            if scaled is None:
                continue
            found = ir.quotient(scaled, values[0] - factor * of[0])
            if self.agrees(found, values):
                return found
        return None

    def agrees(self, extent: ir.Extent, values: Sequence[int]) -> bool:
        """Whether an extent is one of these values in each of them."""
        return all(self.at(extent, number) == value for number, value in enumerate(values))

    def at(self, extent: ir.Extent, number: int) -> int:
        """An extent in one of them."""
        symbol = ir.symbol_in(extent)
        return ir.extent_at(extent, 0 if symbol is None else self.extents[number][symbol])


def alike(modules: Sequence[ir.Module]) -> bool:
    """Whether modules have the same operators, of the same operands, whatever their attributes and types."""
    return len({*map(_outline, modules)}) == 1


def _outline(module: ir.Module) -> tuple[Any, ...]:
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


def _nodes_of(module: ir.Module) -> list[ir.Node]:
    return [node for function in module.functions for node in function.nodes]
