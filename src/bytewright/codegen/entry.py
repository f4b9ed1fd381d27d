"""`<model>.c`: offsets, checks, and the entry, which calls the kernels in order."""

from __future__ import annotations

from contextlib import nullcontext

from bytewright.codegen.arena import write_arena_helpers, write_arena_resets
from bytewright.codegen.checks import (
    needs_bool,
    write_helpers,
    write_range_switch,
    write_run_checks,
    write_set_workspaces,
)
from bytewright.codegen.header import address_head
from bytewright.codegen.includes import needs_math_header
from bytewright.codegen.interface import Interface, PoolInterface, planned_offsets
from bytewright.codegen.kernels import write_operator_functions
from bytewright.codegen.parameters import array_declaration
from bytewright.codegen.set_parameters import write_set_parameters
from bytewright.codegen.steps import MAX_NAMED, PlannedBuffers, StepWriter, all_workspaces, port_expressions
from bytewright.codegen.writer import Writer
from bytewright.ir.border import Border, border_buffers, border_ports
from bytewright.ir.expr import Buffer
from bytewright.ir.module import Module
from bytewright.ir.prim import Access, Statement
from bytewright.ir.types import format_shape
from bytewright.ir.walk import regions, walk_statements

INT_MAX = (1 << 31) - 1


def entry_source(module: Module, interface: Interface) -> str:
    """The file."""
    writer = Writer()
    writer.title(f"Entry of model '{module.name}'. Every buffer lies where the plan put it.")
    writer.line(f'#include "{module.name}.h"')
    writer.line()
    _write_byte_order(writer)
    headers = {
        "math.h": needs_math_header(module.entries),
        "stdbool.h": needs_bool(interface),
        "string.h": bool(interface.set_parameters),
    }
    for header in (header for header, is_needed in headers.items() if is_needed):
        writer.line(f"#include <{header}>")
    if any(headers.values()):
        writer.line()
    writer.line(f'#include "{module.name}_kernels.h"')
    writer.line()
    _write_offsets(writer, module, interface)
    write_operator_functions(writer, module.entries)
    write_range_switch(writer, interface)
    _write_step_macro(writer, module, interface)
    for pool in (*interface.workspaces, *interface.own_copies):
        if not pool.is_caller:
            size = interface.macro(pool, "SIZE")
            writer.line(
                f"extern uint8_t {interface.array_name(pool)}[{size}]; /* of no header: private, but linked */"
            )
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


def _write_byte_order(writer: Writer) -> None:
    """Parameters are bytes that kernels read as numbers: the machine must have the order that they were written in."""
    big = [
        "defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__",
        *(f"defined({name})" for name in ("__BIG_ENDIAN__", "__BIG_ENDIAN", "_BIG_ENDIAN", "__ARMEB__")),
    ]
    # C libraries of little-endian machines define names of both orders in <endian.h>, which nothing here includes.
    writer.line(f"#if ({big[0]}) || \\")
    writer.line(f"    (!defined(__BYTE_ORDER__) && ({' || '.join(big[1:])}))")
    writer.line(
        '#error "the parameters of this model are in little-endian order, and this machine is big-endian"'
    )
    writer.line("#endif")
    writer.line()


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
    workspaces = [interface.base_name(pool) for pool in _used_pools(module, interface)[0]]
    if not workspaces:
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
    if len(workspaces) > MAX_NAMED:
        writer.comment("All of them, in this order.")
        *others, last = workspaces
        writer.line(f"#define {all_workspaces(interface)} \\")
        with writer.indented():
            for other in others:
                writer.line(f"{other}, \\")
            writer.line(last)
        writer.line()


def _write_run(writer: Writer, module: Module, interface: Interface) -> None:
    ports = {} if interface.io_in_workspace else port_expressions(module)
    with writer.block(interface.run_head()):
        write_run_checks(writer, interface)
        workspaces, parameters = _used_pools(module, interface)
        for pool in (*workspaces, *parameters):
            constness = "const " if pool in parameters else ""
            source = f"context->{pool.identifier}" if pool.is_set else interface.array_name(pool)
            writer.line(f"{constness}uint8_t *const {interface.base_name(pool)} = {source};")
        touched = {pool for call in walk_statements(module.main.body) for pool in _pools_of(call)}
        for pool in workspaces:
            if pool.pool.name not in touched:  # an input that no step reads, say; the macro may have no text
                writer.line(f"(void){interface.base_name(pool)};")
        write_arena_resets(writer, interface)
        watched = [interface.base_name(pool) for pool in workspaces]
        StepWriter(writer, PlannedBuffers(interface, ports), module, watched).entry(module.main)
        writer.line(f"return {interface.prefix}_OK;")


def _pools_of(statement: Statement) -> tuple[str | None, ...]:
    """The pools of what a call is given."""
    return tuple(region.buffer.scope.pool for region in regions(statement) if region.buffer.scope is not None)


def _write_address_functions(writer: Writer, module: Module, interface: Interface) -> None:
    """The functions that return where inputs and outputs lie in the workspace."""
    ports = border_ports(module)
    buffers = PlannedBuffers(interface, {})
    for border in Border:
        for buffer in border_buffers(module.main, border):
            _, port = ports[buffer.name]
            pool = interface.pool_of(buffer)
            access = Access.READ if border is Border.OUTPUT else Access.WRITE
            with writer.block(address_head(interface, border, port)):
                with writer.block(f"if ({_is_unset(pool)})"):
                    writer.line("return NULL;")
                base = f"context->{pool.identifier}" if pool.is_caller else interface.array_name(pool)
                writer.line(f"return {buffers.address_from(base, buffer, access)};")
            writer.line()


def _is_unset(pool: PoolInterface) -> str:
    return f"context == NULL || context->{pool.identifier} == NULL" if pool.is_caller else "context == NULL"
