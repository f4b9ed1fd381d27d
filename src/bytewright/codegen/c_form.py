"""The form of a kernel that prints as C line by line.

Unrolled loops are copies of their bodies, and a buffer has no axes only where it is a variable of the function: what is
reached through a pointer, or has its address taken, is an array of one element.
"""

from __future__ import annotations

from dataclasses import replace

from bytewright.ir.expr import Buffer, Expr, Load, const
from bytewright.ir.prim import BufferParameter, PrimFunc, Statement, Store, View
from bytewright.ir.rewrite import Rewriting, expand_unrolled, rewrite_sequence
from bytewright.ir.walk import regions, walk_statements


def c_form(kernel: PrimFunc) -> PrimFunc:
    """The kernel in this form."""
    unrolled = replace(kernel, body=expand_unrolled(kernel.body, _parameter_names(kernel)))
    scalars = _scalars_in_memory(unrolled)
    return _with_an_axis(unrolled, scalars) if scalars else unrolled


def _parameter_names(kernel: PrimFunc) -> list[str]:
    return [p.buffer.name if isinstance(p, BufferParameter) else p.variable.name for p in kernel.parameters]


def _scalars_in_memory(kernel: PrimFunc) -> dict[Buffer, Buffer]:
    """Buffers without axes that are no variables, each with what it becomes."""
    found = [parameter.buffer for parameter in kernel.buffer_parameters]
    for statement in walk_statements(kernel.body):
        found += [region.buffer for region in regions(statement)]
        if isinstance(statement, View):
            found.append(statement.buffer)
    return {buffer: replace(buffer, shape=(1,), rows=None) for buffer in found if not buffer.shape}


def _with_an_axis(kernel: PrimFunc, arrays: dict[Buffer, Buffer]) -> PrimFunc:
    changed = set(arrays.values())

    def expression(node: Expr) -> Expr:
        if isinstance(node, Load) and not node.indices and node.buffer in changed:
            return Load(node.buffer, (const(0),))
        return node

    def statement(node: Statement) -> tuple[Statement, ...]:
        if isinstance(node, Store) and not node.indices and node.buffer in changed:
            return (Store(node.buffer, (const(0),), node.value),)
        return (node,)

    rewriting = Rewriting(expression, lambda buffer: arrays.get(buffer, buffer), statement)
    parameters = tuple(
        replace(parameter, buffer=rewriting.buffer(parameter.buffer))
        if isinstance(parameter, BufferParameter)
        else parameter
        for parameter in kernel.parameters
    )
    return replace(kernel, parameters=parameters, body=rewrite_sequence(kernel.body, rewriting))
