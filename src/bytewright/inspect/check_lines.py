"""Whether a plan keeps to what its devices ask of the buffers they touch: alignments, and cache lines for themselves.

Judged from the plan's own numbers: the devices of the steps and buffers, and how the target says that they reach each
memory. That the bytes which this module counts to a buffer overlap no others is for `check_plan.py` and the validator.
"""

from collections.abc import Iterator, Mapping

from bytewright.record.buffers import PlaceKind, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.target.model import Device, Role


def devices_of_buffers(plan: Plan) -> dict[str, tuple[Device, ...]]:
    """Who touches each buffer: devices of steps, and those that the plan says of it, as far as the target has them."""
    names = {buffer.name: dict.fromkeys(buffer.devices) for buffer in plan.buffers.values()}
    for step in plan.steps:
        for name in step.touched:
            names.setdefault(name, {})[step.device] = None
    return {
        name: tuple(device for device in plan.hardware.devices if device.name in own)
        for name, own in names.items()
    }


def bytes_taken(plan: Plan) -> Mapping[str, int]:
    """Bytes of each buffer that nothing else may have while it lives: with the rest of its last cache line."""
    devices = devices_of_buffers(plan)
    taken: dict[str, int] = {}
    for buffer in plan.buffers.values():
        line_bytes = max(1, buffer.line_bytes, _line_needed(plan, buffer, devices[buffer.name]))
        lines, rest = divmod(buffer.size_bytes, line_bytes)
        taken[buffer.name] = (lines + (rest > 0)) * line_bytes
    return taken


def line_of_parameters(plan: Plan, pool: str) -> int:
    """The cache line that a parameter pool has to begin and end with; 1 if none."""
    devices = devices_of_buffers(plan)
    memory = plan.pools[pool].memory
    return max((_line_seen(plan, memory, devices[b.name]) for b in plan.buffers_in(pool)), default=0) or 1


def faults_of_lines(plan: Plan) -> Iterator[str]:
    """Buffers, and parameter pools, that are not aligned or padded as the devices ask that touch them."""
    devices = devices_of_buffers(plan)
    for buffer in plan.buffers.values():
        if buffer.place.kind is PlaceKind.STACK:
            continue
        for device in devices[buffer.name]:
            if buffer.alignment % device.touch_alignment:
                asked = device.touch_alignment
                yield f"'{buffer.name}' is aligned to {buffer.alignment}, '{device.name}' asks for {asked}"
        needed = _line_needed(plan, buffer, devices[buffer.name])
        for line in (needed, buffer.line_bytes):
            if line and buffer.alignment % line:
                yield f"'{buffer.name}' is aligned to {buffer.alignment}, and has lines of {line} B"
        if needed > buffer.line_bytes:
            yield f"'{buffer.name}' has lines of {buffer.line_bytes} B to itself, it needs those of {needed} B"
    for pool in plan.pools_of(Role.PARAMETERS):
        line = line_of_parameters(plan, pool.name)
        if pool.used_bytes % line or pool.alignment % line:
            yield (
                f"pool '{pool.name}' has {pool.used_bytes} B aligned to {pool.alignment}, not whole lines of {line} B"
            )


def _line_needed(plan: Plan, buffer: PlannedBuffer, devices: tuple[Device, ...]) -> int:
    """The largest cache line that the buffer may not share where it lies, 0 if it may share all."""
    place = buffer.place
    match place.kind:
        case PlaceKind.STACK | PlaceKind.CONSTANT:  # one device's own; what nobody writes
            return 0
        case PlaceKind.CALLER:
            memories = plan.device.reached_memories
        case PlaceKind.PLANNED | PlaceKind.ARENA:
            memories = (plan.pools[place.name].memory,) if place.name in plan.pools else ()
    return max((_line_seen(plan, memory, devices) for memory in memories), default=0)


def _line_seen(plan: Plan, name: str, devices: tuple[Device, ...]) -> int:
    memory = plan.hardware.find_memory(name)
    if memory is None or not memory.is_writable:
        return 0
    incoherent = [
        device.cache_line_bytes
        for device in devices
        if any(reach.memory == name and not reach.is_coherent for reach in device.reach)
    ]
    return max(incoherent, default=0)
