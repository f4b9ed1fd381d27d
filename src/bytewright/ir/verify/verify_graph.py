"""Checks graph functions: SSA, inferred types, places."""

from bytewright import ir
from bytewright.ir.verify.violation import Context


def check_function(context: Context, function: ir.Function) -> None:
    """Reports what is wrong with a graph function."""
    known = {constant.name: constant.data.type for constant in context.module.constants}
    for value in function.parameters:
        _check_place(context, function, function, value)
        known[value.name] = value.type
    for node in function.nodes:
        undefined = [name for name in dict.fromkeys(node.inputs) if name not in known]
        for name in undefined:
            context.report(function, node, f"'{name}' is used before it is defined")
        if not undefined:
            _check_types(context, function, node, tuple(known[name] for name in node.inputs))
        for value in node.outputs:
            _check_place(context, function, node, value)
            known[value.name] = value.type
    for name in function.results:
        if name not in known:
            context.report(function, function, f"result '{name}' is not defined")


def _check_types(
    context: Context, function: ir.Function, node: ir.Node, operands: tuple[ir.TensorType, ...]
) -> None:
    try:
        inferred = node.operation.infer(operands)
    except (ValueError, ArithmeticError, IndexError, TypeError) as error:
        context.report(function, node, f"operands do not fit: {error}")
        return
    if len(inferred) != len(node.outputs):
        context.report(function, node, f"the operator has {len(inferred)} results, not {len(node.outputs)}")
        return
    for value, type_ in zip(node.outputs, inferred, strict=True):
        expected = ir.TensorType(type_.shape, type_.dtype)
        stated = ir.TensorType(value.type.shape, value.type.dtype)
        if stated != expected:
            context.report(function, node, f"'{value.name}' is stated as {stated}, inferred as {expected}")


def _check_place(context: Context, function: ir.Function, node: object, value: ir.Value) -> None:
    place = value.type.place
    if context.rules.devices and place.device is None:
        context.report(function, node, f"'{value.name}' has no device")
    what = f"'{value.name}'"
    context.report(function, node, *(f"{what}: {fault}" for fault in context.device_faults(place.device)))
    context.report(function, node, *context.scope_faults(place.scope, place.device, what))
