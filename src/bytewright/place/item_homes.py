"""Homes of items: where each may be by its device and what is asked of it, and the scope that goes with it.

Items that turn out to be one memory join here; a home only ever narrows.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.homes import Homes, Pools
from bytewright.place.flows import Asked, Flow, Program
from bytewright.place.infer_devices import Devices
from bytewright.target.mistake import listing

_ANYWHERE = -1  # the places of a home that no pool of its device can hold


@dataclass(slots=True)
class ItemHomes:
    """The homes of a program's items, each at first its own.

    Attributes:
        io: Where inputs and outputs are.
        erased: Explicit copies that are none: only other names of what they copy.
        on: The device of each item.
        scopes: Of each home, as far as that is decided.
        scope_reasons: Who asks for the scope of a home.
    """

    program: Program
    devices: Devices
    io: ir.Io
    pools: Pools
    collector: Collector
    erased: Set[int]
    homes: Homes = field(init=False)
    on: list[str] = field(default_factory=list[str])
    scopes: dict[int, ir.Scope | None] = field(default_factory=dict[int, "ir.Scope | None"])
    scope_reasons: dict[int, Asked] = field(default_factory=dict[int, Asked])
    _inputs: frozenset[int] = frozenset()
    _planned: frozenset[int] = frozenset()  # inputs and outputs in the workspace, where no state is
    _outputs: frozenset[int] = frozenset()
    _unused: frozenset[int] = frozenset()  # results of functions that nothing runs
    _is_spread: bool = False  # whether anything is on another device than the default one

    def place_all(self) -> None:
        """Gives every item its home, and joins what is one memory whatever happens.

        Raises:
            CompileError: BW701 for scopes that contradict each other; BW702 for places that do not exist.
        """
        program = self.program
        self.homes = Homes(self.pools)
        main = program.main
        self._inputs = frozenset(program.items[value.name] for value in main.parameters)
        self._outputs = frozenset(program.results[main.name])
        if self.io is ir.Io.WORKSPACE:
            num_states = len(program.module.state)
            parameters = [program.items[value.name] for value in main.parameters]
            sides = (parameters, program.results[main.name])
            self._planned = frozenset(item for side in sides for item in side[: len(side) - num_states])
        self._unused = _unused_results(program)
        self.on = [self.devices.of(item) for item in range(len(program.values))]
        self._put_inputs()
        self._is_spread = any(name != program.target.default_device_name for name in self.on)
        for item in range(len(program.values)):
            with self.collector.catch():
                self._place(item)
        self.collector.stop_if_any()
        for first, second in program.one_memory:
            self.must_join(first, second)
        self.collector.stop_if_any()

    def behind(self, item: int) -> Flow | None:
        """The flow that an item is only another name for: an annotation's of what is annotated, an erased copy's."""
        return self.program.copies[item] if item in self.erased else self.program.anchors.get(item)

    def is_alias(self, flow: Flow) -> bool:
        """Whether the user of a flow is the same memory, if nothing speaks against it."""
        return flow.is_alias or flow.user in self.erased

    def reach(self, item: int) -> int:
        """What the device of an item may use."""
        return self.pools.of_device(self.on[item])

    def places(self, item: int) -> int:
        """Where its home may be, apart from what it is for."""
        return self.homes.places[self.homes.classes.find(item)]

    def is_nowhere(self, item: int) -> bool:
        """Whether no pool can hold it."""
        return self.places(item) == _ANYWHERE

    def scope_of(self, item: int) -> ir.Scope | None:
        """The scope of its home."""
        return self.scopes[self.homes.classes.find(item)]

    def add(self, place: ir.VirtualDevice) -> int:
        """One home more, for a copy."""
        home = self.homes.add(self.pools.resolve(place))
        self.scopes[home] = place.scope
        return home

    def settle(self, item: int) -> None:
        """Chooses a pool for its home; of what the application has it is the application that does."""
        for pool in self.pools.names(self.homes.of(item))[:1]:
            scope = ir.pool_scope(pool)
            self.homes.narrow(item, self.pools.of_scope(scope))
            self.scopes[self.homes.classes.find(item)] = scope

    def fit_together(self, items: list[int]) -> bool:
        """Whether items have a place in common."""
        homes = list(dict.fromkeys(map(self.homes.classes.find, items)))
        places = ~0
        needs = {self.homes.needs[home] for home in homes}
        need = next((n for n in (self.pools.input, self.pools.output) if n in needs), self.pools.planned)
        for home in homes:
            places &= self.homes.places[home]
        return bool(places & need) or len(homes) == 1 or places == _ANYWHERE

    def can_join(self, first: int, second: int) -> bool:
        """Whether two items can be one memory."""
        homes = [self.homes.classes.find(item) for item in (first, second)]
        are_nowhere = all(self.homes.places[home] == _ANYWHERE for home in homes)
        return are_nowhere or self.homes.can_join(first, second)

    def join(self, first: int, second: int) -> None:
        """Makes one memory of two items, at the scope of both."""
        a, b = self.homes.classes.find(first), self.homes.classes.find(second)
        if a == b:
            return
        scope = ir.join_scopes(self.scopes[a], self.scopes[b])
        reasons = [self.scope_reasons[home] for home in (a, b) if home in self.scope_reasons]
        self.homes.join(a, b)
        home = self.homes.classes.find(a)
        self.scopes[home] = scope
        if reasons:
            self.scope_reasons[home] = min(reasons, key=lambda asked: asked.text)

    def must_join(self, first: int, second: int) -> None:
        """The same, or BW701 where they cannot."""
        if self.can_join(first, second):
            self.join(first, second)
            return
        reasons = [self._why(first), self._why(second)]
        names = f"{self.program.name_of(first)} and {self.program.name_of(second)}"
        message = f"{names} are one memory, but their places have no pool in common"
        with self.collector.catch():
            raise compile_error("BW701", message, tuple(dict.fromkeys(reasons)))

    def _why(self, item: int) -> str:
        home = self.homes.classes.find(item)
        asked = self.scope_reasons.get(home)
        because = self.devices.reason_of(item) if asked is None else asked.text
        return f"{self.program.name_of(item)} is {self.now(item)}" + (
            "" if because is None else f": {because}"
        )

    def now(self, item: int) -> ir.VirtualDevice:
        """The place of an item, as far as that is decided."""
        scope = self.scopes[self.homes.classes.find(item)]
        value = self.program.values[item]
        target = None if value is None else value.type.place.target
        return ir.VirtualDevice(self.on[item], target or self.program.target.name, scope)

    def _put_inputs(self) -> None:
        """An input is the application's: what uses it may draw it to another device only if both reach it there."""
        default = self.program.target.default_device_name
        for item in self._inputs:
            is_reached = (
                self.pools.of_device(self.on[item]) & self.pools.input
                if item not in self._planned
                else self.pools.share(default, self.on[item])
            )
            if item not in self.program.asked and not is_reached:
                self.on[item] = default

    def _place(self, item: int) -> None:
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
        if item in self._unused:
            pass  # nobody gets it anywhere
        elif self.behind(item) is None or not places & of_device:
            places &= (
                of_device  # what is another name of something elsewhere says what users reach, and no more
            )
        is_border = item in self._inputs or item in self._outputs
        if is_border and item not in self._planned and scope is None:
            need = self.pools.input if item in self._inputs else self.pools.output
            places &= self.pools.with_room(self._size_bytes(item))
        elif item in self._planned and self._is_spread:
            scope = ir.join_scopes(ir.WORKSPACE, scope)
            places &= self.pools.of_scope(scope) & of_default
        self.homes.add(places, need)
        self.scopes[item] = scope
        reason = next((one for one in asked if one.place.scope is not None), None)
        if reason is not None:
            self.scope_reasons[item] = reason
        if self.homes.of(item):
            return
        if asked or self.on[item] != self.program.target.default_device_name:
            self._refuse(item, asked, scope, is_border)
        self.homes.places[item] = _ANYWHERE  # there is no pool at all: storage says that better

    def _size_bytes(self, item: int) -> int:
        """Of an input or output of the model."""
        program, value = self.program, self.program.values[item]
        if value is None:  # a result, as the application gets it
            name = program.main.results[program.results[program.main.name].index(item)]
            found = program.uses.get(name)
            value = None if found is None else program.values[found[0]]
        return 0 if value is None else value.type.size_bytes  # of a constant nothing is touched by others

    def _refuse(self, item: int, asked: list[Asked], scope: ir.Scope | None, is_border: bool) -> None:
        """A place without a memory: it is said why, as long as storage will not say it better."""
        target, device, name = self.program.target, self.on[item], self.program.name_of(item)
        texts = tuple(one.text for one in asked) or (self.devices.reason_of(item) or "nothing asks for it",)
        if is_border and item not in self._planned and scope is None:
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


def _unused_results(program: Program) -> frozenset[int]:
    called = {
        name
        for function in program.module.functions
        for node in function.nodes
        if isinstance(node.operation, ir.ControlOperation)
        for name in node.operation.callees
    }
    called.add(program.main.name)
    return frozenset(item for name, items in program.results.items() if name not in called for item in items)
