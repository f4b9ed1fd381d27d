"""Where buffers are defined, and the one way to put another definition in the place of one.

A buffer is defined once, by an allocation or as a constant, and named wherever it is used. What a pass decides of it
it decides there: uses, and views of it, follow.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from bytewright.diagnostics import InternalError
from bytewright.ir.expr import Buffer
from bytewright.ir.module import ConstantBuffer
from bytewright.ir.prim import Allocate, PrimFunc, Statement, View
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import Scope, is_within
from bytewright.ir.storage import Storage
from bytewright.ir.walk import walk_statements

Definition = Allocate | ConstantBuffer
_Kind = TypeVar("_Kind", bound=Definition)


def decided(definition: _Kind, scope: Scope | None, storage: Storage) -> _Kind:
    """The definition with what a pass decided of it.

    Raises:
        InternalError: The scope would have a place that it has ruled out.
    """
    buffer = definition.buffer
    if not is_within(scope, buffer.scope):
        raise InternalError(
            f"'{buffer.name}' of scope '{buffer.scope}' cannot get '{scope}': a pass may only narrow"
        )
    return replace(definition, buffer=replace(buffer, scope=scope), storage=storage)


def redefined(function: PrimFunc, definitions: Mapping[str, Definition]) -> PrimFunc:
    """The function with these definitions in the place of its own, and of constants, of the same names."""
    parameters = {parameter.buffer.name for parameter in function.buffer_parameters}
    buffers = {name: d.buffer for name, d in definitions.items() if name not in parameters}
    for statement in walk_statements(function.body):
        if isinstance(statement, View) and statement.source.buffer.name in buffers:
            scope = buffers[statement.source.buffer.name].scope
            buffers[statement.buffer.name] = replace(statement.buffer, scope=scope)

    def follow(buffer: Buffer) -> Buffer:
        return buffers.get(buffer.name, buffer)

    def define(statement: Statement) -> tuple[Statement, ...]:
        known = definitions.get(statement.buffer.name) if isinstance(statement, Allocate) else None
        return (known if isinstance(known, Allocate) else statement,)

    return replace(function, body=rewrite_sequence(function.body, Rewriting(buffer=follow, statement=define)))
