"""Operators that say where values are: they change no element. Any element type.

An annotation names a place for its operand, with parts that stay open; `plan_devices` takes it out again, and leaves
copies where nothing else will do.
"""

from dataclasses import dataclass
from typing import ClassVar

from bytewright import ir
from bytewright.ops.checks import require, same_type


@dataclass(frozen=True, slots=True)
class OnDevice(ir.Operation):
    """The operand is computed on a device, and lies in a scope; what uses the result is free of both.

    Attributes:
        device: None leaves it open.
        scope: A storage scope as it is written, `global.sram`; None leaves it open.
        fixed: What uses the result is on the device as well: neither copied nor lent.
        free: A copy is allowed here if one is needed, and none is made if not.
    """

    name: ClassVar[str] = "on_device"
    device: str | None = None
    scope: str | None = None
    fixed: bool = False
    free: bool = False

    @property
    def place(self) -> ir.VirtualDevice:
        """The place that it names."""
        return ir.VirtualDevice(self.device, scope=None if self.scope is None else ir.parse_scope(self.scope))

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require(not (self.fixed and self.free), "an annotation is fixed or free, not both")
        require(not self.fixed or self.device is not None, "a fixed annotation names a device")
        scope = self.place.scope
        require(scope is None or scope.rank is ir.Rank.GLOBAL, f"a value of the graph cannot be in '{scope}'")
        return same_type(inputs)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """The same values."""
        return (inputs[0],)


@dataclass(frozen=True, slots=True)
class DeviceCopy(ir.CopyOperation):
    """The same values at another place; any device may make the copy that reaches both.

    Before placement it is a wish: it becomes nothing where a pool is left that all who touch the two ends reach.

    Attributes:
        source: Where the operand is.
        destination: Where the result is.
        by: The device that makes the copy; None leaves that open.
    """

    name: ClassVar[str] = "device_copy"
    source: ir.VirtualDevice = ir.UNPLACED
    destination: ir.VirtualDevice = ir.UNPLACED
    by: str | None = None

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        for scope in (self.source.scope, self.destination.scope):
            is_global = scope is None or scope.rank is ir.Rank.GLOBAL
            require(is_global, f"a value of the graph cannot be in '{scope}'")
        return same_type(inputs)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """The same values."""
        return (inputs[0],)


OPERATIONS = (DeviceCopy, OnDevice)
