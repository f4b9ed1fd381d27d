"""What may be tried where a model does not fit, without sizes: pools, pins, rows, and places of inputs and outputs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from bytewright import ir
from bytewright.compiler.remedy.remedy import Remedy, role_of_pin
from bytewright.compiler.remedy.room import LEAST_BYTES, ROLES
from bytewright.compiler.trial import Conditions
from bytewright.options import Pin, Rows
from bytewright.target.model import DEFAULT_PROVIDER, Device, Memory, Pool, Role, Target


def named_pools(target: Target, devices: tuple[Device, ...], tags: tuple[str, ...]) -> Iterator[Remedy]:
    """Pools with the names of scopes that the target does not have, all of a role in one memory."""
    for role, memory in product(ROLES, target.memories):
        is_reached = any(device.reaches(memory.name) for device in devices)
        if is_reached and (memory.is_writable or role is Role.PARAMETERS):
            yield Remedy(pools=tuple(_new_pool(target, tag, memory, role) for tag in tags))


@dataclass(frozen=True, slots=True)
class Changes:
    """What may be tried, without sizes.

    Attributes:
        rows: Other ways to run layers by rows, which lead to other plans.
        io: Other places of inputs and outputs.
    """

    conditions: Conditions
    devices: tuple[Device, ...]
    rows: tuple[Rows, ...]
    io: tuple[ir.Io, ...]

    def small(self, rows: Rows | None, io: ir.Io | None) -> Iterator[Remedy]:
        """One of these two alone, or else, from little to much, a pool or other pins."""
        if rows is not None or io is not None:
            yield Remedy(rows=rows, io=io)
            return
        yield from self.pools()
        if self.conditions.options.pins:
            yield from self.pins()

    def most_generous(self, rows: Rows | None, io: ir.Io | None) -> Iterator[Remedy]:
        """Every memory that is not used yet, and pins out of the way."""
        target, pins = self.conditions.target, self.conditions.options.pins
        pools = tuple(
            pool for memory in target.memories for pool in _addable(target, self.devices, ROLES, memory)
        )
        change = Remedy(pools=pools, rows=rows, io=io)
        yield change
        if pins:
            for pool in (*target.pools, *pools):
                yield replace(change, pins=_all_pinned(self.conditions, pool))
            yield replace(change, without=pins)

    def pools(self, own: tuple[Role, ...] = ROLES) -> Iterator[Remedy]:
        """One pool more, or one of each role in one memory."""
        target = self.conditions.target
        for roles in dict.fromkeys((*((role,) for role in own), own)):
            for memory in target.memories:
                pools = _addable(target, self.devices, roles, memory)
                if len(pools) == len(roles):
                    yield Remedy(pools=pools)

    def pins(self) -> Iterator[Remedy]:
        """Other pools for what is pinned, or pins left out."""
        target, pins = self.conditions.target, self.conditions.options.pins
        for pin in reversed(pins):
            for pool in target.pools_of(role_of_pin(pin, target)):
                if pool.name != pin.pool:
                    yield Remedy(pins=(pin.moved_to(pool.name),))
        for pool in target.pools:
            yield Remedy(pins=_all_pinned(self.conditions, pool))
        for pin in reversed(pins):
            yield Remedy(without=(pin,))
        yield Remedy(without=pins)


def _all_pinned(conditions: Conditions, pool: Pool) -> tuple[Pin, ...]:
    """Every pin to a pool of the same role, or to none, led to this one."""
    pins = [pin for pin in conditions.options.pins if role_of_pin(pin, conditions.target) is pool.role]
    return tuple(pin.moved_to(pool.name) for pin in pins)


def _addable(
    target: Target, devices: tuple[Device, ...], roles: tuple[Role, ...], memory: Memory
) -> tuple[Pool, ...]:
    """A pool for each role that some device would find nothing else for in the memory."""
    reaching = [device.name for device in devices if device.reaches(memory.name)]
    pools: list[Pool] = []
    for role in roles:
        known = [pool for pool in target.pools_in(memory.name) if pool.role is role]
        is_served = all(any(name in pool.devices for pool in known) for name in reaching)
        if is_served or (role is Role.WORKSPACE and not memory.is_writable):
            continue
        taken = {*(p.name for p in (*target.pools, *pools)), *(tag.name for tag in target.scope_tags)}
        name = memory.name if memory.name not in taken else f"{memory.name}_{role.value}"
        pools.append(_new_pool(target, name, memory, role))
    return tuple(pools)


def _new_pool(target: Target, name: str, memory: Memory, role: Role) -> Pool:
    devices = tuple(device.name for device in target.devices_reaching(memory.name))
    return Pool(name, memory.name, role, LEAST_BYTES, provider=DEFAULT_PROVIDER[role], devices=devices)
