"""What the checks of `<model>.c` call and name: functions, one for each idea, macros of addresses, and tables."""

from bytewright import ir
from bytewright.codegen.forms import form_of
from bytewright.codegen.overlaps import (
    SpanTable,
    parameter_table,
    run_table,
    workspace_table,
    write_span_type,
    write_table,
)
from bytewright.codegen.ranges import aliased, memories_of_port, ranges_of
from bytewright.codegen.writer import Writer
from bytewright.record.names import Names, by_entry
from bytewright.record.plan import Plan
from bytewright.target.model import Memory


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
    if aliased(plan):
        writer.comment("The address of the same byte through the memory's base, which an alias stands for.")
        with writer.block("static uintptr_t first_address(const void *memory)"):
            writer.line(f"#if {names.check_range}")
            for memory in aliased(plan):
                base = names.memory_base(memory.name)
                for alias, inside in enumerate(ranges_of(names, memory)[1:], start=1):
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
    address_of = "first_address({})" if aliased(plan) else "(uintptr_t){}"
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
    compared |= {m.name for border, tensor in ports for m in memories_of_port(plan, border, tensor)}
    if tables(plan, names):
        compared |= {memory.name for memory in aliased(plan)}
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
    return (*found, *form_of(plan).tables(plan, names))
