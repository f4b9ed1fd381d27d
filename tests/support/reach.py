"""What a target says of a device's view of the memories."""

from __future__ import annotations

from bytewright.target.model import Target


def address_seen_by(target: Target, device_name: str, memory_name: str) -> int | None:
    """Where a device sees a memory begin; `None` if it does not reach it or no base is known."""
    for entry in target.device(device_name).reach:
        if entry.memory == memory_name:
            return target.memory(memory_name).base if entry.base is None else entry.base
    return None
