"""A graph without some of its channels: operators, types and constants are cut, biases take in what was constant."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.lower.channels.known import Known
from bytewright.lower.channels.removable import Item, Operators
from bytewright.ops.convolution import Conv2d
from bytewright.ops.data import Pad, Reshape, Slice
from bytewright.ops.rescale import Rescale, TflRealRescale

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class Constants:
    """The constants of a module while functions are rewritten: each use says what it has become there."""

    before: Mapping[str, ir.Constant]
    uses: dict[str, list[ir.TensorData]] = field(default_factory=dict[str, list[ir.TensorData]])

    def use(self, name: str, data: ir.TensorData) -> tuple[str, int]:
        """Of a constant, under which name it will be used: that of `named`."""
        found = self.uses.setdefault(name, [])
        if data not in found:
            found.append(data)
        return name, found.index(data)

    def named(self, taken: set[str]) -> tuple[dict[tuple[str, int], str], tuple[ir.Constant, ...]]:
        """The names of what is used, and the constants in their order; one that is used in one form keeps its name."""
        names: dict[tuple[str, int], str] = {}
        constants: list[ir.Constant] = []
        for name, constant in self.before.items():
            forms = self.uses.get(name, [constant.data])
            keeping = forms.index(constant.data) if constant.data in forms else 0
            for number, data in enumerate(forms):
                own = name if number == keeping else unique_name(f"{name}/narrowed", taken)
                names[name, number] = own
                constants.append(ir.Constant(own, data))
        return names, tuple(constants)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """One function, and what goes of it.

    Attributes:
        removed: The channels that go, by item.
        known: The constant channels of its values.
        constants: Of the module.
    """

    operators: Operators
    removed: Mapping[Item, Mask]
    known: Mapping[str, Known]
    constants: Constants

    def function(self) -> tuple[ir.Function, dict[int, tuple[tuple[str, int] | str, ...]]]:
        """The function with its own operators; and for each node what it reads, names or uses of constants."""
        read: dict[int, tuple[tuple[str, int] | str, ...]] = {}
        nodes: list[ir.Node] = []
        for name in self.operators.function.results:
            self._read(name, None)
        for position, node in enumerate(self.operators.function.nodes):
            outputs = tuple(self._value(value) for value in node.outputs)
            arrays = self._cut(position, node)
            read[position] = tuple(
                self._read(name, arrays.get(number)) for number, name in enumerate(node.inputs)
            )
            operation = self._operation(position, node, outputs)
            nodes.append(replace(node, operation=operation, outputs=outputs))
        return replace(self.operators.function, nodes=tuple(nodes)), read

    def _read(self, name: str, array: ir.Array | None) -> tuple[str, int] | str:
        constant = self.constants.before.get(name)
        if constant is None:
            return name
        data = constant.data
        return self.constants.use(
            name, data if array is None else ir.TensorData.from_array(array, data.dtype)
        )

    def _value(self, value: ir.Value) -> ir.Value:
        if value.name not in self.removed:
            return value
        extent = int((~self.removed[value.name]).sum())
        return replace(value, type=replace(value.type, shape=(*value.type.shape[:-1], extent)))

    def _removed_input(self, position: int, node: ir.Node) -> Mask | None:
        """The channels of the first operand, a value or a constant, that go; None if none does."""
        return self.removed.get(node.inputs[0], self.removed.get((position, 0)))

    def _staying(self, item: Item) -> NDArray[np.intp] | None:
        """The channels of an item that stay; None if all do."""
        return np.flatnonzero(~self.removed[item]) if item in self.removed else None

    def _cut(self, position: int, node: ir.Node) -> dict[int, ir.Array]:
        """The constants among the operands that are others now, by number."""
        result = self._staying(node.outputs[0].name) if len(node.outputs) == 1 else None
        if position in self.operators.weighted:
            return self._cut_weights(position, node, result)
        found: dict[int, ir.Array] = {}
        for number, name in enumerate(node.inputs):
            if name not in self.constants.before:
                continue
            array = self.constants.before[name].data.array
            own = self._staying((position, number))
            if own is not None:
                found[number] = array[..., own]
            elif number and result is not None and isinstance(node.operation, Rescale | TflRealRescale):
                found[number] = array if array.size == 1 else array[result]
        return found

    def _cut_weights(
        self, position: int, node: ir.Node, result: NDArray[np.intp] | None
    ) -> dict[int, ir.Array]:
        """Weights and bias of a convolution, which has taken in the constants that go."""
        source = node.inputs[0]
        if result is None and source not in self.removed:
            return {}
        weights, bias = (self.constants.before[name].data.array for name in node.inputs[1:])
        weighted, known = self.operators.weighted[position], self.known.get(source)
        taken = self._staying(source)
        rows = np.arange(bias.size) if result is None else result
        if isinstance(node.operation, Conv2d):
            if taken is not None:
                if known is not None:
                    staying = weighted.unknown(known.is_constant, known.values)
                    folded = weighted.added(self.removed[source] & ~staying, known.values)
                    bias = np.add(bias, folded.astype(bias.dtype))
                weights = weights[..., taken]
            return {1: weights[rows], 2: bias[rows]}
        groups = np.arange(weights.shape[2]) if taken is None else taken
        return {1: weights[:, :, groups], 2: bias[rows]}

    def _operation(self, position: int, node: ir.Node, outputs: tuple[ir.Value, ...]) -> ir.Operation:
        """The operator, where its attributes count channels."""
        if position not in self.operators.links:
            return node.operation
        extent = outputs[0].type.shape[-1] if outputs[0].type.shape else 1
        removed = self.removed.get(outputs[0].name)
        match node.operation:
            case Reshape(shape=shape) if removed is not None:
                return Reshape((*shape[:-1], extent))
            case Pad(before=before, after=after) if removed is not None:
                first = int((~removed[: before[-1]]).sum())
                last = int((~removed[removed.size - after[-1] :]).sum())
                return replace(node.operation, before=(*before[:-1], first), after=(*after[:-1], last))
            case Slice(start=start, size=size) if (taken := self._removed_input(position, node)) is not None:
                first = int((~taken[: start[-1]]).sum())
                return replace(node.operation, start=(*start[:-1], first), size=(*size[:-1], extent))
            case _:
                return node.operation
