"""Moves the model's inputs and outputs into the workspace, where the user wants them there.

The entry's parameters become allocations marked `io`, which the clock keeps alive beyond the calls that touch them:
the application writes inputs before the first step and reads outputs after the last. From here on they are buffers
like any other, so they can be pinned, are planned with the rest, and share bytes where lifetimes permit.
"""

from dataclasses import replace

from bytewright import ir
from bytewright.ir.rewrite import substitute_in_function

IO_ALIGNMENT = 16


def place_io(module: ir.Module) -> ir.Module:
    """Returns the module whose entry allocates the model's inputs and outputs, in the model's order."""
    return replace(module, entries=tuple(_allocate_border(entry) for entry in module.entries))


def _allocate_border(entry: ir.PrimFunc) -> ir.PrimFunc:
    moved = {parameter.buffer: _aligned(parameter.buffer) for parameter in entry.buffer_parameters}
    renamed = substitute_in_function(entry, moved)
    allocations = tuple(_allocation(parameter) for parameter in renamed.buffer_parameters)
    others = tuple(p for p in renamed.parameters if not isinstance(p, ir.BufferParameter))
    return replace(renamed, parameters=others, body=ir.Seq((*allocations, *renamed.body.statements)))


def _aligned(buffer: ir.Buffer) -> ir.Buffer:
    return replace(buffer, alignment=max(IO_ALIGNMENT, buffer.alignment))


def _allocation(parameter: ir.BufferParameter) -> ir.Allocate:
    border = ir.border_of(parameter)
    assert border is not None, "a parameter of the entry is an input or an output"
    scope = ir.join_scopes(ir.WORKSPACE, parameter.scope)
    reason = f"place_io: {scope}, because inputs and outputs are wanted in the workspace"
    return ir.Allocate(parameter.buffer, ir.UNDECIDED.narrowed(reason, scope=scope, border=border))
