"""Whether names of a bundle meet: those of macros and enumerators, and those of members of the context."""

from collections.abc import Iterator

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.record.names import (
    ARGUMENT_CODES,
    LINES_MACRO,
    MEMBER_OF_STATE,
    TENSOR_MACROS,
    VERSION_PARTS,
    Names,
    by_entry,
)
from bytewright.record.plan import Plan


def check_names(plan: Plan, names: Names) -> None:
    """Refuses names that meet: those of macros and enumerators, and those of members of the context.

    Raises:
        CompileError: BW109, with what both stand for.
    """
    for space in (_macros(plan, names), _members(plan, names)):
        found: dict[str, str] = {}
        for name, meaning in space:
            other = found.setdefault(name, meaning)
            if other != meaning:
                message = f"{other} and {meaning} both become '{name}' in C"
                raise compile_error("BW109", message, help="rename one of the two")


def _macros(plan: Plan, names: Names) -> Iterator[tuple[str, str]]:
    of_the_model = (
        *(names.stack_planned_bytes, names.stack_size, names.aligned, names.section, names.step),
        *(names.step_workspaces, names.check_range, names.check_sections),
        *(names.arena_depth, names.own_backend, names.ok),
        *(names.version, *(f"{names.version}_{part}" for part in VERSION_PARTS)),
        *map(names.guard, (names.header, names.kernels_header, names.externals_header)),
    )
    yield from ((name, f"macro '{name}' of the model") for name in of_the_model)
    if plan.devices:
        for name in (names.span_read, names.span_write):
            yield name, f"enumerator '{name}' of the model"
        for device in plan.devices.values():
            yield names.guard(names.device_header(device)), f"the header of device '{device.name}'"
        yield names.ethos_u_guard, "the header of the Ethos-U's driver"
    for pool in plan.device_workspaces:
        yield names.span_obtain, f"enumerator '{names.span_obtain}' of the model"
        yield names.device_memory(pool), f"the number of pool '{pool.name}'"
    if plan.has_packed_forms:
        for name in (names.guard(names.packed_header), *map(names.argument_code, ARGUMENT_CODES)):
            yield name, f"macro '{name}' of the model"
    yield from _macros_of_memories(plan, names)
    yield from _macros_of_tensors(plan, names)


def _macros_of_memories(plan: Plan, names: Names) -> Iterator[tuple[str, str]]:
    for pool in plan.pools.values():
        for name_of in (names.size, names.alignment, names.initializer, names.section_of):
            yield name_of(pool), f"pool '{pool.name}'"
    for memory in plan.hardware.memories:
        for alias in range(len(memory.address_ranges())):
            yield names.memory_base(memory.name, alias), f"where memory '{memory.name}' begins"
    for pool in plan.arena_pools:
        yield names.arena_pool(pool), f"the arena of pool '{pool.name}'"
    for alone, own in by_entry(plan, names):
        for arena, pool in alone.arenas:
            yield own.arena_size(pool), f"the size of '{arena.name}' in pool '{pool.name}'"


def _macros_of_tensors(plan: Plan, names: Names) -> Iterator[tuple[str, str]]:
    for symbol in plan.symbols:
        yield names.bound(symbol.name), f"the bound of '{symbol.name}'"
    if plan.stream is not None:
        yield names.runs_before, "the first runs of a stream"
    for border in ir.Border:
        for tensor in plan.tensors(border):
            more = (*([LINES_MACRO] if plan.line_bytes(tensor) else []), *tensor.pieces)
            for what in (*TENSOR_MACROS, *more):
                yield names.tensor(border, tensor, what), f"{border.value} '{tensor.c_name}'"
    for buffer in plan.buffers.values():
        if buffer.has_offset:
            meaning = f"the offset of '{buffer.name}' in pool '{buffer.place.name}'"
            yield names.offset(buffer.place.name, buffer.name), meaning


def _members(plan: Plan, names: Names) -> Iterator[tuple[str, str]]:
    for pool in plan.pools.values():
        yield pool.c_name, f"pool '{pool.name}'"
    for pool in plan.arena_pools:
        yield names.arena(pool), f"the arena of pool '{pool.name}'"
    for _, member in names.form.members:
        yield member, "what the context keeps of a run"
    if plan.states:
        yield MEMBER_OF_STATE, "what the context knows of the state"
