"""Checks what concerns the module as a whole: names, and constants against their buffers."""

from collections.abc import Iterable

from bytewright import ir
from bytewright.ir.verify.violation import Context


def check_module(context: Context) -> None:
    """Reports names that are used twice and constants that do not fill their buffers."""
    module = context.module
    functions = (*module.functions, *module.kernels, *module.entries)
    _unique(context, "function", (function.name for function in functions))
    _unique(context, "constant buffer", (constant.buffer.name for constant in module.constant_buffers))
    values = [constant.name for constant in module.constants]
    for function in module.functions:
        values.extend(value.name for value in function.parameters)
        values.extend(value.name for node in function.nodes for value in node.outputs)
    _unique(context, "value", values)
    for constant in module.constant_buffers:
        _check_offset(context, constant)
        _check_candidates(context, constant)
        for fault in ir.misused(constant.annotations, constant.buffer.name):
            context.report(None, constant, fault)
        buffer, data = constant.buffer, constant.data
        if data.dtype is not buffer.dtype or data.type.num_elements != ir.num_elements(buffer):
            found = f"{data.type.num_elements} elements of {data.dtype.value}"
            expected = f"{ir.num_elements(buffer)} of {buffer.dtype.value}"
            context.report(None, constant, f"constant buffer '{buffer.name}' holds {found}, not {expected}")
        if ir.num_elements(buffer) < 1:
            context.report(None, constant, f"constant buffer '{buffer.name}' has no elements")
        fault = context.scope_fault(buffer.scope, None)
        if fault is not None:
            context.report(None, constant, f"constant buffer '{buffer.name}': {fault}")


def _check_candidates(context: Context, constant: ir.ConstantBuffer) -> None:
    for pool in constant.storage.candidates or ():
        if context.target is not None and context.target.find_pool(pool) is None:
            what = f"candidate pool '{pool}' of constant buffer '{constant.buffer.name}'"
            context.report(None, constant, f"{what} does not exist in target '{context.target.name}'")


def _check_offset(context: Context, constant: ir.ConstantBuffer) -> None:
    buffer, offset = constant.buffer, constant.storage.offset
    what = f"constant buffer '{buffer.name}'"
    if not context.offsets:
        if offset is not None:
            context.report(None, constant, f"{what} has an offset before planning")
        return
    if buffer.scope is None or buffer.scope.pool is None or offset is None or offset < 0:
        context.report(None, constant, f"{what} has no offset in a pool: scope '{buffer.scope}', {offset}")
    elif offset % buffer.alignment:
        context.report(None, constant, f"{what}: offset {offset} is not a multiple of {buffer.alignment}")


def _unique(context: Context, kind: str, names: Iterable[str]) -> None:
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    for name, count in seen.items():
        if not name:
            context.report(None, context.module, f"a {kind} has no name")
        if count > 1:
            context.report(None, context.module, f"{kind} '{name}' exists {count} times")
