"""Copies that placement makes, and the devices that make each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.place.item_homes import ItemHomes
from bytewright.place.routes import Hop, Routes, makers, what_makers_reach
from bytewright.place.structural_keys import StructuralKeys


@dataclass(slots=True)
class Copy:
    """One copy of a value.

    Attributes:
        source: The item that is copied.
        home: The number of its own home, of which the copy is a member.
        place: Where the copy is.
        reason: Why it is needed.
        way: Who makes it: one device, or several by way of pools that both reach who meet there.
    """

    source: int
    home: int
    place: ir.VirtualDevice
    reason: str
    way: tuple[Hop, ...] = ()


@dataclass(slots=True)
class CopyMakers:
    """Chooses who makes each copy: the default device, another one that runs C, or one that copies by itself.

    Where none of them reaches both ends, several make it by turns.

    Attributes:
        most_hops: How many, at most.
    """

    homes: ItemHomes
    keys: StructuralKeys
    most_hops: int

    def choose(self, copies: Iterable[Copy], explicit: Mapping[int, Copy]) -> None:
        """Sets the ways of copies, and narrows both ends of each to what those reach who copy from and to there.

        Args:
            copies: That nobody asked for.
            explicit: By the items that explicit copies give.

        Raises:
            CompileError: BW703 where no way leads from one end to the other; at the collector's stop, all at once.
        """
        asked = {id(copy): item for item, copy in explicit.items()}
        for copy in sorted((*copies, *explicit.values()), key=self._key):
            wanted = self._wanted(asked[id(copy)]) if id(copy) in asked else None
            with self.homes.collector.catch():
                copy.way = self._way(copy, wanted)
                for end, hop in ((copy.source, copy.way[0]), (copy.home, copy.way[-1])):
                    self.homes.homes.narrow(end, self.homes.pools.of_device(hop.device.name))
                if len(copy.way) > 1:
                    self.homes.settle(copy.home)

    def _key(self, copy: Copy) -> tuple[object, ...]:
        places, keys = self.homes.places, self.keys
        ends = (copy.source, copy.home)
        return (*map(places, ends), *map(keys.of, ends), str(copy.place))

    def _wanted(self, item: int) -> str | None:
        """The device that an explicit copy names."""
        program = self.homes.program
        flow = program.copies[item]
        assert flow.node is not None
        operation = program.module.functions[flow.function].nodes[flow.node].operation
        return operation.by if isinstance(operation, ir.CopyOperation) else None

    def _way(self, copy: Copy, wanted: str | None) -> tuple[Hop, ...]:
        homes = self.homes
        source, destination = homes.homes.of(copy.source), homes.homes.of(copy.home)
        routes = Routes(homes.pools)
        found = routes.find((source,), destination, wanted, self.most_hops)
        if found:
            return found
        sides = [
            ", ".join(homes.pools.names(end)) or "memory of the application" for end in (source, destination)
        ]
        reason = homes.devices.reason_of(copy.source)
        raise compile_error(
            "BW703",
            f"{homes.program.name_of(copy.source)} is needed on device '{copy.place.device}', and no device can copy "
            f"it there",
            (
                f"it is on device '{homes.on[copy.source]}', in {sides[0]}; the copy would be in {sides[1]}",
                *(() if reason is None else (reason,)),
                *self._out_of_reach(copy),
                *what_makers_reach(homes.program.target),
            ),
            routes.what_is_missing(source, destination),
        )

    def _out_of_reach(self, copy: Copy) -> Iterator[str]:
        """Which memories of the application's keep devices from a copy that reach its other end."""
        homes, target = self.homes, self.homes.program.target
        for end, other in ((copy.source, copy.home), (copy.home, copy.source)):
            if homes.pools.names(homes.homes.of(end)):
                continue
            for device in makers(target, None):
                if homes.homes.admits(other, homes.pools.of_device(device.name)):
                    missing = [m for m in target.default_device.reached_memories if not device.reaches(m)]
                    where = " or ".join(f"'{name}'" for name in missing)
                    yield f"the application may have it in memory {where}, which '{device.name}' does not reach"
