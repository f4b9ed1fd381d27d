"""Checks graph functions: SSA, inferred types, places, and the functions that operators run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.verify.violation import Context


def check_functions(context: Context) -> None:
    """Reports what is wrong with the graph functions of a module; each may run those that stand before it."""
    functions = context.module.functions
    constants = context.module.constant_types
    names = frozenset(function.name for function in functions)
    before: dict[str, ir.Signature] = {}
    for function in functions:
        checker = _Checker(context, function, constants, names, before)
        checker.check()
        before.setdefault(function.name, checker.signature())


@dataclass(slots=True)
class _Checker:
    """One function.

    Attributes:
        constants: Types of the module's constants.
        names: Of all functions of the module.
        before: What the functions are that stand before this one.
        own: Types of the values that are defined so far.
    """

    context: Context
    function: ir.Function
    constants: Mapping[str, ir.TensorType]
    names: frozenset[str]
    before: Mapping[str, ir.Signature]
    own: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])

    def check(self) -> None:
        function = self.function
        for value in function.parameters:
            self.define(function, value)
        for node in function.nodes:
            operands = {name: self.type_of(name) for name in node.inputs}
            undefined = [name for name, type_ in operands.items() if type_ is None]
            for name in undefined:
                self.report(node, f"'{name}' is used before it is defined")
            types = tuple(type_ for name in node.inputs if (type_ := operands[name]) is not None)
            if not undefined:
                self.check_types(node, types)
            for value in node.outputs:
                self.define(node, value)
        for name in function.results:
            if self.type_of(name) is None:
                self.report(function, f"result '{name}' is not defined")

    def signature(self) -> ir.Signature:
        """What is known of it; a result that is not defined is left out."""
        results = (type_ for name in self.function.results if (type_ := self.type_of(name)) is not None)
        return ir.Signature(tuple(value.type for value in self.function.parameters), tuple(results))

    def type_of(self, name: str) -> ir.TensorType | None:
        return self.own.get(name) or self.constants.get(name)

    def report(self, node: object, *faults: str) -> None:
        self.context.report(self.function, node, *faults)

    def define(self, node: object, value: ir.Value) -> None:
        place, what = value.type.place, f"'{value.name}'"
        if self.context.rules.devices and place.device is None:
            self.report(node, f"{what} has no device")
        self.report(node, *(f"{what}: {fault}" for fault in self.context.device_faults(place.device)))
        self.report(node, *self.context.scope_faults(place.scope, place.device, what))
        self.own[value.name] = value.type

    def check_types(self, node: ir.Node, operands: tuple[ir.TensorType, ...]) -> None:
        inferred = self.inferred(node, operands)
        if inferred is None:
            return
        if len(inferred) != len(node.outputs):
            self.report(node, f"the operator has {len(inferred)} results, not {len(node.outputs)}")
            return
        for value, type_ in zip(node.outputs, inferred, strict=True):
            expected = ir.TensorType(type_.shape, type_.dtype)
            stated = ir.TensorType(value.type.shape, value.type.dtype)
            if stated != expected:
                self.report(node, f"'{value.name}' is stated as {stated}, inferred as {expected}")

    def inferred(
        self, node: ir.Node, operands: tuple[ir.TensorType, ...]
    ) -> tuple[ir.TensorType, ...] | None:
        """The types of the results; None where that there are none has been reported."""
        operation = node.operation
        try:
            if not isinstance(operation, ir.ControlOperation):
                return operation.infer(operands)
            faults = [
                fault for name in dict.fromkeys(operation.callees) for fault in self.callee_faults(name)
            ]
            self.report(node, *faults)
            if faults:
                return None
            return operation.infer_from(tuple(self.before[name] for name in operation.callees), operands)
        except (ValueError, ArithmeticError, IndexError, TypeError) as error:
            self.report(node, f"operands do not fit: {error}")
            return None

    def callee_faults(self, name: str) -> tuple[str, ...]:
        if name in self.before:
            return ()
        if name == self.function.name:
            return (f"'{name}' runs itself",)
        if name in self.names:
            return (f"function '{name}' stands behind '{self.function.name}', which runs it",)
        return (f"there is no function '{name}'",)
