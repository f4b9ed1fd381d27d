"""Where values lie, once their devices are known: lent where a pool is left that all reach, else copied.

Items that are one memory become one home as far as their places have something in common; then each home is lent to the
devices that read it, in the target's order, as long as a place is left. What is left over gets a copy, one for a value
and destination. A home only ever narrows, so where a copy was needed once it stays needed: none can be taken away.

Where not all can be had, what comes first is decided by places and by what computes a value, never by names or order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import blake2b

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.homes import Homes, Pools
from bytewright.ir.union_find import UnionFind
from bytewright.ops.placement import DeviceCopy
from bytewright.place.flows import Asked, Flow, Program, Tie
from bytewright.place.infer_devices import Devices
from bytewright.target.mistake import listing

_Key = tuple[int, int, int, bytes, bytes, int]


@dataclass(slots=True)
class Copy:
    """One copy of a value.

    Attributes:
        source: The item that is copied.
        home: The number of its own home, of which the copy is a member.
        place: Where the copy is.
        by: The device that makes it.
        reason: Why it is needed.
    """

    source: int
    home: int
    place: ir.VirtualDevice
    reason: str
    by: str = ""


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


_ANYWHERE = -1  # the places of a home that no pool of its device can hold


def settle(program: Program, devices: Devices, io: ir.Io) -> Settled:
    """Decides what is lent and what is copied.

    Raises:
        CompileError: BW701 for scopes that contradict each other; BW702 for places that do not exist; BW703 where no
            device can make a copy.
    """
    return _Settling(program, devices, io).run()


@dataclass(slots=True)
class _Settling:
    program: Program
    devices: Devices
    io: ir.Io
    pools: Pools = field(init=False)
    homes: Homes = field(init=False)
    collector: Collector = field(default_factory=Collector)
    on: list[str] = field(default_factory=list[str])  # devices of items
    scopes: dict[int, ir.Scope | None] = field(default_factory=dict[int, "ir.Scope | None"])  # of homes
    scope_reasons: dict[int, str] = field(default_factory=dict[int, str])
    inputs: dict[int, None] = field(default_factory=dict[int, None])
    outputs: dict[int, None] = field(default_factory=dict[int, None])
    cut: dict[int, tuple[str, Flow]] = field(default_factory=dict[int, tuple[str, Flow]])
    unused: set[int] = field(default_factory=set[int])  # results of functions that nothing runs
    cut_flows: set[int] = field(default_factory=set[int])  # by identity
    keys: list[bytes] = field(default_factory=list[bytes])
    is_spread: bool = False  # whether anything is on another device than the default one

    def run(self) -> Settled:
        program = self.program
        self.pools = Pools(program.target)
        self.homes = Homes(self.pools)
        main = program.main
        self.inputs = {program.items[value.name]: None for value in main.parameters}
        self.outputs = dict.fromkeys(program.results[main.name])
        called = {
            name
            for function in program.module.functions
            for node in function.nodes
            if isinstance(node.operation, ir.ControlOperation)
            for name in node.operation.callees
        }
        self.unused = {
            item
            for name, items in program.results.items()
            if name not in called and name != main.name
            for item in items
        }
        self.on = [self.devices.of(item) for item in range(len(program.values))]
        self.put_inputs()
        self.is_spread = any(name != program.target.default_device_name for name in self.on)
        for item in range(len(program.values)):
            with self.collector.catch():
                self.place(item)
        self.collector.stop_if_any()
        for first, second in program.one_memory:
            self.must_join(first, second)
        self.collector.stop_if_any()
        self.join_aliases()
        dropped = self.drop_copies()
        self.lend()
        self.collector.stop_if_any()
        return self.finish(dropped)

    # Where each item may be by itself

    def put_inputs(self) -> None:
        """An input is the application's: what uses it may draw it to another device only if both reach it there."""
        default = self.program.target.default_device_name
        for item in self.inputs:
            is_reached = (
                self.pools.of_device(self.on[item]) & self.pools.input
                if self.io is ir.Io.CALLER
                else self.pools.share(default, self.on[item])
            )
            if item not in self.program.asked and not is_reached:
                self.on[item] = default

    def place(self, item: int) -> None:
        asked = sorted(self.program.asked.get(item, ()), key=lambda one: one.text)
        scope: ir.Scope | None = None
        for number, one in enumerate(asked):
            try:
                scope = ir.join_scopes(scope, one.place.scope)
            except ValueError as error:
                texts = tuple(dict.fromkeys(other.text for other in asked[: number + 1]))
                name = self.program.name_of(item)
                raise compile_error("BW701", f"{name} is to be at two places: {error}", texts) from None
        need, of_device = None, self.pools.of_device(self.on[item])
        of_default = self.pools.of_device(self.program.target.default_device_name)
        places = self.pools.of_scope(scope)
        if item in self.unused:
            pass  # nobody gets it anywhere
        elif item not in self.program.anchors or not places & of_device:
            places &= (
                of_device  # an annotation of what is elsewhere already says what its users reach, and no more
            )
        is_border = item in self.inputs or item in self.outputs
        if is_border and self.io is ir.Io.CALLER and scope is None:
            need = self.pools.input if item in self.inputs else self.pools.output
        elif is_border and self.is_spread:
            scope = ir.join_scopes(ir.WORKSPACE, scope)
            places &= self.pools.of_scope(scope) & of_default
        self.homes.add(places, need)
        self.scopes[item] = scope
        reason = next((one.text for one in asked if one.place.scope is not None), None)
        if reason is not None:
            self.scope_reasons[item] = reason
        if self.homes.of(item):
            return
        if asked or self.on[item] != self.program.target.default_device_name:
            self.refuse(item, asked, scope, is_border)
        self.homes.places[item] = _ANYWHERE  # there is no pool at all: storage says that better

    def refuse(self, item: int, asked: list[Asked], scope: ir.Scope | None, is_border: bool) -> None:
        """A place without a memory: it is said why, as long as storage will not say it better."""
        target, device, name = self.program.target, self.on[item], self.program.name_of(item)
        texts = tuple(one.text for one in asked) or (self.devices.reason_of(item) or "nothing asks for it",)
        if is_border and self.io is ir.Io.CALLER and scope is None:
            message = f"{name} is to be on device '{device}', which does not reach all memory that the application has"
            raise compile_error("BW702", message, texts, "--io workspace")
        may_use = self.pools.names(self.pools.of_device(device))
        where = "any pool for tensors" if scope is None else f"'{scope}'"
        raise compile_error(
            "BW702",
            f"{name} cannot be in {where} on device '{device}'",
            (*texts, listing(f"pools that device '{device}' may use", may_use)),
            f"a [[workspace]] of target '{target.name}' in a memory that '{device}' reaches"
            if not may_use
            else None,
        )

    # One memory

    def can_join(self, first: int, second: int) -> bool:
        homes = [self.homes.classes.find(item) for item in (first, second)]
        are_nowhere = all(self.homes.places[home] == _ANYWHERE for home in homes)
        return are_nowhere or self.homes.can_join(first, second)

    def join(self, first: int, second: int) -> None:
        a, b = self.homes.classes.find(first), self.homes.classes.find(second)
        if a == b:
            return
        scope = ir.join_scopes(self.scopes[a], self.scopes[b])
        reasons = sorted(self.scope_reasons[home] for home in (a, b) if home in self.scope_reasons)
        self.homes.join(a, b)
        home = self.homes.classes.find(a)
        self.scopes[home] = scope
        if reasons:
            self.scope_reasons[home] = reasons[0]

    def must_join(self, first: int, second: int) -> None:
        if self.can_join(first, second):
            self.join(first, second)
            return
        reasons = [self.why(first), self.why(second)]
        names = f"{self.program.name_of(first)} and {self.program.name_of(second)}"
        message = f"{names} are one memory, but their places have no pool in common"
        with self.collector.catch():
            raise compile_error("BW701", message, tuple(dict.fromkeys(reasons)))

    def why(self, item: int) -> str:
        home = self.homes.classes.find(item)
        because = self.scope_reasons.get(home) or self.devices.reason_of(item)
        return f"{self.program.name_of(item)} is {self.now(item)}" + (
            "" if because is None else f": {because}"
        )

    def now(self, item: int) -> ir.VirtualDevice:
        """The place of an item, as far as that is decided."""
        scope = self.scopes[self.homes.classes.find(item)]
        value = self.program.values[item]
        target = None if value is None else value.type.place.target
        return ir.VirtualDevice(self.on[item], target or self.program.target.name, scope)

    def join_aliases(self) -> None:
        """Makes one memory of what may be one: all that is tied together, or else as much of it as is possible."""
        aliases = [(number, flow) for number, flow in enumerate(self.program.flows) if flow.is_alias]
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
        hard = {group for group, items in members.items() if not self.fit_together(items)}
        easy = [flow for _, flow in aliases if groups.find(flow.value) not in hard]
        for flow in easy:
            assert flow.user is not None
            self.join(flow.value, flow.user)
        rest = [(number, flow) for number, flow in aliases if groups.find(flow.value) in hard]
        if rest:
            keys = {number: self.key_of(flow) for number, flow in rest}
            for number, flow in sorted(rest, key=lambda pair: keys[pair[0]]):
                self.join_or_cut(number, flow)

    def fit_together(self, items: list[int]) -> bool:
        """Whether items have a place in common."""
        homes = list(dict.fromkeys(map(self.homes.classes.find, items)))
        places = ~0
        needs = {self.homes.needs[home] for home in homes}
        need = next((n for n in (self.pools.input, self.pools.output) if n in needs), self.pools.planned)
        for home in homes:
            places &= self.homes.places[home]
        return bool(places & need) or len(homes) == 1 or places == _ANYWHERE

    def key_of(self, flow: Flow) -> _Key:
        if not self.keys:
            self.keys = structural_keys(self.program)
        user = flow.value if flow.user is None else flow.user
        home, other = self.homes.classes.find(flow.value), self.homes.classes.find(user)
        places = self.homes.places
        return (
            self.depth_of(flow),
            places[home],
            places[other],
            self.keys[flow.value],
            self.keys[user],
            flow.operand,
        )

    def depth_of(self, flow: Flow) -> int:
        """Annotations of annotations come first, from the inside, because one that is cut is a value of its own."""
        depth, anchors = 0, self.program.anchors
        while flow.user is not None and anchors.get(flow.user) is flow:
            depth += 1
            if flow.value not in anchors:
                return depth
            flow = anchors[flow.value]
        return 1 << 30

    def join_or_cut(self, number: int, flow: Flow) -> None:
        assert flow.user is not None
        if self.can_join(flow.value, flow.user):
            self.join(flow.value, flow.user)
        elif flow.tie is Tie.FIXED:
            self.must_join(flow.value, flow.user)
        else:
            self.cut[number] = (self.on[flow.user], flow)
            if self.program.anchors.get(flow.user) is flow:
                self.homes.narrow(flow.user, self.pools.of_device(self.on[flow.user]))

    def drop_copies(self) -> set[int]:
        """Explicit copies between equal places are none."""
        dropped: set[int] = set()
        self.cut_flows = {id(flow) for _, flow in self.cut.values()}
        for item, flow in self.program.copies.items():
            source = self.root(flow.value, dropped)
            if self.now(source) == self.now(item) and self.can_join(flow.value, item):
                self.join(flow.value, item)
                dropped.add(item)
        return dropped

    # Lending

    def lend(self) -> None:
        """Lets the devices that read a home into it, as far as a place is left."""
        readers: dict[int, dict[str, list[int]]] = {}
        for number, flow in enumerate(self.program.flows):
            if flow.is_alias or flow.user in self.program.copies:
                continue
            device = self.program.target.default_device_name if flow.user is None else self.on[flow.user]
            home = self.homes.classes.find(flow.value)
            readers.setdefault(home, {}).setdefault(device, []).append(number)
        for home, by_device in readers.items():
            for device in self.program.target.devices:
                numbers = by_device.get(device.name, ())
                reach = self.pools.of_device(device.name)
                if not numbers or self.homes.places[home] == _ANYWHERE:
                    continue
                if self.homes.admits(home, reach):
                    self.homes.narrow(home, reach)
                else:
                    self.cut.update((n, (device.name, self.program.flows[n])) for n in numbers)

    # Copies

    def finish(self, dropped: set[int]) -> Settled:
        self.cut_flows = {id(flow) for _, flow in self.cut.values()}
        copies: dict[tuple[int, str], list[Copy]] = {}
        found: dict[int, Copy] = {}
        after: dict[int, Copy] = {}
        for number, flow in self.cut_aliases():
            assert flow.user is not None
            source = self.root(flow.value, dropped)
            copy = self.copy(source, self.now(flow.user), flow.user)
            if flow.is_output:
                after[flow.user] = copy
                continue
            others = copies.setdefault((source, self.on[flow.user]), [])
            found[number] = next((c for c in others if self.is_same(c, copy)), copy)
            if found[number] is copy:
                others.append(copy)
            self.join(found[number].home, flow.user)
        for number, (device, flow) in self.cut.items():
            if not flow.is_alias:
                source = self.root(flow.value, dropped)
                others = copies.setdefault((source, device), [])
                if not others:
                    place = ir.VirtualDevice(device, self.program.target.name)
                    others.append(self.copy(source, place, None))
                found[number] = min(others, key=lambda copy: str(copy.place))
        made = [copy for others in copies.values() for copy in others]
        explicit = {
            item: Copy(self.root(flow.value, dropped), item, self.now(item), "")
            for item, flow in self.program.copies.items()
            if item not in dropped
        }
        self.find_makers([*made, *after.values()], explicit)
        self.collector.stop_if_any()
        places = [self.now(item) for item in range(len(self.program.values))]
        reasons = [self.reason(item) for item in range(len(self.program.values))]
        for copy in (*made, *after.values()):
            copy.place = replace(copy.place, scope=self.scopes[self.homes.classes.find(copy.home)])
        return Settled(places, reasons, found, after, explicit)

    def root(self, item: int, dropped: set[int]) -> int:
        """What an item is another name of: an annotation that needed no copy, or a copy that was none."""
        program, cut = self.program, self.cut_flows
        while True:
            flow = program.copies[item] if item in dropped else program.anchors.get(item)
            if flow is None or id(flow) in cut:
                return item
            item = flow.value

    def cut_aliases(self) -> list[tuple[int, Flow]]:
        """The flows between what could not be one memory, in an order of their own."""
        aliases = [(number, flow) for number, (_, flow) in self.cut.items() if flow.is_alias]
        keys = {number: self.key_of(flow) for number, flow in aliases}
        return sorted(aliases, key=lambda pair: keys[pair[0]])

    def is_same(self, copy: Copy, other: Copy) -> bool:
        """Whether one copy can be the other as well."""
        return copy.place == other.place and self.can_join(copy.home, other.home)

    def copy(self, source: int, place: ir.VirtualDevice, joined: int | None) -> Copy:
        if joined is None:
            home = self.homes.add(self.pools.resolve(place))
            self.scopes[home] = place.scope
        else:
            home = joined
        left = self.pools.names(self.homes.of(source))
        where = f"in {', '.join(left)}" if left else "in memory of the application"
        name = self.program.name_of(source)
        own, other = self.on[source], place.device
        needed = (
            f"and needed on device '{other}'"
            if own != other
            else f"and needed in {place.scope or 'other memory'}"
        )
        return Copy(source, home, place, f"{name} on device '{own}' is {where}, {needed}")

    def reason(self, item: int) -> str | None:
        value = self.program.values[item]
        if value is not None and (item in self.program.stated or value.reason is not None):
            return value.reason
        reason = self.devices.reason_of(item)
        of_scope = self.scope_reasons.get(self.homes.classes.find(item))
        both = [text for text in (reason, of_scope) if text is not None]
        return "; ".join(dict.fromkeys(both)) or None

    def find_makers(self, copies: list[Copy], explicit: dict[int, Copy]) -> None:
        """Chooses who makes each copy: the default device, another one that runs C, or one that copies by itself."""
        pending = [*copies, *explicit.values()]
        if not pending:
            return
        if not self.keys:
            self.keys = structural_keys(self.program)
        asked = {id(explicit[item]): item for item in explicit}

        def key(copy: Copy) -> tuple[object, ...]:
            source, home = map(self.homes.classes.find, (copy.source, copy.home))
            return (
                self.homes.places[source],
                self.homes.places[home],
                self.keys[copy.source],
                str(copy.place),
            )

        for copy in sorted(pending, key=key):
            wanted = self.maker_of(asked[id(copy)]) if id(copy) in asked else None
            with self.collector.catch():
                copy.by = self.maker(copy, wanted)
                reach = self.pools.of_device(copy.by)
                self.homes.narrow(copy.source, reach)
                self.homes.narrow(copy.home, reach)

    def maker_of(self, item: int) -> str | None:
        """The device that an explicit copy names."""
        flow = self.program.copies[item]
        assert flow.node is not None
        operation = self.program.module.functions[flow.function].nodes[flow.node].operation
        return operation.by if isinstance(operation, DeviceCopy) else None

    def maker(self, copy: Copy, wanted: str | None) -> str:
        target = self.program.target
        order = sorted(
            target.devices,
            key=lambda d: (d.name != wanted, d.name != target.default_device_name, not d.runs_c),
        )
        for device in order:
            reach = self.pools.of_device(device.name)
            if self.homes.admits(copy.source, reach) and self.homes.admits(copy.home, reach):
                return device.name
        ends = (copy.source, copy.home)
        sides = [
            ", ".join(self.pools.names(self.homes.of(end))) or "memory of the application" for end in ends
        ]
        raise compile_error(
            "BW703",
            f"{self.program.name_of(copy.source)} is needed on device '{copy.place.device}', and no device can copy it "
            f"there",
            (
                f"it is on device '{self.on[copy.source]}', in {sides[0]}; the copy would be in {sides[1]}",
                *(text for text in (self.devices.reason_of(copy.source),) if text),
                *(listing(f"'{device.name}' reaches", device.reached_memories) for device in target.devices),
            ),
            "a device of the target that reaches both memories",
        )


def structural_keys(program: Program) -> list[bytes]:
    """What each item is computed by, as a digest: the same whatever names and the order of operators are."""
    keys = [b""] * len(program.values)
    constants = {constant.name: constant.data.digest.encode() for constant in program.module.constants}
    of_function: dict[str, bytes] = {}

    def of_name(name: str) -> bytes:
        return keys[program.uses[name][0]] if name in program.uses else constants.get(name, b"")

    for function in program.module.functions:
        for index, value in enumerate(function.parameters):
            keys[program.items[value.name]] = _digest(b"parameter", str(index).encode())
        for node in function.nodes:
            operation = node.operation
            text = repr(operation)
            if isinstance(operation, ir.ControlOperation):
                text = f"{operation.name} {operation.carries_values}"
                callees = [of_function[name] for name in operation.callees]
            else:
                callees = []
            for index, value in enumerate(node.outputs):
                if value.name in program.items:
                    parts = (text.encode(), str(index).encode(), *callees, *map(of_name, node.inputs))
                    keys[program.items[value.name]] = _digest(*parts)
        for slot, name in zip(program.results[function.name], function.results, strict=True):
            keys[slot] = _digest(b"result", of_name(name))
        of_function[function.name] = _digest(*map(of_name, function.results))
    return keys


def _digest(*parts: bytes) -> bytes:
    state = blake2b(digest_size=12)
    for part in parts:
        state.update(len(part).to_bytes(4, "little") + part)
    return state.digest()
