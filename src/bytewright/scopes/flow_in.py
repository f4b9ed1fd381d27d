"""Scopes flow into kernels: what all calls of a kernel pass from one pool is in that pool inside of it too.

Only a scope that names a place flows: `global.workspace` says what kind of memory a buffer may end in, which is
nothing that a kernel could make use of. Where storage has chosen already, among candidates, nobody asked for the place;
so a module that is planned stays as it is. A kernel whose calls pass different places keeps its parameter open: it is
compiled once, for all of them.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.analyses.bind_symbols import Known
from bytewright.ir.walk import allocations, calls
from bytewright.scopes.scope_uses import Memory

# The places that calls pass for the parameters of kernels, by kernel and parameter.
_Passed = dict[tuple[str, str], set[ir.Scope | None]]


def flow_in(module: ir.Module) -> ir.Module:
    """Returns the module whose kernels state the places that all of their calls pass."""
    kernels = {kernel.name: Known(kernel) for kernel in module.kernels}
    passed: _Passed = {}
    constants = {c.buffer.name: _place(c.scope, c.storage) for c in module.constant_buffers}

    def note(function: ir.PrimFunc) -> None:
        places = dict(constants)
        places.update((p.name, p.scope) for p in function.buffer_parameters)
        places.update((a.buffer.name, _place(a.scope, a.storage)) for a in allocations(function))
        memory = Memory(function)
        for call in calls(function):
            for use in memory.uses(call, kernels):
                given = (places.get(name) for name in memory.of(use.piece.buffer.name))
                passed.setdefault(use.written, set()).update(given)

    for entry in module.entries:
        note(entry)
    told: list[ir.PrimFunc] = []
    for kernel in reversed(module.kernels):  # callers before their callees
        told.append(_told(kernel, passed))
        note(told[-1])
    return replace(module, kernels=tuple(reversed(told)))


def _place(scope: ir.Scope | None, storage: ir.Storage) -> ir.Scope | None:
    return scope if storage.candidates is None else None


def _told(kernel: ir.PrimFunc, passed: _Passed) -> ir.PrimFunc:
    """The kernel with the scopes that its calls pass."""

    def told(parameter: ir.Parameter) -> ir.Parameter:
        if not isinstance(parameter, ir.BufferParameter):
            return parameter
        places = tuple(passed.get((kernel.name, parameter.name), ()))
        if len(places) != 1 or places[0] is None or places[0].pool is None:
            return parameter
        return replace(parameter, scope=ir.join_scopes(parameter.scope, places[0]))

    parameters = tuple(map(told, kernel.parameters))
    return kernel if parameters == kernel.parameters else replace(kernel, parameters=parameters)
