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
from bytewright.target.model import Device, Target


def makers(target: Target, wanted: str | None = None) -> tuple[Device, ...]:
    """Who may make a copy, best first: who is wanted, the default device, others that run C, those that only copy."""
    default = target.default_device_name
    return tuple(sorted(target.devices, key=lambda d: (d.name != wanted, d.name != default, not d.runs_c)))


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

    def find(self, sources: tuple[int, ...], destination: int, wanted: str | None = None) -> tuple[Hop, ...]:
        """The shortest way from where a value is to one of some places; none where there is no way.

        Args:
            sources: Of each memory that the value may be in: the places that it may have.
            destination: The places of which one will do.
            wanted: The device that should copy, if it can.
        """
        devices = makers(self.pools.target, wanted)
        reached: dict[str, tuple[Hop, ...]] = {}
        ends = [
            ((), device)
            for device in devices
            if all(self.pools.of_device(device.name) & places for places in sources)
        ]
        while ends:
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

    def _between(self, device: Device) -> Iterator[str]:
        """The pools that a device may leave something in for another one."""
        for pool in self.pools.target.workspace_pools:
            if not pool.is_for_io and self.pools.of_device(device.name) & self.pools.of_scope(
                ir.pool_scope(pool.name)
            ):
                yield pool.name
