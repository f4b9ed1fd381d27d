"""Checks what concerns the module as a whole: names, and constants against their buffers."""

from collections import Counter
from collections.abc import Iterable, Iterator

from bytewright import ir
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
        for fault in _constant_faults(context, constant):
            context.report(None, constant, fault)


def _constant_faults(context: Context, constant: ir.ConstantBuffer) -> Iterator[str]:
    buffer, data = constant.buffer, constant.data
    what = f"constant buffer '{buffer.name}'"
    yield from _offset_faults(context, constant, what)
    yield from context.candidate_faults(constant, what)
    yield from ir.misused(constant.annotations, buffer.name)
    if data.dtype is not buffer.dtype or data.type.num_elements != ir.num_elements(buffer):
        found = f"{data.type.num_elements} elements of {data.dtype.value}"
        yield f"{what} holds {found}, not {ir.num_elements(buffer)} of {buffer.dtype.value}"
    if ir.num_elements(buffer) < 1:
        yield f"{what} has no elements"
    fault = context.scope_fault(constant.scope, None)
    if fault is not None:
        yield f"{what}: {fault}"


def _offset_faults(context: Context, constant: ir.ConstantBuffer, what: str) -> Iterator[str]:
    buffer, offset = constant.buffer, constant.storage.offset
    if not context.rules.offsets:
        if offset is not None:
            yield f"{what} has an offset before planning"
    elif constant.storage.pool is None or offset is None or offset < 0:
        yield f"{what} has no offset in a pool: scope '{constant.scope}', {offset}"
    elif offset % buffer.alignment:
        yield f"{what}: offset {offset} is not a multiple of {buffer.alignment}"


def _unique(context: Context, kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if not name:
            context.report(None, context.module, f"a {kind} has no name")
        if count > 1:
            context.report(None, context.module, f"{kind} '{name}' exists {count} times")
