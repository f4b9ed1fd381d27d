"""The operators of one kernel, as `fuse` groups them."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.graph.bound.function import Bound


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that become one kernel.

    Attributes:
        anchor: The operator that is not element-wise, if there is one.
        elementwise: The element-wise operators, in an order that respects definitions.
        bound: The function of the application that computes them; then there is no anchor, and they may be any.
    """

    anchor: ir.Node | None
    elementwise: tuple[ir.Node, ...]
    bound: Bound | None = None

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        """All operators, the anchor first."""
        return ((self.anchor,) if self.anchor else ()) + self.elementwise

    @property
    def output(self) -> ir.Value:
        """The tensor that the kernel writes: the last operator's result."""
        return self.nodes[-1].outputs[0]
