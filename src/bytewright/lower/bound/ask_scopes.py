"""What functions of the application ask of places flows to the tensors and constants that they are given.

A description says in which scope an argument must lie. The scope of the definition is joined with it, and the reason is
kept; what is asked for and has no place in common is refused, with both sides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.arguments import buffer_arguments
from bytewright.ir.definitions import redefined, redefined_constants
from bytewright.ir.walk import allocations, calls


@dataclass(slots=True)
class _Asked:
    """What is asked of a buffer so far: its own scope first, then that of each use that narrowed it."""

    scope: ir.Scope | None
    by: str
    reasons: list[str] = field(default_factory=list[str])


def ask_scopes(module: ir.Module) -> ir.Module:
    """The module in which what is passed lies within what is asked for.

    Raises:
        CompileError: BW764, for each buffer that cannot.
    """
    if all(p.scope == ir.GLOBAL for kernel in _described(module).values() for p in kernel.buffer_parameters):
        return module
    collector = Collector()
    constants = {
        c.buffer.name: _Asked(c.storage.scope, "what its kernels take") for c in module.constant_buffers
    }
    entries = tuple(_entry(entry, module, constants, collector) for entry in module.entries)
    collector.stop_if_any()
    storages = {
        c.buffer.name: c.storage.narrowed(
            *constants[c.buffer.name].reasons, scope=constants[c.buffer.name].scope
        )
        for c in module.constant_buffers
    }
    return replace(module, entries=entries, constant_buffers=redefined_constants(module, storages))


def _described(module: ir.Module) -> dict[str, ir.PrimFunc]:
    return {kernel.name: kernel for kernel in module.kernels if kernel.external is not None}


def _entry(
    entry: ir.PrimFunc, module: ir.Module, constants: dict[str, _Asked], collector: Collector
) -> ir.PrimFunc:
    allocated = {a.buffer.name: _Asked(a.storage.scope, "where tensors begin") for a in allocations(entry)}
    given = {p.name: _Asked(p.scope, "where the application has it") for p in entry.buffer_parameters}
    for call, kernel, parameter, name in _uses(entry, _described(module)):
        asked = allocated.get(name) or given.get(name) or constants[name]
        with collector.catch():
            _ask(asked, name, parameter, kernel, call)
    storages = {
        a.buffer.name: a.storage.narrowed(
            *allocated[a.buffer.name].reasons, scope=allocated[a.buffer.name].scope
        )
        for a in allocations(entry)
    }
    parameters = tuple(
        replace(p, scope=given[p.name].scope) if isinstance(p, ir.BufferParameter) else p
        for p in entry.parameters
    )
    return redefined(replace(entry, parameters=parameters), storages)


def _uses(
    entry: ir.PrimFunc, described: Mapping[str, ir.PrimFunc]
) -> Iterator[tuple[ir.Call, ir.PrimFunc, ir.BufferParameter, str]]:
    for call in calls(entry):
        if call.callee in described:
            kernel = described[call.callee]
            for parameter, argument in buffer_arguments(kernel, call):
                yield call, kernel, parameter, argument.buffer.name


def _ask(asked: _Asked, name: str, parameter: ir.BufferParameter, kernel: ir.PrimFunc, call: ir.Call) -> None:
    by = f"'{parameter.name}' of '{kernel.symbol}' in {call.where.operator or call.where}"
    try:
        joined = ir.join_scopes(asked.scope, parameter.scope)
    except ValueError:
        message = f"{by} asks for '{name}' in {parameter.scope}, but {asked.by} it is in {asked.scope}"
        raise compile_error("BW764", message, where=str(call.where)) from None
    if joined != asked.scope:
        asked.scope, asked.by = joined, f"for {by}"
        asked.reasons.append(f"lower_graph: {by} asks for {parameter.scope}")
