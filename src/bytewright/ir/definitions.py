"""Where buffers are defined, and the one way to replace what is decided of them.

A buffer is defined once, as a parameter, by an allocation or as a constant, and named wherever it is used. What a pass
decides of it, it decides there (`Storage.narrowed`).
"""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from bytewright.ir.module import ConstantBuffer, Module
from bytewright.ir.prim import Allocate, PrimFunc, Statement, View
from bytewright.ir.rewrite import Rewriting, rewrite_sequence, with_body
from bytewright.ir.scope import Scope
from bytewright.ir.storage import Storage
from bytewright.ir.walk import statements_of

Definition = Allocate | ConstantBuffer
_Kind = TypeVar("_Kind", bound=Definition)
# The scopes of what is defined at a point of a function, by name; inner blocks have a map of their own.
Scopes = ChainMap[str, Scope | None]


def scopes_of_constants(module: Module) -> dict[str, Scope | None]:
    """The scopes of a module's constants, by name."""
    return {constant.buffer.name: constant.scope for constant in module.constant_buffers}


def given_scopes(function: PrimFunc, constants: dict[str, Scope | None]) -> Scopes:
    """The scopes of a function's parameters, which may have names of constants, and of all other constants."""
    given = {parameter.buffer.name: parameter.scope for parameter in function.buffer_parameters}
    return ChainMap(given, constants)


def define_scope(scopes: Scopes, statement: Statement) -> None:
    """Adds the scope of what the statement itself defines: a view is where its source is."""
    if isinstance(statement, Allocate):
        scopes[statement.buffer.name] = statement.scope
    elif isinstance(statement, View):
        scopes[statement.buffer.name] = scopes.get(statement.source.buffer.name)


def buffer_scopes(function: PrimFunc, constants: dict[str, Scope | None]) -> Scopes:
    """The scopes of all that a function may name."""
    scopes = given_scopes(function, constants)
    for statement in statements_of(function):
        define_scope(scopes, statement)
    return scopes


def redefined(function: PrimFunc, storages: Mapping[str, Storage]) -> PrimFunc:
    """The function whose allocations of these names have these records."""

    def define(statement: Statement) -> tuple[Statement, ...]:
        return (_decided(statement, storages) if isinstance(statement, Allocate) else statement,)

    return with_body(function, rewrite_sequence(function.body, Rewriting(statement=define)))


def redefined_constants(module: Module, storages: Mapping[str, Storage]) -> tuple[ConstantBuffer, ...]:
    """The module's constants, those of these names with these records."""
    return tuple(_decided(constant, storages) for constant in module.constant_buffers)


def _decided(definition: _Kind, storages: Mapping[str, Storage]) -> _Kind:
    storage = storages.get(definition.buffer.name)
    if storage is None or storage == definition.storage:
        return definition
    return replace(definition, storage=storage)
