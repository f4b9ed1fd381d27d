"""What each memory of the target holds: workspace, state, parameters, stacks, and what is free."""

from dataclasses import dataclass

from bytewright.record.plan import Plan
from bytewright.target.model import Memory, Role


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of one memory, by what they are for.

    Attributes:
        workspace, state, parameters: What the pools hold, not what they were lent; parameters count in the memory that
            keeps them until they are loaded, and in the one where they are read.
        stack: The sizes of the stacks in it, their allowances included, and the reserves.
    """

    name: str
    size_bytes: int | None
    workspace_bytes: int
    parameter_bytes: int
    stack_bytes: int
    state_bytes: int

    @property
    def used_bytes(self) -> int:
        """Everything."""
        return self.workspace_bytes + self.state_bytes + self.parameter_bytes + self.stack_bytes

    @property
    def free_bytes(self) -> int | None:
        """What remains; None where the memory has no limit."""
        return None if self.size_bytes is None else self.size_bytes - self.used_bytes


def use_by_memory(plan: Plan) -> tuple[MemoryUse, ...]:
    """The memories that hold anything, in the target's order."""
    uses = (_use(plan, memory) for memory in plan.hardware.memories)
    return tuple(use for use in uses if use.used_bytes)


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
    )
