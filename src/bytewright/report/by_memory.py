"""What each memory of the target holds: workspace, state, parameters, stacks, code, the caller's, and what is free.

Where code and the application's arrays lie is the linker's business, so it is known of few: code is kept in the memory
that no program writes, where there is one; and a tensor is where another device reaches it, if that is one memory.
"""

from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.elf.sizes import SectionSizes
from bytewright.record.entries import PlannedTensor
from bytewright.record.plan import Plan
from bytewright.target.model import Memory, Role

ANYWHERE = "(anywhere)"  # what stands for a memory where the application or its linker script chooses
# What memory is used for, and the member that says how many bytes.
KINDS_OF_USE = {
    "workspace": "workspace_bytes",
    "state": "state_bytes",
    "parameters": "parameter_bytes",
    "stack": "stack_bytes",
    "caller": "caller_bytes",
    "code": "code_bytes",
}


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one memory, by what they are for.

    Attributes:
        name: Of the memory, or `ANYWHERE`.
        workspace, state, parameters: What the pools hold, not what they were lent; parameters count in the memory that
            keeps them until they are loaded, and in the one where they are read.
        stack: The sizes of the stacks in it, their allowances included, and the reserves.
        caller: Inputs and outputs that the application brings.
        code: Instructions, constants and variables of the C.
    """

    name: str
    size_bytes: int | None = None
    workspace_bytes: int = 0
    parameter_bytes: int = 0
    stack_bytes: int = 0
    state_bytes: int = 0
    caller_bytes: int = 0
    code_bytes: int = 0

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """What is in it, each kind with its bytes."""
        return tuple((kind, getattr(self, member)) for kind, member in KINDS_OF_USE.items())

    @property
    def used_bytes(self) -> int:
        """Everything."""
        return sum(size_bytes for _, size_bytes in self.parts)

    @property
    def free_bytes(self) -> int | None:
        """What remains; None where the memory has no limit."""
        return None if self.size_bytes is None else self.size_bytes - self.used_bytes


def use_by_memory(plan: Plan, code: SectionSizes | None = None) -> tuple[MemoryUse, ...]:
    """The memories that hold anything, in the target's order.

    Args:
        plan: Of the bundle.
        code: The sizes of its C, if they are known.
    """
    kept = _memory_of_code(plan)
    uses = (_use(plan, memory) for memory in plan.hardware.memories)
    if code is not None:
        uses = (replace(u, code_bytes=code.kept_bytes) if u.name == kept else u for u in uses)
    return tuple(use for use in uses if use.used_bytes)


def use_elsewhere(plan: Plan, code: SectionSizes | None = None) -> MemoryUse:
    """What lies wherever the application and its linker script put it."""
    written = 0 if code is None else code.written_bytes
    if code is not None and _memory_of_code(plan) is None:
        written = code.all_bytes
    return MemoryUse(ANYWHERE, caller_bytes=_caller_bytes(plan, None), code_bytes=written)


def border_bytes(plan: Plan, side: ir.Border) -> int:
    """What the application has of inputs or outputs at one time; 0 where they are planned."""
    return sum(size for _, size in _caller_tensors(plan, side))


def _caller_tensors(plan: Plan, side: ir.Border) -> list[tuple[PlannedTensor, int]]:
    if plan.io_in_workspace:
        return []
    return [(each, each.given_bytes) for each in plan.tensors(side)]


def _caller_bytes(plan: Plan, memory: str | None) -> int:
    """What the application has in a memory; or in any that it likes."""
    total = 0
    for side in ir.SIDES:
        for tensor, size_bytes in _caller_tensors(plan, side):
            memories = plan.caller_memories(side, tensor)
            total += size_bytes if (memories[0] if len(memories) == 1 else None) == memory else 0
    return total


def _memory_of_code(plan: Plan) -> str | None:
    """The one memory that the entry's device reaches and that no program writes."""
    reached = plan.hardware.device(plan.device.name).reached_memories
    fixed = [m.name for m in plan.hardware.memories if m.name in reached and not m.is_writable]
    return fixed[0] if len(fixed) == 1 else None


def _use(plan: Plan, memory: Memory) -> MemoryUse:
    def held(role: Role) -> int:
        return sum(p.used_bytes for p in plan.pools.values() if p.memory == memory.name and p.role is role)

    kept = sum(pool.used_bytes for pool in plan.pools.values() if pool.load_memory == memory.name)
    stack = 0
    for context in plan.hardware.contexts:
        if context.memory == memory.name and context.name in plan.stack:
            stack += plan.stack[context.name].size_bytes + context.stack_reserve_bytes
    return MemoryUse(
        memory.name,
        memory.size_bytes,
        held(Role.WORKSPACE),
        held(Role.PARAMETERS) + kept,
        stack,
        held(Role.STATE),
        _caller_bytes(plan, memory.name),
    )
