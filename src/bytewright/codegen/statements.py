"""Statements of kernels as C text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard, assert_never

from bytewright.codegen.expressions import (
    C_TYPES,
    c_element,
    c_element_type,
    c_expression,
    c_stored,
    c_value,
    is_in_memory,
)
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.address import num_elements, region_index
from bytewright.ir.expr import Binary, BinaryOperator, Const, Expr, Load
from bytewright.ir.prim import Allocate, Call, CallKind, For, If, Let, Region, Seq, Statement, Store, View
from bytewright.ir.scope import STACK, Rank

WriteCall = Callable[[Writer, Call], None]


def write_sequence(writer: Writer, sequence: Seq, write_call: WriteCall | None = None) -> None:
    """Writes statements in order.

    Args:
        writer: What to write with.
        sequence: The statements.
        write_call: Writes calls, if it is not as one kernel calls another.
    """
    statements = list(sequence.statements)
    while statements:
        statement = statements.pop(0)
        if statements and _initialises(statement, following := statements[0]):
            statements.pop(0)
            _write_initialised(writer, statement, following)
        else:
            write_statement(writer, statement, write_call)


def _initialises(statement: Statement, following: Statement) -> TypeGuard[Allocate]:
    """Whether a scalar is declared and then given its first value, not computed from itself."""
    return (
        isinstance(statement, Allocate)
        and isinstance(following, Store)
        and following.buffer == statement.buffer
        and not is_in_memory(statement.buffer)
    )


def _write_initialised(writer: Writer, allocation: Allocate, store: Statement) -> None:
    if not isinstance(store, Store):
        raise InternalError("a scalar is initialised by a store")
    buffer = allocation.buffer
    writer.wrapped(f"{c_element_type(buffer)} {buffer.name} = {c_value(store.value)};")


def write_statement(writer: Writer, statement: Statement, write_call: WriteCall | None = None) -> None:
    """Writes one statement; see `write_sequence`."""
    match statement:
        case Seq():
            with writer.block(""):
                write_sequence(writer, statement, write_call)
        case For():
            _write_loop(writer, statement, write_call)
        case Allocate():
            _write_allocation(writer, statement)
        case View():
            _write_view(writer, statement)
        case Store():
            _write_store(writer, statement)
        case If():
            _write_if(writer, statement, write_call)
        case Let():
            variable = statement.variable
            value = c_value(statement.value)
            writer.wrapped(f"const {C_TYPES[variable.dtype]} {variable.name} = {value};")
        case Call():
            (write_call or _write_call)(writer, statement)
        case _:
            assert_never(statement)


def _write_loop(writer: Writer, loop: For, write_call: WriteCall | None) -> None:
    name, begin, end = loop.variable.name, c_expression(loop.begin), c_expression(loop.end)
    c_type = C_TYPES[loop.variable.dtype]
    with writer.block(f"for ({c_type} {name} = {begin}; {name} < {end}; ++{name})"):
        write_sequence(writer, loop.body, write_call)


def _write_allocation(writer: Writer, allocation: Allocate) -> None:
    buffer = allocation.buffer
    if buffer.scope != STACK and (buffer.scope is None or buffer.scope.rank is not Rank.LOCAL):
        raise InternalError(f"storage of '{buffer.name}' ({buffer.scope}) was not decided")
    size = f"[{num_elements(buffer)}]" if is_in_memory(buffer) else ""
    is_strict = size and buffer.alignment > buffer.dtype.size_bytes
    aligned = f" __attribute__((aligned({buffer.alignment})))" if is_strict else ""
    writer.line(f"{c_element_type(buffer)} {buffer.name}{size}{aligned};")


def _write_view(writer: Writer, view: View) -> None:
    source = c_region(view.source)
    if view.condition is not None and view.otherwise is not None:
        source = f"({c_expression(view.condition)}) ? {source} : {c_region(view.otherwise)}"
    writer.wrapped(f"const {c_element_type(view.buffer)} *const {view.buffer.name} = {source};")


def c_region(region: Region) -> str:
    """The address of a region's first element."""
    index = region_index(region)
    if isinstance(index, Const) and index.value == 0:
        return region.buffer.name
    text = c_expression(index)
    return f"{region.buffer.name} + ({text})" if " " in text else f"{region.buffer.name} + {text}"


def _write_store(writer: Writer, store: Store) -> None:
    target = c_element(store.buffer, store.indices)
    increment = _increment(store)
    if increment is not None:
        writer.wrapped(f"{target} += {c_expression(increment)};")
    else:
        writer.wrapped(f"{target} = {c_stored(store.buffer, store.value)};")


def _increment(store: Store) -> Expr | None:
    """x, where the statement is `element = element + x` and C adds without narrowing."""
    value = store.value
    if (
        isinstance(value, Binary)
        and value.operator is BinaryOperator.ADD
        and c_value(value) == c_expression(value)
        and value.left == Load(store.buffer, store.indices)
    ):
        return value.right
    return None


def _write_if(writer: Writer, statement: If, write_call: WriteCall | None) -> None:
    head = f"if ({c_expression(statement.condition)})"
    otherwise = statement.otherwise
    if otherwise is None or not otherwise.statements:
        with writer.block(head):
            write_sequence(writer, statement.then, write_call)
        return
    with writer.block(head, "} else {"):
        write_sequence(writer, statement.then, write_call)
    with writer.indented():
        write_sequence(writer, otherwise, write_call)
    writer.line("}")


def _write_call(writer: Writer, call: Call) -> None:
    if call.kind is not CallKind.EXTERN:
        raise InternalError(f"calls of kind '{call.kind.value}' have no C text yet")
    arguments = [c_region(a) if isinstance(a, Region) else c_value(a) for a in call.arguments]
    writer.listed(call.callee, arguments, ";")
