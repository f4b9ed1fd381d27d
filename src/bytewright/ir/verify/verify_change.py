"""Compares a module with what the pass was given: scopes only shrink, and no value changes its device.

Names survive passes, so they say what is the same. What is new starts a chain of its own.
"""

from bytewright import ir
from bytewright.ir.definitions import Definition
from bytewright.ir.verify.violation import Context, graph_values
from bytewright.ir.walk import definitions, statements_of

_AnyDefinition = ir.BufferParameter | Definition


def check_changes(context: Context, previous: ir.Module, pass_name: str) -> None:
    """Reports scopes that grew and devices that changed."""
    _check_values(context, previous, pass_name)
    old_functions = {function.name: function for function in (*previous.kernels, *previous.entries)}
    old_values = _places(previous)
    for function in (*context.module.kernels, *context.module.entries):
        before = old_functions.get(function.name)
        if before is function:
            continue
        if before is not None:
            _check_buffers(context, function, before, pass_name)
        elif function in context.module.entries:
            _check_lowered(context, function, old_values, pass_name)
    old_constants = {constant.buffer.name: constant for constant in previous.constant_buffers}
    for constant in context.module.constant_buffers:
        before = old_constants.get(constant.buffer.name, constant)
        if before is not constant:
            _check_narrowing(context, None, constant, before, pass_name)


def _check_narrowing(
    context: Context,
    function: ir.PrimFunc | None,
    now: _AnyDefinition,
    before: _AnyDefinition,
    pass_name: str,
) -> None:
    name = now.buffer.name
    if not ir.is_within(now.scope, before.scope):
        context.report(function, now, _widened(pass_name, name, before.scope, now.scope))
    if isinstance(now, ir.BufferParameter) or isinstance(before, ir.BufferParameter):
        return
    allowed = before.storage.candidates
    added = [pool for pool in now.storage.candidates or () if allowed is not None and pool not in allowed]
    if added:
        context.report(function, now, f"pass '{pass_name}' added pool {', '.join(added)} to '{name}'")


def _widened(pass_name: str, name: str, before: ir.Scope | None, after: ir.Scope | None) -> str:
    return f"pass '{pass_name}' widened the scope of '{name}' from '{before}' to '{after}'"


def _places(module: ir.Module) -> dict[str, ir.VirtualDevice]:
    return {value.name: value.type.place for _, _, value in graph_values(module)}


def _check_values(context: Context, previous: ir.Module, pass_name: str) -> None:
    old = _places(previous)
    for function, node, value in graph_values(context.module):
        name, place = value.name, value.type.place
        before = old.get(name, ir.VirtualDevice())
        if before.device is not None and place.device != before.device:
            moved = f"from device '{before.device}' to '{place.device}'"
            context.report(function, node, f"pass '{pass_name}' moved '{name}' {moved}")
        if not ir.is_within(place.scope, before.scope):
            context.report(function, node, _widened(pass_name, name, before.scope, place.scope))


def _check_buffers(context: Context, function: ir.PrimFunc, before: ir.PrimFunc, pass_name: str) -> None:
    if function.device != before.device:
        moved = f"from device '{before.device}' to '{function.device}'"
        context.report(function, function, f"pass '{pass_name}' moved '{function.name}' {moved}")
    old = {definition.buffer.name: definition for definition in definitions(before)}
    for definition in definitions(function):
        if definition.buffer.name in old:
            _check_narrowing(context, function, definition, old[definition.buffer.name], pass_name)


def _check_lowered(
    context: Context, entry: ir.PrimFunc, values: dict[str, ir.VirtualDevice], pass_name: str
) -> None:
    """A graph value that became an allocation of a new entry keeps the scope that placement gave it."""
    for statement in statements_of(entry):
        if isinstance(statement, ir.Allocate) and statement.buffer.name in values:
            name, scope = statement.buffer.name, statement.scope
            if not ir.is_within(scope, values[name].scope):
                context.report(entry, statement, _widened(pass_name, name, values[name].scope, scope))
