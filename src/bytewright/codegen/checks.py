"""The checks of `<model>.c`: workspaces at set time, tensors at run time."""

from __future__ import annotations

from math import prod

from bytewright.codegen.expressions import memory_type
from bytewright.codegen.interface import Interface, PoolInterface
from bytewright.codegen.writer import Writer
from bytewright.ir.module import Port
from bytewright.ir.types import Symbol


def write_helpers(writer: Writer, interface: Interface) -> None:
    """Functions that the checks call."""
    if _compares_addresses(interface):
        writer.line(f"#if {interface.prefix}_CHECK_RANGE")
        writer.comment("Whether a memory of one byte or more lies within [first, last].")
        head = "static int lies_within(const void *base, size_t size_bytes, uintptr_t first, uintptr_t last)"
        with writer.block(head):
            writer.line("const uintptr_t begin = (uintptr_t)base;")
            writer.line("return begin >= first && begin <= last && size_bytes - 1 <= last - begin;")
        writer.line("#endif")
        writer.line()
    if _looks_for_overlaps(interface):
        _write_share_bytes(writer, interface)


def _write_share_bytes(writer: Writer, interface: Interface) -> None:
    """Addresses are compared as they are, or, where the target has aliases, as the memory's base has them."""
    if interface.aliases:
        writer.comment("The address of the same byte through the memory's base, which an alias stands for.")
        with writer.block("static uintptr_t first_address(const void *memory)"):
            writer.line(f"#if {interface.prefix}_CHECK_RANGE")
            for alias in interface.aliases:
                inside = f"lies_within(memory, 1, 0x{alias.first:08X}u, 0x{alias.last:08X}u)"
                with writer.block(f"if ({inside})"):
                    writer.line(f"return (uintptr_t)memory - 0x{alias.first:08X}u + 0x{alias.base:08X}u;")
            writer.line("#endif")
            writer.line("return (uintptr_t)memory;")
        writer.line()
    writer.comment("Whether two memories share a byte.")
    head = "static int share_bytes(const void *first, size_t first_bytes, const void *second, size_t second_bytes)"
    address_of = "first_address({})" if interface.aliases else "(uintptr_t){}"
    with writer.block(head):
        writer.line(f"const uintptr_t a = {address_of.format('first')};")
        writer.line(f"const uintptr_t b = {address_of.format('second')};")
        writer.line("return a < b ? b - a < first_bytes : a - b < second_bytes;")
    writer.line()


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
    return has_ranges or (bool(interface.aliases) and _looks_for_overlaps(interface))


def _looks_for_overlaps(interface: Interface) -> bool:
    """Whether two memories meet of which one is written."""
    lent = (*interface.caller_workspaces, *interface.caller_parameters)
    num_lent = len([pool for pool in lent if pool.used_bytes])
    return num_lent > 1 or bool(interface.caller_copies) or not interface.io_in_workspace


def write_set_workspaces(writer: Writer, interface: Interface) -> None:
    """`<model>_set_workspaces`."""
    model, prefix = interface.model, interface.prefix
    pools = interface.caller_workspaces
    used = [pool for pool in pools if pool.used_bytes]
    head = f"int32_t {model}_set_workspaces({model}_context *context, const {model}_workspaces *workspaces)"
    with writer.block(head):
        write_refusal(writer, "context == NULL || workspaces == NULL", f"{prefix}_ERROR_NULL")
        for pool in used:
            write_memory_checks(writer, interface, pool, f"workspaces->{pool.identifier}")
        for index, first in enumerate(used):
            for second in used[index + 1 :]:
                a, b = (f"workspaces->{pool.identifier}" for pool in (first, second))
                shared = f"share_bytes({a}.base, {a}.size_bytes, {b}.base, {b}.size_bytes)"
                write_refusal(writer, shared, f"{prefix}_ERROR_OVERLAP")
        for pool in used:
            member = f"workspaces->{pool.identifier}"
            for other in interface.caller_parameters:
                write_refusal_of_set(writer, interface, other, f"{member}.base, {member}.size_bytes")
        for pool in pools:
            writer.line(f"context->{pool.identifier} = (uint8_t *)workspaces->{pool.identifier}.base;")
        writer.line(f"return {prefix}_OK;")
    writer.line()


def write_memory_checks(writer: Writer, interface: Interface, pool: PoolInterface, member: str) -> None:
    """What a `<model>_memory` that the application lends to a pool must be, each with its own error."""
    prefix = interface.prefix
    size, alignment = interface.macro(pool, "SIZE"), interface.macro(pool, "ALIGN")
    write_refusal(writer, f"{member}.base == NULL", f"{prefix}_ERROR_NULL")
    write_refusal(writer, f"{member}.size_bytes < {size}", f"{prefix}_ERROR_SIZE")
    write_refusal(writer, f"(uintptr_t){member}.base % {alignment} != 0", f"{prefix}_ERROR_ALIGN")
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


def write_refusal_of_set(writer: Writer, interface: Interface, pool: PoolInterface, memory: str) -> None:
    """Refuses memory, as address and size, that meets what the context holds for a pool already.

    Workspaces and parameters are set in any order, so whichever comes second is compared with the first.
    """
    if pool.used_bytes:
        member = f"context->{pool.identifier}"
        shared = f"share_bytes({memory}, {member}, {interface.macro(pool, 'SIZE')})"
        write_refusal(writer, f"{member} != NULL && {shared}", f"{interface.prefix}_ERROR_OVERLAP")


def write_run_checks(writer: Writer, interface: Interface) -> None:
    """What `<model>_run` checks before it computes anything."""
    prefix = interface.prefix
    for symbol in interface.symbols:
        outside = f"{symbol.name} < {symbol.lower} || {symbol.name} > {interface.bound_macro(symbol)}"
        write_refusal(writer, outside, f"{prefix}_ERROR_EXTENT")
    pointers = ("context",) if interface.io_in_workspace else ("context", "inputs", "outputs")
    write_refusal(writer, " || ".join(f"{name} == NULL" for name in pointers), f"{prefix}_ERROR_NULL")
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
    for kind, port in tensors:
        write_refusal(writer, f"{kind}->{port.name} == NULL", f"{prefix}_ERROR_NULL")
        if port.type.dtype.size_bytes > 1:
            misaligned = f"(uintptr_t){kind}->{port.name} % sizeof({memory_type(port.type.dtype)}) != 0"
            write_refusal(writer, misaligned, f"{prefix}_ERROR_ALIGN")
    _write_overlap_checks(writer, interface, tensors)


def _write_overlap_checks(writer: Writer, interface: Interface, tensors: list[tuple[str, Port]]) -> None:
    """Tensors against each other, and against what was set, where one of the two is written.

    Inputs and parameters are only read, so those may share bytes. What was set was compared when it was set.
    """
    memories = [(f"{kind}->{port.name}", _size_text(port), kind) for kind, port in tensors]
    for kind, pools in (
        ("workspace", interface.caller_workspaces),
        ("parameters", interface.caller_parameters),
    ):
        memories += [
            (f"context->{pool.identifier}", interface.macro(pool, "SIZE"), kind)
            for pool in pools
            if pool.used_bytes
        ]
    for index, (first, first_bytes, first_kind) in enumerate(memories[: len(tensors)]):
        for second, second_bytes, second_kind in memories[index + 1 :]:
            if {first_kind, second_kind} <= {"inputs", "parameters"}:
                continue
            shared = f"share_bytes({first}, {first_bytes}, {second}, {second_bytes})"
            write_refusal(writer, shared, f"{interface.prefix}_ERROR_OVERLAP")


def _size_text(port: Port) -> str:
    """The bytes of an input or output as C text: a number, times each extent that the run is given."""
    symbols = [extent.name for extent in port.type.shape if isinstance(extent, Symbol)]
    fixed = prod(extent for extent in port.type.shape if isinstance(extent, int)) * port.type.dtype.size_bytes
    return " * ".join([*(f"(size_t){name}" for name in symbols), str(fixed)])


def write_refusal(writer: Writer, condition: str, error: str) -> None:
    """Returns an error if a condition holds."""
    with writer.block(f"if ({condition})"):
        writer.line(f"return {error};")
