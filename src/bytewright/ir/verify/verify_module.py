"""Checks what concerns the module as a whole: names, and constants against their buffers."""

from collections import Counter
from collections.abc import Iterable

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
    for constant in module.constant_buffers:
        context.report(None, constant, *constant_faults(context, constant))


def _unique(context: Context, kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            context.report(None, context.module, f"a {kind} has no name")
        if count > 1:
            context.report(None, context.module, f"{kind} '{name}' exists {count} times")
