"""Cache lines: which buffers need lines of their own, because devices touch them that see a memory without coherence.

Where one device keeps bytes of a memory in a cache and another one reaches them behind it, a line that holds bytes of
both is written back, or thrown away, as a whole: with it goes what the other one has written beside. So what such a
device touches has its lines to itself as long as it lives. Nothing writes the lines of a memory that is read-only, and
constants may share lines with each other: nobody writes them during a run, and a line without changes is neither
written back nor missed. At the edges of a parameter pool in memory that can be written begins what is not planned.
"""

from collections.abc import Iterable, Mapping

from bytewright import ir
from bytewright.ir.analyses.touch import Touches, constant_touches
from bytewright.target.model import Device, Target


def line_bytes(memories: Iterable[str], touches: Touches, target: Target) -> int:
    """The largest line that a buffer must not share, wherever in these memories it ends; 0 if it may share all."""
    return max((device.cache_line_bytes for device, _ in _incoherent(memories, touches, target)), default=0)


def line_reason(memories: Iterable[str], touches: Touches, target: Target) -> str:
    """Why it must not: the device with the largest line, and the first memory that it sees so."""
    found = _incoherent(memories, touches, target)
    device, memory = max(found, key=lambda item: item[0].cache_line_bytes)  # the first of those
    return (
        f"device '{device.name}' touches it and sees memory '{memory}' without coherence: it has its lines of "
        f"{device.cache_line_bytes} B to itself"
    )


def _incoherent(memories: Iterable[str], touches: Touches, target: Target) -> list[tuple[Device, str]]:
    found: list[tuple[Device, str]] = []
    for memory in (target.memory(name) for name in dict.fromkeys(memories)):
        for device in (target.device(touch.device) for touch in touches):
            reach = device.find_reach(memory.name)
            if memory.is_writable and reach is not None and not reach.is_coherent:
                found.append((device, memory.name))
    return found


def parameter_lines(
    module: ir.Module, target: Target, pool_of: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Lines that parameter pools have to begin and end with, by pool, where a constant asks for it.

    Args:
        module: With candidates.
        target: The target.
        pool_of: The pools of the constants, by name; without it, all that they may go to count.
    """
    found: dict[str, int] = {}
    if all(reach.is_coherent for device in target.devices for reach in device.reach):
        return found
    touches = constant_touches(module, target)
    for constant in module.constant_buffers:
        name = constant.buffer.name
        pools = constant.storage.candidates or ()
        for pool in pools if pool_of is None else [pool for pool in pools if pool == pool_of.get(name)]:
            line = line_bytes((target.pool(pool).memory,), touches[name], target)
            if line:
                found[pool] = max(found.get(pool, 0), line)
    return found
