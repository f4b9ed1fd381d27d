"""Constants that kernels name become parameters, which the entry passes: a kernel has no address but what it is given.

A kernel that calls another one passes on what that one names. Callees stand before their callers, so one round over the
kernels is enough. The parameter keeps the constant's name, and every place that the constant may go to.
"""

from collections.abc import Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.walk import free_buffers

# The constants that each kernel has become a parameter for.
Named = Mapping[str, tuple[ir.Buffer, ...]]


def pass_constants(module: ir.Module) -> ir.Module:
    """Returns the module in which no kernel names a constant that it is not given."""
    scope_of = {constant.buffer: constant.scope for constant in module.constant_buffers}
    named: dict[str, tuple[ir.Buffer, ...]] = {}
    kernels: list[ir.PrimFunc] = []
    for kernel in module.kernels:
        body = _with_arguments(kernel.body, named)
        given = {parameter.buffer for parameter in kernel.buffer_parameters}
        found = tuple(buffer for buffer in free_buffers(body) if buffer in scope_of and buffer not in given)
        parameters = tuple(
            ir.BufferParameter(buffer, ir.Access.READ, ir.ParameterRole.PARAMETER, scope_of[buffer])
            for buffer in found
        )
        kernels.append(replace(kernel, parameters=(*kernel.parameters, *parameters), body=body))
        if found:
            named[kernel.name] = found
    if not named:
        return module
    entries = tuple(replace(entry, body=_with_arguments(entry.body, named)) for entry in module.entries)
    return replace(module, kernels=tuple(kernels), entries=entries)


def _with_arguments(body: ir.Seq, named: Named) -> ir.Seq:
    def expand(statement: ir.Statement) -> tuple[ir.Statement, ...]:
        if not isinstance(statement, ir.Call) or statement.callee not in named:
            return (statement,)
        passed = tuple(ir.Region(buffer) for buffer in named[statement.callee])
        return (replace(statement, arguments=(*statement.arguments, *passed)),)

    return rewrite_sequence(body, Rewriting(statement=expand)) if named else body
