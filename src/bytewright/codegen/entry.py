"""`<model>.c`: offsets, checks, and the entry, which calls the kernels in order.

All of it follows from the plan, but for the functions that have the steps, those that numbers of these call, and what a
few lines say: `PartsOfGraph`. So it is also written again without these parts, from a plan alone, and compared.
"""

from collections.abc import Mapping
from typing import Protocol

from bytewright import ir
from bytewright.codegen.arena import write_arena_helpers
from bytewright.codegen.check_helpers import tables, write_helpers, write_range_switch
from bytewright.codegen.checks import write_set_workspaces
from bytewright.codegen.entry_code import (
    entries_in_code,
    watched_workspaces,
)
from bytewright.codegen.form import StepFunctions
from bytewright.codegen.forms import form_of
from bytewright.codegen.hand_over import (
    write_hand_over_helpers,
)
from bytewright.codegen.includes import needed, needs_math_header
from bytewright.codegen.kernels import write_operator_functions
from bytewright.codegen.parameters import array_declaration
from bytewright.codegen.ports import address_head, address_in_pool
from bytewright.codegen.sections_ld import write_sections_switch
from bytewright.codegen.set_parameters import write_set_parameters
from bytewright.codegen.state import write_reset
from bytewright.codegen.writer import Writer
from bytewright.ir.walk import allocations
from bytewright.record.devices import DeviceKind
from bytewright.record.names import MAX_NAMED, Names, by_entry
from bytewright.record.plan import Plan

INT_MAX = (1 << 31) - 1


class PartsOfGraph(Protocol):
    """What the file has from the graph, and not from the plan."""

    @property
    def needs_math(self) -> bool:
        """Whether numbers in the steps need <math.h>."""
        ...

    def described(self, buffer: str) -> str:
        """What a buffer is, for people."""
        ...

    def write_operators(self, writer: Writer) -> None:
        """The functions that numbers in the steps call."""
        ...

    def step_functions(self, entry: int) -> StepFunctions:
        """The functions of an entry that have its steps."""
        ...


def entry_source(plan: Plan, names: Names, contents: Mapping[str, bytes], graph: PartsOfGraph) -> str:
    """The file.

    Args:
        plan: What it is for.
        names: Of the plan.
        contents: The bytes of the parameter pools, by name.
        graph: What of it does not follow from the plan.
    """
    writer = Writer()
    writer.title(f"Entry of model '{plan.model}'. Every buffer lies where the plan put it.")
    writer.line(f'#include "{names.included(names.header)}"')
    writer.line()
    _write_byte_order(writer)
    _write_includes(writer, plan, names, needs_math=graph.needs_math)
    _write_offsets(writer, plan, names, graph)
    graph.write_operators(writer)
    write_range_switch(writer, plan, names)
    write_sections_switch(writer, plan, names)
    _write_step_macro(writer, plan, names)
    for pool in (*plan.own_workspaces, *plan.own_copies):
        array = f"{names.array(pool)}[{names.size(pool)}]"
        writer.line(f"extern uint8_t {array}; /* of no header: private, but linked */")
        writer.lines(f"{array_declaration(names, pool)};")
        writer.line()
    write_helpers(writer, plan, names)
    write_arena_helpers(writer, plan, names)
    if plan.caller_workspaces:
        write_set_workspaces(writer, plan, names)
    write_set_parameters(writer, plan, names, contents)
    write_reset(writer, plan, names)
    if plan.io_in_workspace:
        _write_address_functions(writer, plan, names)
    _write_entries(writer, plan, names, graph)
    return writer.text()


def _write_entries(writer: Writer, plan: Plan, names: Names, graph: PartsOfGraph) -> None:
    """The functions of each entry."""
    entries = [(*view, graph.step_functions(number)) for number, view in enumerate(by_entry(plan, names))]
    for alone, own, steps in entries:
        form_of(alone).write_first(writer, alone, own, steps)
    if plan.devices:
        write_hand_over_helpers(writer, plan, names)
    for number, (alone, own, steps) in enumerate(entries):
        if number:
            writer.line()
        form_of(alone).write_last(writer, alone, own, steps)


def _write_includes(writer: Writer, plan: Plan, names: Names, *, needs_math: bool) -> None:
    headers = needed(
        {
            "math.h": needs_math,
            "stdbool.h": bool(tables(plan, names) or plan.devices),
            "string.h": bool(plan.set_parameters or plan.states),
        }
    )
    for header in headers:
        writer.line(f"#include <{header}>")
    if headers:
        writer.line()
    writer.line(f'#include "{names.included(names.kernels_header)}"')
    for device in plan.devices.values():
        if device.kind is DeviceKind.C:
            writer.line(f'#include "{names.included(names.device_header(device))}"')
    if plan.packs_arguments:
        writer.line(f'#include "{names.included(names.packed_header)}"')
    writer.line()


class StepsOfModule:
    """Those parts, of a module that was planned."""

    def __init__(self, module: ir.Module, plan: Plan, names: Names) -> None:
        self.module = module
        definitions = (
            *(a for entry in module.entries for a in allocations(entry)),
            *module.constant_buffers,
        )
        self._types = {definition.buffer.name: definition.buffer for definition in definitions}
        self._entries = entries_in_code(module, plan, names)

    @property
    def needs_math(self) -> bool:
        """Whether numbers in the steps need <math.h>."""
        return needs_math_header(self.module.entries)

    def described(self, buffer: str) -> str:
        """`i8[1x49x10x1]`."""
        what = self._types[buffer]
        return f"{what.dtype.value}[{ir.format_shape(what.shape)}]"

    def write_operators(self, writer: Writer) -> None:
        """The functions that numbers in the steps call."""
        write_operator_functions(writer, self.module.entries)

    def step_functions(self, entry: int) -> StepFunctions:
        """The functions of an entry that have its steps."""
        return form_of(self._entries[entry].plan).step_functions(self._entries[entry])


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


def _write_offsets(writer: Writer, plan: Plan, names: Names, graph: PartsOfGraph) -> None:
    placed = [buffer for buffer in plan.buffers.values() if buffer.has_offset]
    if not placed:
        return
    lines: list[str] = []
    defined: list[str] = []
    for buffer in placed:
        offset, described = buffer.place.offset or 0, f"/* {graph.described(buffer.name)} */"
        if offset <= INT_MAX:
            lines.append(f"{names.argument(buffer)} = {offset} {described}")
        else:  # no enumerator of C99
            defined.append(f"#define {names.argument(buffer)} {offset} {described}")
    writer.comment(f"Offsets in the pools, in bytes. Plan {plan.plan_hash}.")
    if lines:
        writer.enumeration(lines)
    writer.lines("\n".join(defined))
    writer.line()


def _write_step_macro(writer: Writer, plan: Plan, names: Names) -> None:
    """The macro between the kernels: a place for what must happen there, which the calls leave none for."""
    workspaces = watched_workspaces(plan, names)
    given = "the workspaces" if workspaces else "NULL"
    writer.comment(
        f"Stands before each kernel and after the last, with the step's number and {given}: define it to "
        "measure, to feed a watchdog, or to watch memory."
    )
    writer.default(names.step, "((void)0)", "(...)")
    writer.line()
    if len(workspaces) > MAX_NAMED:
        writer.comment("All of them, in this order.")
        writer.line(f"#define {names.step_workspaces} \\")
        with writer.indented():
            writer.lines(", \\\n".join(workspaces))
        writer.line()


def _write_address_functions(writer: Writer, plan: Plan, names: Names) -> None:
    """The functions that return where inputs and outputs lie in the workspace."""
    for border in ir.SIDES:
        access = ir.Access.READ if border is ir.Border.OUTPUT else ir.Access.WRITE
        for tensor in plan.tensors(border):
            buffer = plan.buffers[tensor.buffer]
            pool = plan.pools[buffer.place.name]
            member = f"context->{pool.c_name}"
            unset = f"context == NULL || {member} == NULL" if pool.is_caller else "context == NULL"
            with writer.block(address_head(names, border, tensor)):
                writer.refuse(f"{unset}", "NULL")
                base = member if pool.is_caller else names.array(pool)
                address = address_in_pool(base, names.argument(buffer), tensor.dtype, access)
                writer.line(f"return {address};")
            writer.line()
