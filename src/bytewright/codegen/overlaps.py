"""Which memories may not share a byte, and the C that refuses those that do: a table of memories, and a loop over it.

Each function that is given memory has its own table, with all that the memory could meet: what else it is given, what
the context holds, the context, and the arrays of the generated code. The text grows with the memories, not with pairs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.codegen.expressions import c_num_bytes
from bytewright.codegen.writer import Writer
from bytewright.naming.symbols import PARAMETER_TABLE, WORKSPACE_TABLE
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import Names
from bytewright.record.plan import Plan

_SPAN = "memory_span"


@dataclass(frozen=True, slots=True)
class MemorySpan:
    """Some bytes, as C text; an address of NULL is no memory."""

    address: str
    size: str


@dataclass(frozen=True, slots=True)
class SpanTable:
    """What one function compares: each memory of `read` and `written` with those that it may not meet.

    Attributes:
        name: What it is about, in the names of the C functions that look a memory up and that compare.
        given: What these functions need, which their callers call so too: types, each with the `*` of a pointer.
        read: What is only read: it may not meet `written` and `changing`; nor each other, if they are `apart`.
        written: What is written: it may not meet anything else in the table.
        changing: What was compared before, of which bytes change.
        constant: What was compared before, of which no bytes change.
    """

    name: str
    given: Mapping[str, str]
    read: tuple[MemorySpan, ...]
    written: tuple[MemorySpan, ...]
    changing: tuple[MemorySpan, ...]
    constant: tuple[MemorySpan, ...]
    apart: bool = False

    @property
    def memories(self) -> tuple[MemorySpan, ...]:
        """All of them, by number."""
        return (*self.read, *self.written, *self.changing, *self.constant)

    @property
    def given_memory(self) -> tuple[MemorySpan, ...]:
        """What the function is given, which an entry without inputs and outputs is not."""
        return (*self.read, *self.written)

    @property
    def parameters(self) -> list[str]:
        """What is given, as the functions declare it."""
        return [f"{c_type}{name}" for name, c_type in self.given.items()]

    @property
    def check(self) -> str:
        """The function of the C code that compares."""
        return f"check_{self.name}"

    @property
    def call(self) -> str:
        """The call of it."""
        return f"{self.check}({', '.join(self.given)})"


def workspace_table(plan: Plan, names: Names) -> SpanTable:
    """What `<model>_set_workspaces` compares."""
    lent = tuple(
        MemorySpan(f"workspaces->{pool.c_name}.base", f"workspaces->{pool.c_name}.size_bytes")
        for pool in plan.caller_workspaces
    )
    return SpanTable(
        WORKSPACE_TABLE,
        {"context": f"const {names.context_type} *", "workspaces": f"const {names.workspaces_type} *"},
        read=(),
        written=lent,
        changing=(_CONTEXT, *_arrays_that_change(plan, names)),
        constant=(*_of_context(names, plan.caller_parameters), *_constant_arrays(plan, names)),
    )


def parameter_table(plan: Plan, names: Names) -> SpanTable:
    """What `<model>_set_parameters` compares: no pool with another, nor what is copied to with what is copied."""
    lent = [pool for pool in plan.caller_parameters if not pool.is_copied]
    return SpanTable(
        PARAMETER_TABLE,
        {"context": f"const {names.context_type} *", "parameters": f"const {names.parameters_type} *"},
        read=tuple(MemorySpan(f"parameters->{pool.c_name}", names.size(pool)) for pool in lent),
        written=tuple(
            MemorySpan(f"parameters->{pool.c_name}.to.base", f"parameters->{pool.c_name}.to.size_bytes")
            for pool in plan.caller_copies
        ),
        changing=(
            _CONTEXT,
            *_of_context(names, plan.caller_workspaces),
            *_arrays_that_change(plan, names),
        ),
        constant=(
            *(MemorySpan(f"parameters->{pool.c_name}.from", names.size(pool)) for pool in plan.caller_copies),
            *_constant_arrays(plan, names),
        ),
        apart=True,
    )


def run_table(plan: Plan, names: Names) -> SpanTable:
    """What `<model>_run` compares: inputs and outputs, the structures that bring them, and that of the drivers."""
    extents = [extent for tensor in (*plan.inputs, *plan.outputs) for extent in tensor.extents]
    symbols = [symbol.name for symbol in plan.symbols if symbol.name in extents]
    types = {"inputs": names.inputs_type, "outputs": names.outputs_type}
    ports = {name: f"const {types[name]} *" for name in plan.structures_of_run}
    inputs, outputs = (
        tuple(
            MemorySpan(
                names.member(border, t.c_name), c_num_bytes(t.extents, t.dtype, "size_t", plan.line_bytes(t))
            )
            for t in plan.tensors(border)
            if f"{border.value}s" in ports
        )
        for border in ir.SIDES
    )
    takes_devices = "devices" in plan.begin_arguments
    devices = {"devices": f"const {names.devices_type} *"} if takes_devices else {}
    structures = tuple(MemorySpan(name, f"sizeof *{name}") for name in (*ports, *devices))
    return SpanTable(
        names.run_table,
        {
            "context": f"const {names.context_type} *",
            **ports,
            **dict.fromkeys(symbols, "int32_t "),
            **devices,
        },
        read=(*structures, *inputs),
        written=outputs,
        changing=(
            _CONTEXT,
            *_of_context(names, plan.caller_workspaces),
            *_arrays_that_change(plan, names),
        ),
        constant=(*_of_context(names, plan.caller_parameters), *_constant_arrays(plan, names)),
    )


def table_while_running(
    plan: Plan, names: Names, name: str, given: Mapping[str, str], read: MemorySpan
) -> SpanTable:
    """What is read while a run goes on that was begun before: it may not meet what changes until that ends."""
    outputs = (
        MemorySpan(
            f"context->{names.member(ir.Border.OUTPUT, t.c_name).replace('->', '.')}", f"{t.size_bytes}"
        )
        for t in plan.outputs
    )
    return SpanTable(
        name,
        {"context": f"const {names.context_type} *", **given},
        read=(read,),
        written=(),
        changing=(
            _CONTEXT,
            *_of_context(names, plan.caller_workspaces),
            *_arrays_that_change(plan, names),
            *outputs,
        ),
        constant=(),
    )


_CONTEXT = MemorySpan("context", "sizeof *context")


def _of_context(names: Names, pools: tuple[PlannedPool, ...]) -> list[MemorySpan]:
    """What was set: workspaces and parameters are set in any order, so whichever comes second meets the first."""
    return [MemorySpan(f"context->{pool.c_name}", names.size(pool)) for pool in pools]


def _arrays_that_change(plan: Plan, names: Names) -> list[MemorySpan]:
    pools = (*plan.own_workspaces, *plan.own_copies)
    return [MemorySpan(names.array(pool), names.size(pool)) for pool in pools]


def _constant_arrays(plan: Plan, names: Names) -> list[MemorySpan]:
    return [MemorySpan(names.bytes_array(pool), names.size(pool)) for pool in plan.own_parameters]


def write_span_type(writer: Writer) -> None:
    """The type of an entry of the tables."""
    writer.comment("Some memory; one at NULL has no bytes.")
    writer.structure(_SPAN, ("const void *address;", "size_t size_bytes;"))


def write_table(writer: Writer, names: Names, table: SpanTable) -> None:
    """The lookup and the loop of a table."""
    writer.comment(_described(table))
    lookup = f"static {_SPAN} {table.name}_at"
    with writer.block_of(lookup, [*table.parameters, "size_t index"]), writer.block("switch (index)"):
        for number, memory in enumerate(table.memories):
            writer.line(f"case {number}: return ({_SPAN}){{{memory.address}, {memory.size}}};")
        writer.line(f"default: return ({_SPAN}){{NULL, 0}};")
    writer.line()
    with writer.block_of(f"static int32_t {table.check}", table.parameters):
        _write_loops(writer, names, table)
    writer.line()


def _write_loops(writer: Writer, names: Names, table: SpanTable) -> None:
    num_read, num_given = len(table.read), len(table.read) + len(table.written)
    num_changing = num_given + len(table.changing)
    num_all = len(table.memories)
    begin, end = "first + 1u", f"{num_all}u"
    if num_read and num_given > num_read:
        begin = "first + 1u" if table.apart else f"(first < {num_read}u) ? {num_read}u : (first + 1u)"
        end = end if num_changing == num_all else f"(first < {num_read}u) ? {num_changing}u : {num_all}u"
    elif num_read:
        begin, end = "first + 1u" if table.apart else f"{num_read}u", f"{num_changing}u"
    lookup = f"{table.name}_at({', '.join(table.given)}, "
    with writer.block(f"for (size_t first = 0u; first < {num_given}u; ++first)"):
        writer.line(f"const {_SPAN} memory = {lookup}first);")
        writer.line(f"const size_t begin = {begin};")
        writer.line(f"const size_t end = {end};")
        writer.line()
        writer.refuse("wraps(memory)", names.error("RANGE"))
        with (
            writer.block("for (size_t second = begin; second < end; ++second)"),
            writer.block(f"if (share_bytes(memory, {lookup}second)))"),
        ):
            writer.line(f"return {names.error('OVERLAP')};")
    writer.line(f"return {names.ok};")


def _described(table: SpanTable) -> str:
    """Which numbers are what."""
    parts: list[str] = []
    number = 0
    for memories, what in (
        (table.read, "given to be read"),
        (table.written, "given to be written"),
        (table.changing, "there already, changing"),
        (table.constant, "there already, constant"),
    ):
        if memories:
            last = number + len(memories) - 1
            parts.append(f"{number}{f' to {last}' if last > number else ''}: {what}")
            number = last + 1
    return "Memory by number. " + "; ".join(parts) + "."
