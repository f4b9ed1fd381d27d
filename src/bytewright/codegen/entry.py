"""`<model>.c`: offsets, checks, and the entry, which calls the kernels in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from bytewright.codegen.arena import (
    describe_requests,
    requests_of,
    write_arena_helpers,
    write_arena_resets,
    write_requests,
)
from bytewright.codegen.checks import (
    write_helpers,
    write_range_switch,
    write_run_checks,
    write_set_workspaces,
)
from bytewright.codegen.expressions import c_value, memory_type
from bytewright.codegen.header import address_head
from bytewright.codegen.includes import needs_math_header
from bytewright.codegen.interface import Interface, PoolInterface, planned_offsets, request_name
from bytewright.codegen.parameters import array_declaration
from bytewright.codegen.set_parameters import write_set_parameters
from bytewright.codegen.writer import Writer
from bytewright.diagnostics import InternalError
from bytewright.ir.border import Border, border_buffers, border_ports
from bytewright.ir.expr import Buffer, Expr
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, Allocate, BufferParameter, Call, CallKind, PrimFunc, Region, Role, Seq
from bytewright.ir.types import format_shape

INT_MAX = (1 << 31) - 1


def entry_source(module: Module, interface: Interface) -> str:
    """The file."""
    writer = Writer()
    writer.comment(f"Entry of model '{module.name}'. Every buffer lies where the plan put it.")
    writer.line(f'#include "{module.name}.h"')
    writer.line()
    headers = {"math.h": needs_math_header(module.entries), "string.h": bool(interface.set_parameters)}
    for header in (header for header, is_needed in headers.items() if is_needed):
        writer.line(f"#include <{header}>")
    if any(headers.values()):
        writer.line()
    writer.line(f'#include "{module.name}_kernels.h"')
    writer.line()
    _write_offsets(writer, module, interface)
    write_range_switch(writer, interface)
    _write_step_macro(writer, module, interface)
    for pool in (*interface.workspaces, *interface.own_copies):
        if not pool.is_caller and pool.used_bytes:
            writer.lines(f"{array_declaration(interface, pool)};")
            writer.line()
    write_helpers(writer, interface)
    write_arena_helpers(writer, interface)
    if interface.caller_workspaces:
        write_set_workspaces(writer, interface)
    write_set_parameters(writer, interface)
    if interface.io_in_workspace:
        _write_address_functions(writer, module, interface)
    _write_run(writer, module, interface)
    return writer.text()


def _write_offsets(writer: Writer, module: Module, interface: Interface) -> None:
    placed = planned_offsets(module)
    if not placed:
        return
    writer.comment(f"Offsets in the pools, in bytes. Plan {interface.plan_hash}.")
    small = [(buffer, offset) for buffer, offset in placed if offset <= INT_MAX]
    with writer.block("enum", "};") if small else nullcontext():
        for index, (buffer, offset) in enumerate(small):
            comma = "," if index + 1 < len(small) else ""
            writer.line(f"{interface.offset_macro(buffer)} = {offset}{comma} /* {_described(buffer)} */")
    for buffer, offset in placed:
        if offset > INT_MAX:  # no enumerator of C99
            writer.line(f"#define {interface.offset_macro(buffer)} {offset} /* {_described(buffer)} */")
    writer.line()


def _described(buffer: Buffer) -> str:
    return f"{buffer.dtype.value}[{format_shape(buffer.shape)}]"


def _used_pools(
    module: Module, interface: Interface
) -> tuple[tuple[PoolInterface, ...], tuple[PoolInterface, ...]]:
    """Workspaces and parameter pools that hold a byte."""
    used = {buffer.scope.pool for buffer, _ in planned_offsets(module) if buffer.scope is not None}
    workspaces, parameters = (
        tuple(pool for pool in pools if pool.pool.name in used and pool.used_bytes)
        for pools in (interface.workspaces, interface.parameters)
    )
    return workspaces, parameters


def _write_step_macro(writer: Writer, module: Module, interface: Interface) -> None:
    """The macro between the kernels: a place for what must happen there, which the calls leave none for."""
    if not _used_pools(module, interface)[0]:
        return
    name = f"{interface.prefix}_STEP"
    writer.comment(
        "Stands before each kernel and after the last, with the step's number and the workspaces: define it to "
        "measure, to feed a watchdog, or to watch memory."
    )
    writer.line(f"#ifndef {name}")
    writer.line(f"#define {name}(...) ((void)0)")
    writer.line("#endif")
    writer.line()


def _write_run(writer: Writer, module: Module, interface: Interface) -> None:
    ports = {} if interface.io_in_workspace else _ports(module)
    with writer.block(interface.run_head()):
        write_run_checks(writer, interface)
        workspaces, parameters = _used_pools(module, interface)
        for pool in (*workspaces, *parameters):
            constness = "const " if pool in parameters else ""
            source = f"context->{pool.identifier}" if pool.is_set else interface.array_name(pool)
            writer.line(f"{constness}uint8_t *const {interface.base_name(pool)} = {source};")
        kernels = {kernel.name: kernel for kernel in module.kernels}
        write_arena_resets(writer, interface)
        names = _Names(interface, ports, kernels)
        calls = list(_calls(module.main.body))
        step = f"{interface.prefix}_STEP"
        watched = [interface.base_name(pool) for pool in workspaces]
        for index, call in enumerate(calls):
            if watched:
                writer.listed(step, [str(index), *watched], ";")
            _write_step(writer, call, names)
        if watched:
            writer.listed(step, [str(len(calls)), *watched], ";")
        writer.line(f"return {interface.prefix}_OK;")


class _Names:
    """How the entry spells a buffer: a member of inputs or outputs, or base plus offset."""

    def __init__(self, interface: Interface, ports: dict[str, str], kernels: dict[str, PrimFunc]) -> None:
        self.interface = interface
        self.ports = ports
        self.kernels = kernels
        self.offsets = dict(interface.offsets)
        self.arena_of = interface.arena_of

    def address(self, buffer: Buffer, is_read_only: bool) -> str:
        """The address of a buffer, typed."""
        if buffer.name in self.ports:
            return self.ports[buffer.name]
        if buffer.name in self.arena_of:
            return f"({memory_type(buffer.dtype)} *){request_name(buffer.name)}"
        return self.address_from(
            self.interface.base_name(self.interface.pool_of(buffer)), buffer, is_read_only
        )

    def address_from(self, base: str, buffer: Buffer, is_read_only: bool) -> str:
        """The address of a buffer in a pool, typed, from the expression for the pool's base."""
        macro = self.interface.offset_macro(buffer)
        constness = "const " if is_read_only else ""
        through = f"({constness}void *)" if buffer.dtype.size_bytes > 1 else ""
        return f"({constness}{memory_type(buffer.dtype)} *){through}({base} + {macro})"

    def place(self, buffer: Buffer) -> str:
        """`@dtcm+8000` or `@caller`, for comments."""
        if buffer.name in self.ports:
            return "@caller"
        pool = buffer.scope.pool if buffer.scope is not None else None
        return f"@{pool}+{self.offsets[self.interface.offset_macro(buffer)]}"


def _ports(module: Module) -> dict[str, str]:
    """The C expression for each parameter of the entry."""
    return {name: f"{border.value}s->{port.name}" for name, (border, port) in border_ports(module).items()}


def _write_address_functions(writer: Writer, module: Module, interface: Interface) -> None:
    """The functions that return where inputs and outputs lie in the workspace."""
    ports = border_ports(module)
    names = _Names(interface, {}, {})
    for border in Border:
        for buffer in border_buffers(module.main, border):
            _, port = ports[buffer.name]
            pool = interface.pool_of(buffer)
            is_read_only = border is Border.OUTPUT
            with writer.block(address_head(interface, border, port)):
                with writer.block(f"if ({_is_unset(pool)})"):
                    writer.line("return NULL;")
                base = f"context->{pool.identifier}" if pool.is_caller else interface.array_name(pool)
                writer.line(f"return {names.address_from(base, buffer, is_read_only)};")
            writer.line()


def _is_unset(pool: PoolInterface) -> str:
    return f"context == NULL || context->{pool.identifier} == NULL" if pool.is_caller else "context == NULL"


def _calls(sequence: Seq) -> Iterator[Call]:
    """The kernel calls of the entry, in order."""
    for statement in sequence.statements:
        match statement:
            case Seq():
                yield from _calls(statement)
            case Allocate():
                pass  # planned: the enum above has its offset; or requested around its call
            case Call():
                yield statement
            case _:
                raise InternalError(f"the entry holds a statement without C text: {type(statement).__name__}")


def _write_step(writer: Writer, call: Call, names: _Names) -> None:
    requests = requests_of(call, names.arena_of)
    described = _describe(call, names.kernels[call.callee], names)
    writer.comment(f"{described}{describe_requests(requests)}")
    if requests:
        write_requests(writer, names.interface, requests, lambda: _write_call(writer, call, names))
    else:
        _write_call(writer, call, names)


def _write_call(writer: Writer, call: Call, names: _Names) -> None:
    if call.kind is not CallKind.EXTERN:
        raise InternalError(f"calls of kind '{call.kind.value}' have no C text yet")
    kernel = names.kernels[call.callee]
    arguments = [
        _argument(argument, parameter.access is Access.READ, names)
        if isinstance(parameter, BufferParameter)
        else _argument(argument, True, names)
        for argument, parameter in zip(call.arguments, kernel.parameters, strict=True)
    ]
    writer.listed(call.callee, arguments, ";")


def _argument(argument: Region | Expr, is_read_only: bool, names: _Names) -> str:
    if isinstance(argument, Expr):
        return c_value(argument)
    if argument.indices:
        raise InternalError(f"a region inside '{argument.buffer.name}' is passed, which has no C text yet")
    return names.address(argument.buffer, is_read_only)


def _describe(call: Call, kernel: PrimFunc, names: _Names) -> str:
    """`3 (CONV_2D): i8[1,25,5,64] @dtcm+8000 -> i8[1,25,5,64] @dtcm+0`."""
    reads: list[str] = []
    writes: list[str] = []
    for argument, parameter in zip(call.arguments, kernel.parameters, strict=True):
        if not isinstance(argument, Region) or not isinstance(parameter, BufferParameter):
            continue
        if parameter.role is not Role.ACTIVATION:
            continue
        buffer = argument.buffer
        shape = format_shape(parameter.buffer.shape).replace("x", ",")
        text = f"{buffer.dtype.value}[{shape}] {names.place(buffer)}"
        (reads if parameter.access is Access.READ else writes).append(text)
    operators = " + ".join(call.operators) or call.callee
    return f"{operators}: {', '.join(reads)} -> {', '.join(writes)}"
