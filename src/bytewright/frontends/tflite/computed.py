"""Nodes that are carried out at import, on values that are known, with the functions that they run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.frontends.tflite.needed import needed_nodes


class UnknownValueError(Exception):
    """A value that a result depends on, by its name, is not known."""


@dataclass(frozen=True, slots=True)
class Computation:
    """What nodes are computed with.

    Attributes:
        data_of: The values of a constant, by its name; None of what is none.
        functions: Those that nodes may run.
        charge: Takes the elements that are computed from a budget.
    """

    data_of: Callable[[str], ir.TensorData | None]
    functions: Iterable[ir.Function]
    charge: Callable[[int], None]

    def compute(
        self, nodes: Sequence[ir.Node], results: Sequence[str], given: Mapping[str, ir.Array]
    ) -> tuple[ir.Array, ...]:
        """Some results of nodes in order, for values that are given.

        Raises:
            UnknownValueError: They depend on one that is neither given nor constant.
        """
        arrays = dict(given)
        for node in needed_nodes(nodes, results):
            self.charge(sum(value.type.num_elements for value in node.outputs))
            operands = tuple(self._array(name, arrays) for name in node.inputs)
            if isinstance(node.operation, ir.ControlOperation):
                computed = self._run(node.operation.turns(operands))
            else:
                computed = node.operation.evaluate(operands)
            arrays |= {value.name: result for value, result in zip(node.outputs, computed, strict=True)}
        return tuple(self._array(name, arrays) for name in results)

    def _run(self, turns: ir.Turns) -> tuple[ir.Array, ...]:
        function = next(each for each in self.functions if each.name == turns.callee)
        values = turns.arguments
        for _ in range(turns.num_turns):
            given = {own.name: value for own, value in zip(function.parameters, values, strict=True)}
            values = self.compute(function.nodes, function.results, given)
        return values

    def _array(self, name: str, arrays: Mapping[str, ir.Array]) -> ir.Array:
        if name in arrays:
            return arrays[name]
        data = self.data_of(name)
        if data is None:
            raise UnknownValueError(name)
        return data.array
