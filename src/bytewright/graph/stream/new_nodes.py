"""Operators that are appended to a function while it is written anew: their results have the types that follow."""

from dataclasses import dataclass, field

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.ir.where import Where


@dataclass(slots=True)
class NewNodes:
    """The nodes so far.

    Attributes:
        types: Of all that they may read, by name.
        names: That are taken.
    """

    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])
    names: set[str] = field(default_factory=set[str])
    nodes: list[ir.Node] = field(default_factory=list[ir.Node])

    def fresh(self, name: str) -> str:
        """The name, or one like it that is free; it is taken from now on."""
        return unique_name(name, self.names)

    def add(
        self,
        operation: ir.Operation,
        inputs: tuple[str, ...],
        name: str,
        where: Where,
        quantization: ir.Quantization | None = None,
    ) -> ir.Value:
        """Appends an operator with one result; returns that."""
        (type_,) = operation.infer(tuple(self.types[each] for each in inputs))
        value = ir.Value(name, type_, quantization)
        self.types[name] = type_
        self.nodes.append(ir.Node(operation, inputs, (value,), where))
        return value
