"""The arrays that an image of a bundle has: one list for its C, its linker script, its checks and its protection."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bytewright import ir
from bytewright.base.c_names import c_identifier
from bytewright.record.buffers import PlannedPool
from bytewright.record.names import names_of
from bytewright.record.plan import Plan
from bytewright.target.model import Provider, Role


class ArrayKind(Enum):
    """What an array is for."""

    WORKSPACE = "workspace"
    PARAMETERS = "parameters"
    INPUT = "input"
    OUTPUT = "output"
    CONTEXT = "context"
    STACK = "stack"
    DEVICE_STACK = "stack of"  # a device that is not the entry's


_WRITABLE = (ArrayKind.WORKSPACE, ArrayKind.OUTPUT, ArrayKind.CONTEXT, ArrayKind.STACK)


@dataclass(frozen=True, slots=True)
class PlannedArray:
    """An array that an image should have.

    Attributes:
        name: What it is called in messages, behind its kind.
        symbol: What it is called in C.
        section: The linker's input section; None among the harness's own variables.
        pool: The pool that it is the array of, if it is one.
        memory: Where the target wants it; None if anywhere.
        load_memory: Where the linker loads its bytes from, if that is another memory.
        is_named: Whether the target names the section, which others may share then.
        begins_empty: Whether it holds nothing that matters when the program starts.
    """

    kind: ArrayKind
    name: str
    symbol: str
    section: str | None = None
    pool: PlannedPool | None = None
    memory: str | None = None
    is_named: bool = False
    begins_empty: bool = True
    load_memory: str | None = None

    @property
    def has_bytes(self) -> bool:
        """Whether there is anything in it."""
        return self.pool is None or self.pool.used_bytes > 0

    @property
    def is_written(self) -> bool:
        """Whether a run may write it."""
        return self.kind in _WRITABLE

    @property
    def is_generated(self) -> bool:
        """Whether the bundle declares it, not the harness."""
        return self.pool is not None and self.pool.provider is Provider.GENERATED


def planned_arrays(plan: Plan) -> list[PlannedArray]:
    """All of them; the stack comes last in its memory, so that what is behind it is free."""
    in_program = [pool for pool in plan.pools.values() if pool.obtained_by is None]
    generated = [pool for pool in in_program if pool.provider is Provider.GENERATED]
    return [
        *workspace_arrays(plan),
        *_tensors(plan, ir.Border.INPUT),
        *_tensors(plan, ir.Border.OUTPUT),
        *copy_arrays(plan),
        *blob_arrays(plan),
        *(array for pool in generated for array in _generated(plan, pool)),
        PlannedArray(ArrayKind.CONTEXT, "", "harness_model_context"),
        stack_array(plan),
        *(device_stack_array(plan, name) for name in plan.devices if plan.hardware.device(name).runs_c),
    ]


def workspace_arrays(plan: Plan) -> list[PlannedArray]:
    """The harness's, for the pools of the caller."""
    return _own(ArrayKind.WORKSPACE, "workspace", plan.caller_workspaces)


def copy_arrays(plan: Plan) -> list[PlannedArray]:
    """The harness's, for parameters of the caller that are copied."""
    return _own(ArrayKind.PARAMETERS, "copy", plan.caller_copies)


def blob_arrays(plan: Plan) -> list[PlannedArray]:
    """The harness's, with the bytes of the caller's parameters: in the memory that keeps them, or among its data."""
    arrays: list[PlannedArray] = []
    for index, pool in enumerate(plan.caller_parameters):
        memory = pool.load_memory if pool.is_copied else pool.memory
        section = ".data.blob" if memory is None else blob_section(memory)
        if pool.load_memory is not None and not pool.is_copied:
            section = f".blob.load.{pool.c_name}"
        arrays.append(_source(pool, f"harness_blob_{index}", section, memory))
    return arrays


def stack_array(plan: Plan) -> PlannedArray:
    """The model's stack."""
    memory = plan.device.contexts[0].memory
    section = _harness_section(memory, "stack")  # which no pool may be called
    return PlannedArray(ArrayKind.STACK, "", "harness_model_stack", section, memory=memory)


def device_stack_array(plan: Plan, device: str) -> PlannedArray:
    """The stack of a device that runs C besides the entry's."""
    memory = plan.hardware.device(device).contexts[0].memory
    section = _harness_section(memory, f"stack.{c_identifier(device)}")
    return PlannedArray(ArrayKind.DEVICE_STACK, device, "harness_device_stack", section, memory=memory)


def blob_section(memory_name: str) -> str:
    """The section for parameter blobs in a memory."""
    return f".blob.memory.{c_identifier(memory_name)}"


def _harness_section(memory_name: str, owner: str) -> str:
    """The section for an array of the harness that must lie in a memory and holds nothing at start."""
    return f".bss.memory.{c_identifier(memory_name)}.{owner}"


def _own(kind: ArrayKind, word: str, pools: Sequence[PlannedPool]) -> list[PlannedArray]:
    arrays: list[PlannedArray] = []
    for index, pool in enumerate(pools):
        section = _harness_section(pool.memory, pool.c_name)
        arrays.append(PlannedArray(kind, pool.name, f"harness_{word}_{index}", section, pool, pool.memory))
    return arrays


def _tensors(plan: Plan, border: ir.Border) -> list[PlannedArray]:
    """The harness's, for inputs or outputs; in a memory of those that devices reach, where some do not reach all."""
    kind, found = ArrayKind(border.value), list[PlannedArray]()
    for index, tensor in enumerate(plan.tensors(border)):
        symbol, memories = f"harness_{kind.value}_{index}", plan.caller_memories(border, tensor)
        section, memory = (f".bss.{symbol}", memories[0]) if memories else (None, None)
        found.append(PlannedArray(kind, tensor.name, symbol, section, memory=memory))
    return found


def _source(
    pool: PlannedPool, symbol: str, section: str, memory: str | None, *, is_named: bool = False
) -> PlannedArray:
    """The array with the bytes of a parameter pool, which are read there or copied from there."""
    kind, name = ArrayKind.PARAMETERS, f"{pool.name}.load" if pool.is_copied else pool.name
    load_memory = None if pool.is_copied or not pool.used_bytes else pool.load_memory
    return PlannedArray(kind, name, symbol, section, pool, memory, is_named, False, load_memory)


def _generated(plan: Plan, pool: PlannedPool) -> list[PlannedArray]:
    """The arrays of a pool that the bundle declares: its own, and the one that it is copied from.

    If the target names no section, the compiler gives each one of its own, with -fdata-sections.
    """
    names, named = names_of(plan), pool.section
    symbol = names.array(pool)
    section = named or f"{'.bss' if pool.begins_empty else '.rodata'}.{symbol}"
    if not pool.begins_empty:
        return [_source(pool, symbol, section, pool.memory, is_named=named is not None)]
    kind = ArrayKind.PARAMETERS if pool.role is Role.PARAMETERS else ArrayKind.WORKSPACE
    arrays = [PlannedArray(kind, pool.name, symbol, section, pool, pool.memory, named is not None)]
    if pool.load_memory is not None:
        symbol, named = names.load_array(pool), plan.hardware.memory(pool.load_memory).section
        section = named or f".rodata.{symbol}"
        arrays.append(_source(pool, symbol, section, pool.load_memory, is_named=named is not None))
    return arrays
