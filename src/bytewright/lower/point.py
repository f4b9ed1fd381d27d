"""One element of an element-wise operator's result: what the rules of such operators work on."""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import BodyBuilder
from bytewright.lower.kernel import KernelBuilder
from bytewright.lower.scalar import Scalar

Coordinates = tuple[ir.Expr, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """An operator at one element.

    Attributes:
        coordinates: Of the element, in the operator's result.
        operands: The elements that it is computed from.
        hint: What to call the result, where it gets a name.
        constants: The graph's constants by name.
    """

    kernel: KernelBuilder
    node: ir.Node
    coordinates: Coordinates
    operands: tuple[Scalar, ...]
    hint: str
    constants: Mapping[str, ir.Constant]

    @property
    def body(self) -> BodyBuilder:
        """The statements so far."""
        return self.kernel.body

    @property
    def is_float(self) -> bool:
        """Whether the operands are floats."""
        return not self.operands[0].expr.dtype.is_integer

    def array(self, operand: int) -> ir.Array:
        """The values of an operand that is read as a whole, and so is constant."""
        return self.constants[self.node.inputs[operand]].data.array
