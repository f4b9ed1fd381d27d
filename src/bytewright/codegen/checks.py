"""The checks of `<model>.c`: workspaces at set time, tensors at run time."""

from collections.abc import Mapping, Sequence

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.overlaps import (
    SpanTable,
    drivers_table,
    parameter_table,
    rows_table,
    run_table,
    workspace_table,
    write_span_type,
    write_table,
)
from bytewright.codegen.ports import begin_arguments
from bytewright.codegen.sections_ld import write_sections_check
from bytewright.codegen.writer import Writer
from bytewright.record.names import MEMBER_OF_STATE, Names, by_entry
from bytewright.record.plan import Plan, PlannedPool, PlannedTensor


def _aliases(plan: Plan) -> tuple[tuple[int, int, int], ...]:
    """The aliases of all memories that the entry's device reaches: inputs and outputs may lie in any of them.

    Of each, the first address and the last, and the memory's base, which is another address of the same first byte.
    """
    reached = [plan.hardware.memory(name) for name in plan.device.reached_memories]
    return tuple(
        (first, end - 1, memory.base)
        for memory in reached
        if memory.base is not None
        for first, end in memory.address_ranges()[1:]
    )


def write_helpers(writer: Writer, plan: Plan, names: Names) -> None:
    """Functions that the checks call."""
    if _compares_addresses(plan, names):
        writer.line(f"#if {names.check_range}")
        writer.comment("Whether a memory of one byte or more lies within [first, last].")
        head = "static bool lies_within(const void *base, size_t size_bytes, uintptr_t first, uintptr_t last)"
        with writer.block(head):
            writer.line("const uintptr_t begin = (uintptr_t)base;")
            writer.line(
                "return (begin >= first) && (begin <= last) && ((size_bytes - 1u) <= (last - begin));"
            )
        writer.line("#endif")
        writer.line()
    compared = tables(plan, names)
    if compared:
        _write_share_bytes(writer, plan, names)
    for table in compared:
        write_table(writer, names, table)


def _write_share_bytes(writer: Writer, plan: Plan, names: Names) -> None:
    """Addresses are compared as they are, or, where the target has aliases, as the memory's base has them."""
    if _aliases(plan):
        writer.comment("The address of the same byte through the memory's base, which an alias stands for.")
        with writer.block("static uintptr_t first_address(const void *memory)"):
            writer.line(f"#if {names.check_range}")
            for first, last, base in _aliases(plan):
                inside = f"lies_within(memory, 1u, 0x{first:08X}u, 0x{last:08X}u)"
                writer.refuse(inside, f"(uintptr_t)memory - 0x{first:08X}u + 0x{base:08X}u")
            writer.line("#endif")
            writer.line("return (uintptr_t)memory;")
        writer.line()
    write_span_type(writer)
    writer.comment("Whether a memory runs over the end of the address space.")
    with writer.block("static bool wraps(memory_span memory)"):
        writer.line("return (memory.size_bytes - 1u) > (UINTPTR_MAX - (uintptr_t)memory.address);")
    writer.line()
    writer.comment("Whether two memories share a byte.")
    address_of = "first_address({})" if _aliases(plan) else "(uintptr_t){}"
    with writer.block("static bool share_bytes(memory_span first, memory_span second)"):
        writer.line(f"const uintptr_t a = {address_of.format('first.address')};")
        writer.line(f"const uintptr_t b = {address_of.format('second.address')};")
        writer.line()
        with writer.block("if (second.address == NULL)"):
            writer.line("return false;")
        writer.line("return (a < b) ? ((b - a) < first.size_bytes) : ((a - b) < second.size_bytes);")
    writer.line()


def write_range_switch(writer: Writer, plan: Plan, names: Names) -> None:
    """The macro that turns address checks off, where there are any."""
    if _compares_addresses(plan, names):
        writer.comment("The target's addresses mean nothing to a 64-bit build, such as a test on the host.")
        writer.default(names.check_range, "(UINTPTR_MAX <= 0xFFFFFFFFu)")
        writer.line()


def _compares_addresses(plan: Plan, names: Names) -> bool:
    """Whether a check knows addresses of the target: those of what is lent, or aliases."""
    lent = (*plan.caller_workspaces, *plan.caller_parameters)
    has_ranges = any(plan.hardware.memory(p.memory).address_ranges() for p in lent)
    ports = ((border, tensor) for border in ir.SIDES for tensor in plan.tensors(border))
    has_ranges = has_ranges or any(_ranges_of_port(plan, border, tensor) for border, tensor in ports)
    return has_ranges or bool(_aliases(plan) and tables(plan, names))


def tables(plan: Plan, names: Names) -> tuple[SpanTable, ...]:
    """The tables of the functions that are given memory, which could meet the context at least."""
    found: list[SpanTable] = []
    if plan.caller_workspaces:
        found.append(workspace_table(plan, names))
    if plan.caller_parameters:
        found.append(parameter_table(plan, names))
    if not plan.io_in_workspace:
        found += [table for view in by_entry(plan, names) if (table := run_table(*view)).given_memory]
    if plan.image is not None:
        found.append(rows_table(plan, names))
        found += [drivers_table(plan, names)] if plan.devices else []
    return tuple(found)


def write_overlap_check(writer: Writer, names: Names, table: SpanTable) -> None:
    """The call of a table's check, and the end of the function if it fails."""
    writer.line(f"const int32_t shared = {table.call};")
    writer.refuse(f"shared != {names.ok}", "shared")


def set_workspaces_head(names: Names) -> str:
    """The head of the function."""
    arguments = f"{names.context_type} *context, const {names.workspaces_type} *workspaces"
    return f"int32_t {names.set_workspaces}({arguments})"


def write_set_workspaces(writer: Writer, plan: Plan, names: Names) -> None:
    """`<model>_set_workspaces`."""
    pools = plan.caller_workspaces
    with writer.block(set_workspaces_head(names)):
        writer.refuse("(context == NULL) || (workspaces == NULL)", names.error("NULL"))
        for pool in pools:
            write_memory_checks(writer, plan, names, pool, f"workspaces->{pool.c_name}")
        write_overlap_check(writer, names, workspace_table(plan, names))
        for pool in pools:
            writer.line(f"context->{pool.c_name} = (uint8_t *)workspaces->{pool.c_name}.base;")
        if plan.states:
            writer.line(f"context->{MEMBER_OF_STATE} = 0;")
        if plan.image is not None:
            writer.line("context->is_begun = 0;")
        writer.line(f"return {names.ok};")
    writer.line()


def write_memory_checks(writer: Writer, plan: Plan, names: Names, pool: PlannedPool, member: str) -> None:
    """What a `<model>_memory` that the application lends to a pool must be, each with its own error."""
    size, alignment = names.size(pool), names.alignment(pool)
    writer.refuse(f"{member}.base == NULL", names.error("NULL"))
    writer.refuse(f"{member}.size_bytes < (size_t){size}", names.error("SIZE"))
    writer.refuse(f"((uintptr_t){member}.base % (uintptr_t){alignment}) != 0u", names.error("ALIGN"))
    write_range_check(writer, plan, names, pool, f"{member}.base")


def write_range_check(writer: Writer, plan: Plan, names: Names, pool: PlannedPool, address: str) -> None:
    """The pool's bytes from this address on lie in its memory, through its base or an alias."""
    ranges = plan.hardware.memory(pool.memory).address_ranges()
    if not ranges:
        return
    outside = " && ".join(
        f"!lies_within({address}, {names.size(pool)}, 0x{first:08X}u, 0x{end - 1:08X}u)"
        for first, end in ranges
    )
    writer.line(f"#if {names.check_range}")
    writer.refuse(outside, names.error("RANGE"))
    writer.line("#endif")


def write_run_checks(writer: Writer, plan: Plan, names: Names, strict: Mapping[str, int]) -> None:
    """What `<model>_run` checks before it computes anything; `strict` as `strict_alignments` gives it."""
    write_sections_check(writer, plan, names)
    for symbol in plan.symbols:
        outside = f"({symbol.name} < {symbol.lower}) || ({symbol.name} > {names.bound(symbol.name)})"
        writer.refuse(outside, names.error("EXTENT"))
    extents = [symbol.name for symbol in plan.symbols]
    pointers = [name for name in begin_arguments(plan) if name not in extents]
    writer.refuse(any_is_null(pointers), names.error("NULL"))
    for pool in (*plan.caller_workspaces, *plan.set_parameters):
        writer.refuse(f"context->{pool.c_name} == NULL", names.error("NOT_SET"))
    if plan.states:
        writer.refuse(f"context->{MEMBER_OF_STATE} == 0", names.error("NOT_SET"))
    if plan.io_in_workspace:
        return
    for border in ir.SIDES:
        for tensor in plan.tensors(border) if f"{border.value}s" in plan.structures_of_run else ():
            member = names.member(border, tensor.c_name)
            writer.refuse(f"{member} == NULL", names.error("NULL"))
            natural = f"sizeof({memory_type(tensor.dtype)})" if tensor.dtype.size_bytes > 1 else None
            alignment = strict.get(tensor.buffer, natural)
            if alignment is not None:
                misaligned = f"((uintptr_t){member} % (uintptr_t){alignment}) != 0u"
                writer.refuse(misaligned, names.error("ALIGN"))
            _write_port_range_check(writer, plan, names, border, tensor)
    table = run_table(plan, names)
    if table.given_memory:
        write_overlap_check(writer, names, table)


def _ranges_of_port(plan: Plan, border: ir.Border, tensor: PlannedTensor) -> tuple[tuple[int, int], ...]:
    """The addresses that an input or output may have; none where it may be anywhere, or one of them is not known."""
    memories = [plan.hardware.memory(name) for name in plan.caller_memories(border, tensor)]
    ranges = [memory.address_ranges() for memory in memories]
    return tuple(each for found in ranges for each in found) if all(ranges) else ()


def _write_port_range_check(
    writer: Writer, plan: Plan, names: Names, border: ir.Border, tensor: PlannedTensor
) -> None:
    """An input or output lies where all devices reach that touch it."""
    ranges = _ranges_of_port(plan, border, tensor)
    if not ranges:
        return
    member, size_bytes = names.member(border, tensor.c_name), f"{tensor.size_bytes}u"
    outside = " && ".join(
        f"!lies_within({member}, {size_bytes}, 0x{first:08X}u, 0x{end - 1:08X}u)" for first, end in ranges
    )
    writer.line(f"#if {names.check_range}")
    writer.refuse(outside, names.error("RANGE"))
    writer.line("#endif")


def any_is_null(pointers: Sequence[str]) -> str:
    """The condition that a pointer is NULL."""
    if len(pointers) == 1:
        return f"{pointers[0]} == NULL"
    return " || ".join(f"({name} == NULL)" for name in pointers)
