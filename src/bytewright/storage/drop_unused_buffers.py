"""Drops what no run uses: kernels that nothing calls, allocations that nothing reads, constants that nobody is given.

First of the passes that decide where things go, so that none of them meets a buffer without a use: it has no lifetime,
no device touches it, and a byte for it would be lost.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.drop_unused import drop_unused
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import allocations, calls, regions, statements_of, walk_all_expressions
from bytewright.storage.keep_initial import initial_constants


def drop_unused_buffers(module: ir.Module) -> ir.Module:
    """Returns the module without kernels, allocations, names and constants that have no effect on a run."""
    entries = tuple(_without_unused(entry) for entry in module.entries)
    called = {call.callee for entry in entries for call in calls(entry)}
    kernels: list[ir.PrimFunc] = []
    for kernel in reversed(module.kernels):  # callers stand behind their callees
        if kernel.name in called:
            kept = kernel  # of the application's functions, the body is the scratch that they are given
            if kernel.external is None:
                kept = replace(kernel, body=drop_unused(kernel.body))
            called.update(call.callee for call in calls(kept))
            kernels.append(kept)
    named = {
        region.buffer.name
        for function in (*entries, *kernels)
        for statement in statements_of(function)
        for region in regions(statement)
    }
    named |= initial_constants(module)
    constants = tuple(constant for constant in module.constant_buffers if constant.buffer.name in named)
    smaller = replace(module, entries=entries, kernels=tuple(reversed(kernels)), constant_buffers=constants)
    return module if smaller == module else smaller


def _without_unused(entry: ir.PrimFunc) -> ir.PrimFunc:
    """Calls may have effects that the module does not show, so of the entry only allocations and names go."""
    used = {region.buffer for statement in statements_of(entry) for region in regions(statement)}
    arenas = {a.storage.arena for a in allocations(entry) if a.buffer in used}
    variables = {node for node in walk_all_expressions(entry.body) if isinstance(node, ir.Var)}

    def keep(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        match statement:
            case ir.Allocate(buffer=buffer):
                is_used = buffer in used or buffer.name in arenas or statement.storage.border is not None
            case ir.Let(variable=variable):
                is_used = variable in variables
            case _:
                is_used = True
        return (statement,) if is_used else ()

    smaller = replace(entry, body=rewrite_sequence(entry.body, Rewriting(statement=keep)))
    return entry if smaller == entry else _without_unused(smaller)
