"""The facts of an operator that formulas name: its tensors, its constants, the attributes of its graph operators.

`input`, `inputs[1]` and `output` have `shape`, `elements`, `bytes` and `type`. A graph operator is called by its name
(`rescale`), the second of a kind by number (`conv2d[1]`), and has its attributes and its operands. What stands alone
(`stride`, `weights`) is that of the first graph operator that has it. `output_minimum` and `output_maximum` are the
range of the result: that of a clamp at the end, or else of its type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from math import prod

import numpy as np

from bytewright import ir
from bytewright.graph.bound.formula import Record

# What an extent is in a formula: itself, or one of its values.
ExtentOf = Callable[[ir.Extent], object]
_FLOATS = {
    ir.DType.F32: (float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)),
    ir.DType.F64: (float(np.finfo(np.float64).min), float(np.finfo(np.float64).max)),
}


@dataclass(frozen=True, slots=True)
class BoundOperator:
    """The graph operators that one call computes.

    Attributes:
        nodes: In order; the last computes what others read.
        types: Of all tensors of the graph.
        constants: Of the graph, by name.
    """

    nodes: tuple[ir.Node, ...]
    types: Mapping[str, ir.TensorType]
    constants: Mapping[str, ir.Constant]

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that it reads, in the order of their use."""
        own = {value.name for node in self.nodes for value in node.outputs}
        read = (name for node in self.nodes for name in node.inputs)
        return tuple(dict.fromkeys(name for name in read if name not in own and name not in self.constants))

    @property
    def output(self) -> ir.Value:
        """What it computes."""
        return self.nodes[-1].outputs[0]

    def facts(self, extent_of: ExtentOf) -> dict[str, object]:
        """All of them, by name."""
        inputs = tuple(self._tensor(f"input {i}", name, extent_of) for i, name in enumerate(self.inputs))
        known: dict[str, object] = {
            "inputs": Record("the inputs", {}, inputs),
            "output": self._tensor("the output", self.output.name, extent_of),
        }
        if inputs:
            known["input"] = inputs[0]
        of_kind: dict[str, list[Record]] = {}
        for node in self.nodes:
            of_kind.setdefault(node.operation.name, []).append(self._node(node, extent_of))
        for kind, records in of_kind.items():
            first = records[0]
            known.setdefault(kind, Record(first.title, first.members, tuple(records)))
        for records in of_kind.values():
            for record in records:
                for name, value in record.members.items():
                    if name not in ("name", "input"):
                        known.setdefault(name, value)
        known["output_minimum"], known["output_maximum"] = self._range()
        return known

    def _tensor(self, title: str, name: str, extent_of: ExtentOf) -> Record:
        return _array(title, self.types[name], extent_of)

    def _node(self, node: ir.Node, extent_of: ExtentOf) -> Record:
        operation = node.operation
        attributes = fields(operation)  # type: ignore[arg-type]  # operators are dataclasses
        members: dict[str, object] = {f.name: _plain(getattr(operation, f.name)) for f in attributes}
        for position, name in enumerate(node.inputs):
            names = operation.operand_names
            called = names[position] if position < len(names) else f"operand_{position}"
            constant = self.constants.get(name)
            title = f"'{called}' of {operation.name}"
            data = None if constant is None else constant.data
            members.setdefault(called, _array(title, self.types[name], extent_of, data))
        return Record(operation.name, members)

    def _range(self) -> tuple[int | float, int | float]:
        """The least and the greatest value of the result."""
        dtype = self.output.type.dtype
        low, high = dtype.bounds if dtype.is_integer else _FLOATS.get(dtype, (0, 1))
        clamp = self.nodes[-1].operation
        if clamp.name == "clamp":
            least, greatest = getattr(clamp, "minimum", low), getattr(clamp, "maximum", high)
            low, high = max(low, least), min(high, greatest)
        return low, high


def _array(
    title: str, type_: ir.TensorType, extent_of: ExtentOf, data: ir.TensorData | None = None
) -> Record:
    shape = tuple(extent_of(extent) for extent in type_.shape)
    members: dict[str, object] = {"shape": shape, "type": type_.dtype.value}
    sizes = [extent for extent in shape if isinstance(extent, int)]
    if len(sizes) == len(shape):
        members["elements"] = prod(sizes)
        members["bytes"] = prod(sizes) * type_.dtype.size_bytes
    return Record(title, members, data=data)


def _plain(value: object) -> object:
    """An attribute as formulas know it: of an enumeration its value."""
    return value.value if isinstance(value, Enum) else value
