"""Room in memories that are too full: what their pools could be without, and sizes that fit."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from bytewright.target.capacity import bytes_left
from bytewright.target.model import Memory, Pool, Role, Target

ROLES = (Role.WORKSPACE, Role.PARAMETERS)
"""Of pools whose sizes are options."""
LEAST_BYTES = 1
"""Of a pool that nothing is in."""


NONE_NEEDED: Mapping[str, int] = MappingProxyType({})
"""Of a model that is not looked at."""


def with_pools(target: Target, changed: Mapping[str, Pool]) -> Target:
    """The target with other pools in the place of those with their names."""
    return replace(target, pools=tuple(changed.get(pool.name, pool) for pool in target.pools))


def with_sizes(target: Target, sizes: Mapping[str, int | None]) -> Target:
    """The target with pools of these sizes; None for no limit."""
    return with_pools(
        target,
        {n: replace(target.pool(n), size_bytes=size, takes_remainder=False) for n, size in sizes.items()},
    )


def resized(target: Target, sizes: Mapping[str, int]) -> Target:
    """The target with these sizes; pools of no bytes go."""
    pools = with_sizes(target, sizes).pools
    return replace(target, pools=tuple(pool for pool in pools if sizes.get(pool.name) != 0))


def shrunk(
    target: Target,
    kept: Collection[str] = (),
    tops: Mapping[str, int] = NONE_NEEDED,
    *,
    roles: Collection[Role] = ROLES,
    least_bytes: int = LEAST_BYTES,
) -> dict[str, int]:
    """Smaller sizes for pools, the last first, as far as they are needed to fit into each memory.

    Args:
        target: The target.
        kept: Pools that keep their size.
        tops: Bytes that pools need, by name.
        roles: Of pools that are made smaller.
        least_bytes: What each of them keeps.
    """
    sizes: dict[str, int] = {}
    for memory in target.memories:
        for pool in reversed(target.pools_in(memory.name)):
            current = resized(target, sizes)
            if missing_bytes(current, memory, tops) <= 0:
                break
            if pool.name in kept or pool.role not in roles or pool.takes_remainder or pool.size_bytes is None:
                continue
            floor_bytes = max(tops.get(pool.name, 0), least_bytes)
            room = room_for(_settled(current, memory, tops), pool)
            if room is not None and floor_bytes < pool.size_bytes:
                sizes[pool.name] = max(room, floor_bytes)
    return sizes


def missing_bytes(target: Target, memory: Memory, tops: Mapping[str, int] = NONE_NEEDED) -> int:
    """What a memory has too little, where pools that take what is left of it need no more than this."""
    return -(bytes_left(_settled(target, memory, tops), memory) or 0)


def room_for(target: Target, pool: Pool) -> int | None:
    """The largest size that a pool can have beside what else its memory holds; None for no limit."""
    opened = replace(pool, size_bytes=None, takes_remainder=True)
    return bytes_left(with_pools(target, {pool.name: opened}), target.memory(pool.memory))


def _settled(target: Target, memory: Memory, tops: Mapping[str, int]) -> Target:
    """The target whose pools that take what is left of a memory have no more than they need."""
    open_pools = (pool.name for pool in target.pools_in(memory.name) if pool.takes_remainder)
    return with_sizes(target, {name: max(tops.get(name, 0), LEAST_BYTES) for name in open_pools})
