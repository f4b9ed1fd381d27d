"""What the stacks and pools of a memory leave of it, and what a pool gets that takes the rest."""

from dataclasses import replace

from bytewright.target.model import Memory, Pool, Target
from bytewright.target.packing import Part, packed_bytes, room_bytes

STACK_ALIGNMENT = 8  # at least, in every calling convention


def with_remainders(target: Target) -> Target:
    """The target with every pool whose size was omitted as large as what its memory has left.

    Assumes that `find_problems` found none.
    """
    pools = (
        replace(pool, size_bytes=bytes_left(target, target.memory(pool.memory)))
        if pool.takes_remainder
        else pool
        for pool in target.pools
    )
    return replace(target, pools=tuple(pools))


def limit_bytes(target: Target, pool: Pool) -> int | None:
    """The limit of a pool, which may still have to be computed; `None` for none."""
    if not pool.takes_remainder:
        return pool.size_bytes
    left_bytes = bytes_left(target, target.memory(pool.memory))
    return None if left_bytes is None else max(left_bytes, 0)


def fixed_parts(target: Target, memory: Memory) -> list[Part]:
    """Stacks and pools of known size in a memory, and what it keeps for pools of others.

    A stack without a limit counts with its reserve, which is the part that is known to be needed. Bytes are loaded
    from read-only memories into others, so the size of what a memory keeps never depends on its own remainder.
    """
    parts = [
        Part(
            context.max_stack_size_bytes or context.stack_reserve_bytes,
            STACK_ALIGNMENT,
            f"stack of {context.name!r}",
        )
        for context in target.contexts
        if context.memory == memory.name
    ]
    parts += [
        Part(pool.size_bytes, pool.alignment, f"{pool.role.value} pool {pool.name!r}")
        for pool in target.pools_in(memory.name)
        if not pool.takes_remainder and pool.size_bytes is not None
    ]
    for pool in () if memory.is_writable else target.pools_loaded_from(memory.name):
        destination = target.find_memory(pool.memory)
        if destination is not None and destination.is_writable:
            what = f"the bytes that {pool.role.value} pool {pool.name!r} is loaded from"
            alignment = 1 if pool.is_copied else pool.alignment
            parts.append(Part(limit_bytes(target, pool) or 0, alignment, what))
    return parts


def bytes_left(target: Target, memory: Memory) -> int | None:
    """What stacks and pools of known size leave of a memory, below 0 if it is less than nothing; None for no limit.

    Where a pool takes the remainder, it is the size that this pool can have at its alignment.
    """
    if memory.size_bytes is None:
        return None
    parts = fixed_parts(target, memory)
    open_pools = [pool for pool in target.pools_in(memory.name) if pool.takes_remainder]
    if open_pools:
        return room_bytes(parts, max(pool.alignment for pool in open_pools), memory.size_bytes)
    return memory.size_bytes - packed_bytes(parts)
