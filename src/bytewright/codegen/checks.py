"""The checks of `<model>.c`: workspaces at set time, tensors at run time."""

from __future__ import annotations

from collections.abc import Sequence

from bytewright.codegen.expressions import memory_type
from bytewright.codegen.interface import Interface, PoolInterface
from bytewright.codegen.overlaps import (
    SpanTable,
    parameter_table,
    run_table,
    workspace_table,
    write_span_type,
    write_table,
)
from bytewright.codegen.writer import Writer


def write_helpers(writer: Writer, interface: Interface) -> None:
    """Functions that the checks call."""
    if _compares_addresses(interface):
        writer.line(f"#if {interface.prefix}_CHECK_RANGE")
        writer.comment("Whether a memory of one byte or more lies within [first, last].")
        head = "static bool lies_within(const void *base, size_t size_bytes, uintptr_t first, uintptr_t last)"
        with writer.block(head):
            writer.line("const uintptr_t begin = (uintptr_t)base;")
            writer.line(
                "return (begin >= first) && (begin <= last) && ((size_bytes - 1u) <= (last - begin));"
            )
        writer.line("#endif")
        writer.line()
    if looks_for_overlaps(interface):
        _write_share_bytes(writer, interface)
        for table in tables(interface):
            if table.has_pairs:
                write_table(writer, interface, table)


def _write_share_bytes(writer: Writer, interface: Interface) -> None:
    """Addresses are compared as they are, or, where the target has aliases, as the memory's base has them."""
    if interface.aliases:
        writer.comment("The address of the same byte through the memory's base, which an alias stands for.")
        with writer.block("static uintptr_t first_address(const void *memory)"):
            writer.line(f"#if {interface.prefix}_CHECK_RANGE")
            for alias in interface.aliases:
                inside = f"lies_within(memory, 1u, 0x{alias.first:08X}u, 0x{alias.last:08X}u)"
                with writer.block(f"if ({inside})"):
                    writer.line(f"return (uintptr_t)memory - 0x{alias.first:08X}u + 0x{alias.base:08X}u;")
            writer.line("#endif")
            writer.line("return (uintptr_t)memory;")
        writer.line()
    write_span_type(writer)
    writer.comment("Whether a memory runs over the end of the address space.")
    with writer.block("static bool wraps(memory_span memory)"):
        writer.line("return (memory.size_bytes - 1u) > (UINTPTR_MAX - (uintptr_t)memory.address);")
    writer.line()
    writer.comment("Whether two memories share a byte.")
    address_of = "first_address({})" if interface.aliases else "(uintptr_t){}"
    with writer.block("static bool share_bytes(memory_span first, memory_span second)"):
        writer.line(f"const uintptr_t a = {address_of.format('first.address')};")
        writer.line(f"const uintptr_t b = {address_of.format('second.address')};")
        writer.line()
        with writer.block("if (second.address == NULL)"):
            writer.line("return false;")
        writer.line("return (a < b) ? ((b - a) < first.size_bytes) : ((a - b) < second.size_bytes);")
    writer.line()


def needs_bool(interface: Interface) -> bool:
    """Whether a function of the checks gives a truth value."""
    return looks_for_overlaps(interface) or _compares_addresses(interface)


def write_range_switch(writer: Writer, interface: Interface) -> None:
    """The macro that turns address checks off, where there are any."""
    if _compares_addresses(interface):
        name = f"{interface.prefix}_CHECK_RANGE"
        writer.comment("The target's addresses mean nothing to a 64-bit build, such as a test on the host.")
        writer.line(f"#ifndef {name}")
        writer.line(f"#define {name} (UINTPTR_MAX <= 0xFFFFFFFFu)")
        writer.line("#endif")
        writer.line()


def _compares_addresses(interface: Interface) -> bool:
    """Whether a check knows addresses of the target: those of what is lent, or aliases."""
    lent = (*interface.caller_workspaces, *interface.caller_parameters)
    has_ranges = any(pool.used_bytes > 0 and bool(pool.ranges) for pool in lent)
    return has_ranges or (bool(interface.aliases) and looks_for_overlaps(interface))


def looks_for_overlaps(interface: Interface) -> bool:
    """Whether a function is given memory that could meet other memory."""
    return any(table.has_pairs for table in tables(interface))


def tables(interface: Interface) -> tuple[SpanTable, ...]:
    """The tables of the functions that are given memory."""
    found: list[SpanTable] = []
    if interface.caller_workspaces:
        found.append(workspace_table(interface))
    if interface.caller_parameters:
        found.append(parameter_table(interface))
    if not interface.io_in_workspace:
        found.append(run_table(interface))
    return tuple(found)


def write_overlap_check(writer: Writer, interface: Interface, table: SpanTable) -> None:
    """The call of a table's check, and the end of the function if it fails."""
    if table.has_pairs:
        writer.line(f"const int32_t shared = {table.call};")
        write_refusal(writer, f"shared != {interface.prefix}_OK", "shared")


def write_set_workspaces(writer: Writer, interface: Interface) -> None:
    """`<model>_set_workspaces`."""
    model, prefix = interface.model, interface.prefix
    pools = interface.caller_workspaces
    used = [pool for pool in pools if pool.used_bytes]
    head = f"int32_t {model}_set_workspaces({model}_context *context, const {model}_workspaces *workspaces)"
    with writer.block(head):
        write_refusal(writer, "(context == NULL) || (workspaces == NULL)", f"{prefix}_ERROR_NULL")
        for pool in used:
            write_memory_checks(writer, interface, pool, f"workspaces->{pool.identifier}")
        write_overlap_check(writer, interface, workspace_table(interface))
        for pool in pools:
            writer.line(f"context->{pool.identifier} = (uint8_t *)workspaces->{pool.identifier}.base;")
        writer.line(f"return {prefix}_OK;")
    writer.line()


def write_memory_checks(writer: Writer, interface: Interface, pool: PoolInterface, member: str) -> None:
    """What a `<model>_memory` that the application lends to a pool must be, each with its own error."""
    prefix = interface.prefix
    size, alignment = interface.macro(pool, "SIZE"), interface.macro(pool, "ALIGN")
    write_refusal(writer, f"{member}.base == NULL", f"{prefix}_ERROR_NULL")
    write_refusal(writer, f"{member}.size_bytes < (size_t){size}", f"{prefix}_ERROR_SIZE")
    write_refusal(
        writer, f"((uintptr_t){member}.base % (uintptr_t){alignment}) != 0u", f"{prefix}_ERROR_ALIGN"
    )
    write_range_check(writer, interface, pool, f"{member}.base")


def write_range_check(writer: Writer, interface: Interface, pool: PoolInterface, address: str) -> None:
    """The pool's bytes from this address on lie in its memory, through its base or an alias."""
    if not pool.ranges or not pool.used_bytes:
        return
    size = interface.macro(pool, "SIZE")
    outside = " && ".join(
        f"!lies_within({address}, {size}, 0x{first:08X}u, 0x{end - 1:08X}u)" for first, end in pool.ranges
    )
    writer.line(f"#if {interface.prefix}_CHECK_RANGE")
    write_refusal(writer, outside, f"{interface.prefix}_ERROR_RANGE")
    writer.line("#endif")


def write_run_checks(writer: Writer, interface: Interface) -> None:
    """What `<model>_run` checks before it computes anything."""
    prefix = interface.prefix
    for symbol in interface.symbols:
        outside = f"({symbol.name} < {symbol.lower}) || ({symbol.name} > {interface.bound_macro(symbol)})"
        write_refusal(writer, outside, f"{prefix}_ERROR_EXTENT")
    pointers = ("context",) if interface.io_in_workspace else ("context", "inputs", "outputs")
    write_refusal(writer, any_is_null(pointers), f"{prefix}_ERROR_NULL")
    used = [*interface.caller_workspaces, *interface.set_parameters]
    for pool in used:
        if pool.used_bytes:
            write_refusal(writer, f"context->{pool.identifier} == NULL", f"{prefix}_ERROR_NOT_SET")
    if interface.io_in_workspace:
        return
    tensors = [
        *(("inputs", port) for port in interface.inputs),
        *(("outputs", port) for port in interface.outputs),
    ]
    strict = {(f"{border.value}s", name): alignment for border, name, alignment in interface.strict_ports}
    for kind, port in tensors:
        write_refusal(writer, f"{kind}->{port.name} == NULL", f"{prefix}_ERROR_NULL")
        natural = f"sizeof({memory_type(port.type.dtype)})" if port.type.dtype.size_bytes > 1 else None
        alignment = strict.get((kind, port.name), natural)
        if alignment is not None:
            misaligned = f"((uintptr_t){kind}->{port.name} % (uintptr_t){alignment}) != 0u"
            write_refusal(writer, misaligned, f"{prefix}_ERROR_ALIGN")
    write_overlap_check(writer, interface, run_table(interface))


def any_is_null(pointers: Sequence[str]) -> str:
    """The condition that a pointer is NULL."""
    if len(pointers) == 1:
        return f"{pointers[0]} == NULL"
    return " || ".join(f"({name} == NULL)" for name in pointers)


def write_refusal(writer: Writer, condition: str, error: str) -> None:
    """Returns an error if a condition holds."""
    with writer.block(f"if ({condition})"):
        writer.line(f"return {error};")
