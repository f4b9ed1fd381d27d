"""Checks what concerns the module as a whole: names, and constants against their buffers."""

from collections import Counter
from collections.abc import Iterable

from bytewright import ir
from bytewright.ir.remember import Remembered
from bytewright.ir.verify.verify_storage import constant_faults
from bytewright.ir.verify.violation import Context, graph_values


def check_module(context: Context) -> None:
    """Reports names that are used twice and constants that do not fill their buffers."""
    module = context.module
    functions = (*module.functions, *module.kernels, *module.entries)
    _unique(context, "function", (function.name for function in functions))
    _unique(context, "constant buffer", (constant.buffer.name for constant in module.constant_buffers))
    values = [constant.name for constant in module.constants]
    values.extend(value.name for _, _, value in graph_values(module))
    _unique(context, "value", values)
    _one_prototype(context)
    surroundings = (context.rules, context.target)
    for constant in module.constant_buffers:
        if _CLEAN.get(constant) == surroundings:
            continue
        faults = tuple(constant_faults(context, constant))
        context.report(None, constant, *faults)
        if not faults:
            _CLEAN.put(constant, surroundings)


# In what surroundings a constant was last found to keep to the rules.
_CLEAN: Remembered[tuple[object, ...]] = Remembered()


def _one_prototype(context: Context) -> None:
    """Functions of the application that are one in C have one prototype there."""
    first: dict[str, ir.PrimFunc] = {}
    for function in context.module.kernels:
        if function.external is None:
            continue
        other = first.setdefault(function.symbol, function)
        if _prototype(function) != _prototype(other):
            text = f"'{function.name}' is '{function.symbol}' in C as '{other.name}' is, which has another prototype"
            context.report(function, function, text)


def _prototype(function: ir.PrimFunc) -> tuple[object, ...]:
    """What C knows of it: types, and what is only read."""
    parameters: list[object] = []
    for parameter in function.parameters:
        match parameter:
            case ir.BufferParameter():
                parameters.append((parameter.buffer.dtype, parameter.access is ir.Access.READ))
            case ir.ScalarParameter():
                parameters.append(parameter.variable.dtype)
            case ir.ContextParameter():
                parameters.append(parameter.device)
    scratch = [(s.buffer.dtype, False) for s in function.body.statements if isinstance(s, ir.Allocate)]
    status = function.external is not None and function.external.returns_status
    return (function.device, status, *parameters, *scratch)


def _unique(context: Context, kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            context.report(None, context.module, f"a {kind} has no name")
        if count > 1:
            context.report(None, context.module, f"{kind} '{name}' exists {count} times")
