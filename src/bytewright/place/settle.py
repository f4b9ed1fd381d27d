"""Where values lie, once their devices are known: lent where a pool is left that all reach, else copied.

Items that are one memory become one home as far as their places have something in common; then each home is lent to the
devices that read it, in the target's order, as long as a place is left. What is left over gets a copy, one for a value
and destination. A home only ever narrows, so where a copy was needed once it stays needed: none can be taken away.

An explicit copy is none where its ends still have a place in common then. It is erased, and all is settled again
without what it said of its result, which would be forgotten the next time as well.

Where not all can be had, what comes first is decided by places, by what computes a value and by what becomes of it,
never by names or order.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.diagnostics import Collector
from bytewright.ir.analyses.homes import Pools
from bytewright.ir.union_find import UnionFind
from bytewright.place.copy_makers import Copy, CopyMakers
from bytewright.place.flows import Flow, Program, Tie
from bytewright.place.infer_devices import Devices
from bytewright.place.item_homes import ItemHomes
from bytewright.place.structural_keys import StructuralKeys

_Key = tuple[int, int, int, int, int, int]


@dataclass(slots=True)
class Settled:
    """Where everything is.

    Attributes:
        places: Of each item.
        copies: What a flow that was cut reads instead, by the flow's number.
        after: Copies of what a node gives, by the item that the node gives and the copy is.
        made: Explicit copies by their items; those that are not needed are not there.
    """

    places: list[ir.VirtualDevice]
    reasons: list[str | None]
    copies: dict[int, Copy] = field(default_factory=dict[int, Copy])
    after: dict[int, Copy] = field(default_factory=dict[int, Copy])
    made: dict[int, Copy] = field(default_factory=dict[int, Copy])


def settle(
    program: Program, devices: Devices, io: ir.Io, most_hops: int = 1, *, is_told: bool = False
) -> Settled:
    """Decides what is lent and what is copied.

    Args:
        program: The graph.
        devices: Of its items.
        io: Where inputs and outputs are.
        most_hops: How many devices may pass on what is copied, at most.
        is_told: Whether the application is told which of its memories are left for inputs and outputs.

    Raises:
        CompileError: BW701 for scopes that contradict each other; BW702 for places that do not exist; BW703 where no
            device can make a copy.
    """
    keys, erased = StructuralKeys(program, devices), frozenset[int]()
    while True:
        collector = Collector()
        homes = ItemHomes(program, devices, io, Pools(program.target, is_told=is_told), collector, erased)
        settling = _Settling(homes, keys, most_hops)
        found = settling.run()
        if not found:
            return settling.finish()
        erased |= found


@dataclass(slots=True)
class _Settling:
    homes: ItemHomes
    keys: StructuralKeys
    most_hops: int
    cut: dict[int, tuple[str, Flow]] = field(default_factory=dict[int, tuple[str, Flow]])
    cut_flows: set[int] = field(default_factory=set[int])  # by identity
    depths: list[int] = field(default_factory=list[int])  # of items, in annotations

    @property
    def program(self) -> Program:
        return self.homes.program

    def run(self) -> Set[int]:
        """Makes homes, and lends them; returns the explicit copies that are none, and were not known to be."""
        self.homes.place_all()
        self.join_aliases()
        erased = self.join_copies(are_equal=True)
        self.lend()
        return erased | self.join_copies(are_equal=False)

    def join_aliases(self) -> None:
        """Makes one memory of what may be one: all that is tied together, or else as much of it as is possible."""
        homes = self.homes
        aliases = [(number, flow) for number, flow in enumerate(self.program.flows) if homes.is_alias(flow)]
        groups = UnionFind()
        for _ in self.program.values:
            groups.add()
        for first, second in self.program.one_memory:
            groups.join(first, second)
        for _, flow in aliases:
            if flow.user is not None:
                groups.join(flow.value, flow.user)
        members: dict[int, list[int]] = {}
        for item in range(len(self.program.values)):
            members.setdefault(groups.find(item), []).append(item)
        hard = {group for group, items in members.items() if not homes.fit_together(items)}
        easy = [flow for _, flow in aliases if groups.find(flow.value) not in hard]
        for flow in easy:
            assert flow.user is not None
            homes.join(flow.value, flow.user)
        rest = [(number, flow) for number, flow in aliases if groups.find(flow.value) in hard]
        if rest:
            keys = {number: self.key_of(flow) for number, flow in rest}
            for number, flow in sorted(rest, key=lambda pair: keys[pair[0]]):
                self.join_or_cut(number, flow)
            self.join_again()

    def key_of(self, flow: Flow) -> _Key:
        homes, keys = self.homes, self.keys
        user = flow.value if flow.user is None else flow.user
        return (
            self.depth_of(flow),
            homes.places(flow.value),
            homes.places(user),
            keys.of(flow.value),
            keys.of(user),
            flow.operand,
        )

    def depth_of(self, flow: Flow) -> int:
        """Annotations of annotations come first, from the inside, because one that is cut is a value of its own."""
        if flow.user is None or self.homes.behind(flow.user) is not flow:
            return 1 << 30
        if not self.depths:
            for item in range(len(self.program.values)):  # what is behind an item is an earlier one
                behind = self.homes.behind(item)
                self.depths.append(0 if behind is None else self.depths[behind.value] + 1)
        return self.depths[flow.user]

    def join_or_cut(self, number: int, flow: Flow) -> None:
        assert flow.user is not None
        homes = self.homes
        if homes.can_join(flow.value, flow.user):
            homes.join(flow.value, flow.user)
        elif flow.tie is Tie.FIXED:
            homes.must_join(flow.value, flow.user)
        else:
            self.cut[number] = (homes.on[flow.user], flow)
            if homes.behind(flow.user) is flow:
                homes.homes.narrow(flow.user, homes.reach(flow.user))

    def join_again(self) -> None:
        """Joins what was cut too early: what turned out to be the application's has more memories than pools."""
        homes, before = self.homes, -1
        while len(self.cut) != before:
            before = len(self.cut)
            for number, (_, flow) in list(self.cut.items()):
                assert flow.user is not None
                if homes.can_join(flow.value, flow.user):
                    homes.join(flow.value, flow.user)
                    del self.cut[number]

    def join_copies(self, *, are_equal: bool) -> Set[int]:
        """Joins the ends of explicit copies that have a place in common; of those at one place alone, or of all."""
        homes, joined = self.homes, set[int]()
        copies = {item: flow for item, flow in self.program.copies.items() if item not in homes.erased}
        for item in sorted(copies, key=lambda item: self.key_of(copies[item])):
            source = copies[item].value
            if are_equal and homes.now(source) != homes.now(item):
                continue
            if homes.can_join(source, item):
                homes.join(source, item)
                joined.add(item)
        return joined

    # Lending

    def lend(self) -> None:
        """Lets the devices that read a home into it, as far as a place is left."""
        homes, program = self.homes, self.program
        readers: dict[int, dict[str, list[int]]] = {}
        for number, flow in enumerate(program.flows):
            if flow.is_alias or flow.user in program.copies:
                continue
            device = program.target.default_device_name if flow.user is None else homes.on[flow.user]
            home = homes.homes.classes.find(flow.value)
            readers.setdefault(home, {}).setdefault(device, []).append(number)
        for home, by_device in readers.items():
            for device in program.target.devices:
                numbers = by_device.get(device.name, ())
                reach = homes.pools.of_device(device.name)
                if not numbers or homes.is_nowhere(home):
                    continue
                if homes.homes.admits(home, reach):
                    homes.homes.narrow(home, reach)
                else:
                    self.cut.update((n, (device.name, program.flows[n])) for n in numbers)

    # Copies

    def finish(self) -> Settled:
        """The places and copies that follow."""
        homes, program = self.homes, self.program
        self.cut_flows = {id(flow) for _, flow in self.cut.values()}
        copies: dict[tuple[int, str], list[Copy]] = {}
        found, after = self.copies_of_aliases(copies)
        self.copies_for_readers(copies, found)
        made = [copy for others in copies.values() for copy in others]
        explicit = {
            item: Copy(self.root(flow.value), item, homes.now(item), "")
            for item, flow in program.copies.items()
            if item not in homes.erased
        }
        CopyMakers(homes, self.keys, self.most_hops).choose([*made, *after.values()], explicit)
        homes.collector.stop_if_any()
        places = [homes.now(item) for item in range(len(program.values))]
        reasons = [self.reason(item) for item in range(len(program.values))]
        for copy in (*made, *after.values()):
            copy.place = replace(copy.place, scope=homes.scope_of(copy.home))
        return Settled(places, reasons, found, after, explicit)

    def copies_of_aliases(
        self, copies: dict[tuple[int, str], list[Copy]]
    ) -> tuple[dict[int, Copy], dict[int, Copy]]:
        """Copies between what could not be one memory: by the flow that reads one, and by the item that is one."""
        found: dict[int, Copy] = {}
        after: dict[int, Copy] = {}
        aliases = {number: flow for number, (_, flow) in self.cut.items() if self.homes.is_alias(flow)}
        for number in sorted(aliases, key=lambda number: self.key_of(aliases[number])):
            flow = aliases[number]
            assert flow.user is not None
            source = self.root(flow.value)
            copy = self.copy(source, self.homes.now(flow.user), flow.user)
            if flow.is_output:
                after[flow.user] = copy
                continue
            others = copies.setdefault((source, self.homes.on[flow.user]), [])
            found[number] = next((other for other in others if self.is_same(other, copy)), copy)
            if found[number] is copy:
                others.append(copy)
            self.homes.join(found[number].home, flow.user)
        return found, after

    def copies_for_readers(self, copies: dict[tuple[int, str], list[Copy]], found: dict[int, Copy]) -> None:
        """Copies for operators to which a home could not be lent; one that is there at the place serves as well."""
        for number, (device, flow) in self.cut.items():
            if self.homes.is_alias(flow):
                continue
            source = self.root(flow.value)
            others = copies.setdefault((source, device), [])
            if not others:
                place = ir.VirtualDevice(device, self.program.target.name)
                others.append(self.copy(source, place, None))
            found[number] = min(others, key=lambda copy: str(copy.place))

    def root(self, item: int) -> int:
        """What an item is another name of: an annotation that needed no copy, or a copy that was none."""
        while True:
            flow = self.homes.behind(item)
            if flow is None or id(flow) in self.cut_flows:
                return item
            item = flow.value

    def is_same(self, copy: Copy, other: Copy) -> bool:
        """Whether one copy can be the other as well."""
        return copy.place == other.place and self.homes.can_join(copy.home, other.home)

    def copy(self, source: int, place: ir.VirtualDevice, joined: int | None) -> Copy:
        homes = self.homes
        home = homes.add(place) if joined is None else joined
        left = homes.pools.names(homes.homes.of(source))
        where = f"in {', '.join(left)}" if left else "in memory of the application"
        own, other = homes.on[source], place.device
        needed = (
            f"and needed on device '{other}'"
            if own != other
            else f"and needed in {place.scope or 'other memory'}"
        )
        name = self.program.name_of(source)
        return Copy(source, home, place, f"{name} on device '{own}' is {where}, {needed}")

    def reason(self, item: int) -> str | None:
        """Why an item is where it is."""
        value = self.program.values[item]
        if value is not None and (item in self.program.stated or value.reason is not None):
            return value.reason
        homes = self.homes
        own, decided = homes.on[item], homes.devices.of(item)
        reason = homes.devices.reason_of(item)
        if own != decided:  # of the application, which has it out of reach
            reason = f"with the application, in memory that device '{decided}' does not reach"
        asked = homes.scope_reasons.get(homes.homes.classes.find(item))
        of_scope = None if asked is None else asked.text
        if asked is not None and asked.place.device not in (None, own):
            of_scope = f"its memory is that of another value: {of_scope}"
        both = [text for text in (reason, of_scope) if text is not None]
        return "; ".join(dict.fromkeys(both)) or None
