"""Ways from one place to another: through which pools, and who copies each part of the way.

One device that reaches both ends is the whole way. Where none is there, a value goes through pools in between, the
fewest that will do. Of several devices, and of several pools, those that come first are taken: devices as `makers` has
them, pools in the target's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.analyses.homes import Pools
from bytewright.target.mistake import listing
from bytewright.target.model import Device, Target


def makers(target: Target, wanted: str | None = None) -> tuple[Device, ...]:
    """Who may make a copy, best first: who is wanted, the default device, others that run C, those that only copy."""
    default, able = target.default_device_name, [device for device in target.devices if device.copies]
    return tuple(sorted(able, key=lambda d: (d.name != wanted, d.name != default, not d.runs_c)))


def what_makers_reach(target: Target) -> tuple[str, ...]:
    """Notes beside a copy that nobody can make: the memories of who copies, and who does not."""
    able = (
        listing(f"'{device.name}' reaches", device.reached_memories)
        for device in target.devices
        if device.copies
    )
    others = (device for device in target.devices if not device.copies)
    return (
        *able,
        *(f"'{device.name}' copies nothing: its driver takes command streams alone" for device in others),
    )


@dataclass(frozen=True, slots=True)
class Hop:
    """A part of a way.

    Attributes:
        device: Who copies.
        pool: Where to; None for the last part, which ends where the way does.
    """

    device: Device
    pool: str | None = None


@dataclass(frozen=True, slots=True)
class Routes:
    """The ways of a target; places are bits of `pools`."""

    pools: Pools

    @property
    def most_hops(self) -> int:
        """The most that a shortest way can have: each ends in a pool that none before does."""
        return len(self.pools.target.workspace_pools) + 1

    def find(
        self,
        sources: tuple[int, ...],
        destination: int,
        wanted: str | None = None,
        most_hops: int | None = None,
    ) -> tuple[Hop, ...]:
        """The shortest way from where a value is to one of some places; none where there is no way.

        Args:
            sources: Of each memory that the value may be in: the places that it may have.
            destination: The places of which one will do.
            wanted: The device that should copy, if it can.
            most_hops: Longer ways do not count.
        """
        devices = makers(self.pools.target, wanted)
        reached: dict[str, tuple[Hop, ...]] = {}
        ends = [
            ((), device)
            for device in devices
            if all(self.pools.of_device(device.name) & places for places in sources)
        ]
        for _ in range(self.most_hops if most_hops is None else most_hops):
            further: dict[str, tuple[Hop, ...]] = {}
            for before, device in ends:
                if self.pools.of_device(device.name) & destination:
                    return (*before, Hop(device))
            for before, device in ends:
                for pool in self._between(device):
                    if pool not in reached:
                        further.setdefault(pool, (*before, Hop(device, pool)))
            reached.update(further)
            ends = [
                (way, device)
                for pool, way in further.items()
                for device in devices
                if self.pools.of_device(device.name) & self.pools.of_scope(ir.pool_scope(pool))
            ]
        return ()

    def what_is_missing(self, source: int, destination: int) -> str:
        """The help where there is no way: a device from where a value gets to, to where it gets on from."""
        ends = [
            dict.fromkeys(self.pools.target.pool(pool).memory for pool in self._joined(places))
            for places in (source, destination)
        ]
        near, far = (" or ".join(end) for end in ends)
        if not near or not far:
            return "a device of the target that copies and reaches both memories"
        return f"a device of the target that copies and reaches {near}, and {far}"

    def _joined(self, places: int) -> tuple[str, ...]:
        """The pools of some places, and those to which or from which devices copy what is there, however far."""
        found = {name: None for name in self.pools.names(places) if self.pools.target.find_pool(name)}
        pending = [places]
        while pending:
            near = pending.pop()
            for device in makers(self.pools.target):
                if self.pools.of_device(device.name) & near:
                    further = [pool for pool in self._between(device) if pool not in found]
                    found.update(dict.fromkeys(further))
                    pending.extend(self.pools.of_scope(ir.pool_scope(pool)) for pool in further)
        return tuple(found)

    def _between(self, device: Device) -> Iterator[str]:
        """The pools that a device may leave something in for another one."""
        for pool in self.pools.target.workspace_pools:
            if not pool.is_for_io and self.pools.of_device(device.name) & self.pools.of_scope(
                ir.pool_scope(pool.name)
            ):
                yield pool.name
