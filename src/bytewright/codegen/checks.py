"""The checks of `<model>.c`: workspaces at set time, tensors at run time."""

from collections.abc import Mapping, Sequence

from bytewright import ir
from bytewright.codegen.expressions import memory_type
from bytewright.codegen.forms import FORMS
from bytewright.codegen.overlaps import (
    SpanTable,
    parameter_table,
    run_table,
    workspace_table,
    write_span_type,
    write_table,
)
from bytewright.codegen.sections_ld import write_sections_check
from bytewright.codegen.writer import Writer
from bytewright.record.buffers import PlannedPool
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import MEMBER_OF_STATE, Names, by_entry
from bytewright.record.plan import Plan
from bytewright.target.model import Memory


def _aliased(plan: Plan) -> tuple[Memory, ...]:
    """The memories with aliases that the entry's device reaches: inputs and outputs may lie in any of them."""
    reached = [plan.hardware.memory(name) for name in plan.device.reached_memories]
    return tuple(memory for memory in reached if memory.aliases)


def _ranges(names: Names, memory: Memory) -> list[str]:
    """The first address and the last through its base and its aliases; none where no address is known."""
    macros = [names.memory_base(memory.name, alias) for alias in range(len(memory.address_ranges()))]
    return [f"{macro}, {macro} + 0x{(memory.size_bytes or 1) - 1:X}u" for macro in macros]


def write_helpers(writer: Writer, plan: Plan, names: Names) -> None:
    """Functions that the checks call."""
    if _compared_memories(plan, names):
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
    if _aliased(plan):
        writer.comment("The address of the same byte through the memory's base, which an alias stands for.")
        with writer.block("static uintptr_t first_address(const void *memory)"):
            writer.line(f"#if {names.check_range}")
            for memory in _aliased(plan):
                base = names.memory_base(memory.name)
                for alias, inside in enumerate(_ranges(names, memory)[1:], start=1):
                    same = f"(uintptr_t)memory - {names.memory_base(memory.name, alias)} + {base}"
                    writer.refuse(f"lies_within(memory, 1u, {inside})", same)
            writer.line("#endif")
            writer.line("return (uintptr_t)memory;")
        writer.line()
    write_span_type(writer)
    writer.comment("Whether a memory runs over the end of the address space.")
    with writer.block("static bool wraps(memory_span memory)"):
        writer.line("return (memory.size_bytes - 1u) > (UINTPTR_MAX - (uintptr_t)memory.address);")
    writer.line()
    writer.comment("Whether two memories share a byte.")
    address_of = "first_address({})" if _aliased(plan) else "(uintptr_t){}"
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
    if not _compared_memories(plan, names):
        return
    writer.comment("The target's addresses mean nothing to a 64-bit build, such as a test on the host.")
    writer.default(names.check_range, "(UINTPTR_MAX <= 0xFFFFFFFFu)")
    writer.line()


def write_memory_bases(writer: Writer, plan: Plan, names: Names) -> None:
    """The macros of where memories begin whose addresses are checked: in the header, which need not use them."""
    compared = _compared_memories(plan, names)
    if not compared:
        return
    writer.heading("Where memories begin: an image for another machine may define that")
    for memory in compared:
        for alias, (first, _) in enumerate(memory.address_ranges()):
            writer.default(names.memory_base(memory.name, alias), f"0x{first:08X}u")
    writer.line()


def _compared_memories(plan: Plan, names: Names) -> list[Memory]:
    """The memories whose addresses a check knows: those of what is lent, or with aliases."""
    compared = {pool.memory for pool in (*plan.caller_workspaces, *plan.caller_parameters)}
    ports = [(border, tensor) for border in ir.SIDES for tensor in plan.tensors(border)]
    compared |= {m.name for border, tensor in ports for m in _memories_of_port(plan, border, tensor)}
    if tables(plan, names):
        compared |= {memory.name for memory in _aliased(plan)}
    return [m for m in plan.hardware.memories if m.name in compared and m.address_ranges()]


def tables(plan: Plan, names: Names) -> tuple[SpanTable, ...]:
    """The tables of the functions that are given memory, which could meet the context at least."""
    found: list[SpanTable] = []
    if plan.caller_workspaces:
        found.append(workspace_table(plan, names))
    if plan.caller_parameters:
        found.append(parameter_table(plan, names))
    if not plan.io_in_workspace:
        found += [table for view in by_entry(plan, names) if (table := run_table(*view)).given_memory]
    return (*found, *FORMS[plan.form].tables(plan, names))


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
        for statement in FORMS[plan.form].when_set:
            writer.line(statement)
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
    ranges = _ranges(names, plan.hardware.memory(pool.memory))
    if not ranges:
        return
    outside = " && ".join(f"!lies_within({address}, {names.size(pool)}, {inside})" for inside in ranges)
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
            _write_port_range_check(writer, plan, names, border, tensor)
    table = run_table(plan, names)
    if table.given_memory:
        write_overlap_check(writer, names, table)


def _memories_of_port(plan: Plan, border: ir.Border, tensor: PlannedTensor) -> Sequence[Memory]:
    """The memories that an input or output may lie in; none where it may be anywhere, or an address is not known."""
    memories = [plan.hardware.memory(name) for name in plan.caller_memories(border, tensor)]
    return memories if all(memory.address_ranges() for memory in memories) else ()


def _write_port_range_check(
    writer: Writer, plan: Plan, names: Names, border: ir.Border, tensor: PlannedTensor
) -> None:
    """An input or output lies where all devices reach that touch it."""
    memories = _memories_of_port(plan, border, tensor)
    ranges = [inside for memory in memories for inside in _ranges(names, memory)]
    if not ranges:
        return
    member, size_bytes = names.member(border, tensor.c_name), f"{tensor.size_bytes}u"
    outside = " && ".join(f"!lies_within({member}, {size_bytes}, {inside})" for inside in ranges)
    writer.line(f"#if {names.check_range}")
    writer.refuse(outside, names.error("RANGE"))
    writer.line("#endif")


def any_is_null(pointers: Sequence[str]) -> str:
    """The condition that a pointer is NULL."""
    if len(pointers) == 1:
        return f"{pointers[0]} == NULL"
    return " || ".join(f"({name} == NULL)" for name in pointers)
