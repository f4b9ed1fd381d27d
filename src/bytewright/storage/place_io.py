"""Moves the model's inputs and outputs into the workspace, where the user wants them there.

The entry's parameters become allocations marked `io`, which the clock keeps alive beyond the calls that touch them:
the application writes inputs before the first step and reads outputs after the last. From here on they are buffers
like any other, so they can be pinned, are planned with the rest, and share bytes where lifetimes permit.
"""

from __future__ import annotations

from dataclasses import replace

from bytewright.ir.border import border_of
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Allocate, BufferParameter, PrimFunc, Seq
from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.scope import WORKSPACE, join_scopes
from bytewright.ir.storage import UNDECIDED

IO_ALIGNMENT = 16


def place_io(module: Module) -> Module:
    """Returns the module whose entry allocates the model's inputs and outputs, in the model's order."""
    return replace(module, entries=tuple(_allocate_border(entry) for entry in module.entries))


def _allocate_border(entry: PrimFunc) -> PrimFunc:
    moved = {parameter.buffer: _in_workspace(parameter.buffer) for parameter in entry.buffer_parameters}
    renamed = substitute_in_function(entry, moved)
    allocations = tuple(_allocation(parameter) for parameter in renamed.buffer_parameters)
    others = tuple(p for p in renamed.parameters if not isinstance(p, BufferParameter))
    return replace(renamed, parameters=others, body=Seq((*allocations, *renamed.body.statements)))


def _in_workspace(buffer: Buffer) -> Buffer:
    scope = join_scopes(WORKSPACE, buffer.scope)
    return replace(buffer, scope=scope, alignment=max(IO_ALIGNMENT, buffer.alignment))


def _allocation(parameter: BufferParameter) -> Allocate:
    border = border_of(parameter)
    assert border is not None, "a parameter of the entry is an input or an output"
    reason = f"place_io: {parameter.buffer.scope}, because inputs and outputs are wanted in the workspace"
    return Allocate(parameter.buffer, UNDECIDED.narrowed(reason, border=border))
