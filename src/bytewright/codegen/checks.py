"""The checks of `<model>.c`: workspaces at set time, tensors at run time."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.overlaps import SpanTable, run_table, workspace_table
from bytewright.codegen.ports import address_in_pool, strict_alignments
from bytewright.codegen.ranges import memories_of_port, ranges_of
from bytewright.codegen.sections_ld import write_sections_check
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.entries import MOST, PlannedTensor
from bytewright.record.names import BOUND, MEMBER_OF_STATE, Names
from bytewright.record.plan import Plan


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
        if names.form.begun is not None:
            writer.line(f"context->{names.form.begun} = 0;")
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
    ranges = ranges_of(names, plan.hardware.memory(pool.memory))
    _write_within(writer, names, address, names.size(pool), ranges)


def _write_within(writer: Writer, names: Names, address: str, size: str, ranges: Sequence[str]) -> None:
    """Bytes lie in one of some ranges, if any are known."""
    if ranges:
        outside = " && ".join(f"!lies_within({address}, {size}, {inside})" for inside in ranges)
        writer.line(f"#if {names.check_range}")
        writer.refuse(outside, names.error("RANGE"))
        writer.line("#endif")


def write_run_checks(writer: Writer, plan: Plan, names: Names) -> None:
    """What `<model>_run` checks before it computes anything."""
    strict = strict_alignments(plan)
    write_sections_check(writer, plan, names)
    for symbol in plan.symbols:
        outside = f"({symbol.name} < {symbol.lower}) || ({symbol.name} > {names.bound(symbol.name)})"
        writer.refuse(outside, names.error("EXTENT"))
    extents = [symbol.name for symbol in plan.symbols]
    pointers = [name for name in plan.begin_arguments if name not in extents]
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
            # It lies where all devices reach that touch it.
            memories = memories_of_port(plan, border, tensor)
            ranges = [inside for memory in memories for inside in ranges_of(names, memory)]
            _write_within(writer, names, member, f"{tensor.size_bytes}u", ranges)
    table = run_table(plan, names)
    if table.given_memory:
        write_overlap_check(writer, names, table)


def write_size_checks(writer: Writer, plan: Plan, names: Names) -> None:
    """What a run checks in the end: the data asked for no more than there is room for."""
    for tensor in plan.checked_sizes:
        size = output_address(plan, names, tensor)
        most = names.tensor(ir.Border.OUTPUT, tensor, MOST)
        writer.refuse(f"(*{size} < 0) || (*{size} > {most})", names.error(BOUND))


def output_address(plan: Plan, names: Names, tensor: PlannedTensor) -> str:
    """Where a run has an output."""
    if not plan.io_in_workspace:
        return names.member(ir.Border.OUTPUT, tensor.c_name)
    buffer = plan.buffers[tensor.buffer]
    base = names.base(plan.pools[buffer.place.name])
    return address_in_pool(base, names.argument(buffer), tensor.dtype, ir.Access.READ)


def any_is_null(pointers: Sequence[str]) -> str:
    """The condition that a pointer is NULL."""
    if len(pointers) == 1:
        return f"{pointers[0]} == NULL"
    return " || ".join(f"({name} == NULL)" for name in pointers)
