"""Where memories lie that checks compare addresses with."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.record.entries import PlannedTensor
from bytewright.record.names import Names
from bytewright.record.plan import Plan
from bytewright.target.model import Memory


def aliased(plan: Plan) -> tuple[Memory, ...]:
    """The memories with aliases that the entry's device reaches: inputs and outputs may lie in any of them."""
    reached = [plan.hardware.memory(name) for name in plan.device.reached_memories]
    return tuple(memory for memory in reached if memory.aliases)


def ranges_of(names: Names, memory: Memory) -> list[str]:
    """The first address and the last through its base and its aliases; none where no address is known."""
    macros = [names.memory_base(memory.name, alias) for alias in range(len(memory.address_ranges()))]
    return [f"{macro}, {macro} + 0x{(memory.size_bytes or 1) - 1:X}u" for macro in macros]


def memories_of_port(plan: Plan, border: ir.Border, tensor: PlannedTensor) -> Sequence[Memory]:
    """The memories that an input or output may lie in; none where it may be anywhere, or an address is not known."""
    memories = [plan.hardware.memory(name) for name in plan.caller_memories(border, tensor)]
    return memories if all(memory.address_ranges() for memory in memories) else ()
