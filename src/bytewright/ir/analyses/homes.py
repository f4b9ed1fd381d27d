"""Homes: which values of a placed graph are one memory, and in which pools that memory may be.

    pools(home) = resolve(scope, device) of each value  ∩  reach of every device that touches one of them

An argument is the parameter's memory, a result of a function is the caller's, what a loop carries stays where it is,
and a view is its operand. A value lives where it was computed and is lent to the operators of other devices that read
it, as long as a pool is left; where none is, a `device_copy` is missing. That is the whole rule: `plan_devices` makes
it true with as few copies as it can, and the verifier looks whether it is.

An input or output of the model without a scope is the application's, who has it where all reach who touch it, and is
told so, or wherever the default device reaches; with a scope it is planned like any other value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bytewright.ir.graph import ControlOperation, CopyOperation, Function, Node
from bytewright.ir.module import Module
from bytewright.ir.scope import GLOBAL, WORKSPACE, Scope
from bytewright.ir.types import VirtualDevice
from bytewright.ir.union_find import UnionFind
from bytewright.target.model import Device, Target


class Pools:
    """Sets of places of a target, as bits: its pools for tensors, its tags, and memory of the application."""

    def __init__(self, target: Target, *, is_told: bool = False) -> None:
        """Takes the application to be told which of its memories are left, or to have them all."""
        self.target, self.is_told = target, is_told
        workspaces = target.workspace_pools
        names = (*(pool.name for pool in workspaces), *(tag.name for tag in target.scope_tags))
        self._bits = {name: 1 << index for index, name in enumerate(dict.fromkeys(names))}
        self.planned = (1 << len(self._bits)) - 1
        of_caller = target.default_device.reached_memories
        writable = [name for name in of_caller if target.memory(name).is_writable]
        # A bit for each memory that the application may have an input in, and one for an output
        self._given = {
            name: 1 << (len(self._bits) + index) for index, name in enumerate(writable or of_caller)
        }
        self.input = sum(self._given.values())
        self.output = self.input << len(self._given)
        self._workspace = sum(self._bits[pool.name] for pool in workspaces)
        self._devices = {device.name: self._reach(device) for device in target.devices}

    def _reach(self, device: Device) -> int:
        reached = sum(self._bits[tag.name] for tag in self.target.scope_tags if tag.name in self._bits)
        for pool in self.target.workspace_pools:
            is_reached = device.name in pool.devices if pool.devices else device.reaches(pool.memory)
            reached |= self._bits[pool.name] if is_reached else 0
        given = sum(bit for name, bit in self._given.items() if device.reaches(name))
        if self.is_told or all(map(device.reaches, self.target.default_device.reached_memories)):
            reached |= given
        if self.is_told or given == self.input:
            reached |= given << len(self._given)
        return reached

    def with_room(self, size_bytes: int) -> int:
        """All places but memories of the application that are smaller; all of them where none has room."""
        small = sum(
            bit | bit << len(self._given)
            for name, bit in self._given.items()
            if (held := self.target.memory(name).size_bytes) is not None and held < size_bytes
        )
        return ~0 if small == self.input | self.output else ~small

    def of_device(self, device: str | None) -> int:
        """What a device may use; nothing without one."""
        return self._devices.get(device or "", 0)

    def of_scope(self, scope: Scope | None) -> int:
        """What a scope admits for a tensor."""
        if scope is None or scope == GLOBAL:
            return self.planned | self.input | self.output
        if scope == WORKSPACE:
            return self._workspace
        return 0 if scope.pool is None else self._bits.get(scope.pool, 0)

    def resolve(self, place: VirtualDevice) -> int:
        """Where a value may be by its place alone."""
        return self.of_scope(place.scope) & self.of_device(place.device)

    def names(self, places: int) -> tuple[str, ...]:
        """The pools and tags of a set, in the target's order."""
        return tuple(name for name, bit in self._bits.items() if bit & places)

    def share(self, first: str | None, second: str | None) -> bool:
        """Whether there is a pool that both devices may use."""
        return bool(self.of_device(first) & self.of_device(second) & self.planned)


@dataclass(slots=True)
class Homes:
    """Homes by number: members join them, devices are let in, as long as some place is left.

    Attributes:
        needs: The set that each home must have a place in: pools, or memory of the application.
    """

    pools: Pools
    classes: UnionFind = field(default_factory=UnionFind)
    places: list[int] = field(default_factory=list[int])
    needs: list[int] = field(default_factory=list[int])

    def add(self, places: int, need: int | None = None) -> int:
        """A home of its own."""
        self.places.append(places)
        self.needs.append(self.pools.planned if need is None else need)
        return self.classes.add()

    def of(self, item: int) -> int:
        """Where an item's home may be."""
        home = self.classes.find(item)
        return self.places[home] & self.needs[home]

    def admits(self, item: int, places: int) -> bool:
        """Whether its home could be narrowed to some places."""
        return bool(self.of(item) & places)

    def narrow(self, item: int, places: int) -> None:
        """Narrows its home."""
        self.places[self.classes.find(item)] &= places

    def can_join(self, first: int, second: int) -> bool:
        """Whether two homes have a place in common."""
        a, b = self.classes.find(first), self.classes.find(second)
        return a == b or bool(self.places[a] & self.places[b] & self._need(a, b))

    def join(self, first: int, second: int) -> None:
        """Makes one home of two."""
        a, b = self.classes.find(first), self.classes.find(second)
        if a != b:
            places, need = self.places[a] & self.places[b], self._need(a, b)
            home = self.classes.join(a, b)
            self.places[home], self.needs[home] = places, need

    def _need(self, first: int, second: int) -> int:
        """What is an input stays the application's, since a result of the model is copied from it."""
        for need in (self.pools.input, self.pools.output):
            if need in (self.needs[first], self.needs[second]):
                return need
        return self.pools.planned


def aliases(module: Module) -> Iterator[tuple[str, str]]:
    """Names of values, two by two, that are one memory."""
    functions = {function.name: function for function in module.functions}
    for function in module.functions:
        for node in function.nodes:
            operation = node.operation
            if operation.is_view:
                yield node.inputs[0], node.outputs[0].name
            if isinstance(operation, ControlOperation):
                for name in operation.callees:
                    yield from _of_callee(node, functions[name], operation.carries_values)


def _of_callee(node: Node, callee: Function, carries_values: bool) -> Iterator[tuple[str, str]]:
    given = passed(node, callee)
    yield from zip(given, (value.name for value in callee.parameters), strict=True)
    yield from zip(callee.results, (value.name for value in node.outputs), strict=True)
    if carries_values:
        yield from zip(callee.results, (value.name for value in callee.parameters), strict=True)
        parameters = (value.name for value in callee.parameters)
        yield from zip(parameters, (value.name for value in node.outputs), strict=True)


def passed(node: Node, callee: Function) -> tuple[str, ...]:
    """The operands of a node that are a function's arguments."""
    return node.inputs[len(node.inputs) - len(callee.parameters) :]


def missing_copies(
    module: Module, target: Target, *, is_told: bool = True
) -> Iterator[tuple[Function, object, str]]:
    """What does not reach what it needs in a graph whose values all have devices: function, node and a sentence.

    Where the application is not told which of its memories are left, a device reaches all of them or none.
    """
    return _Check(module, Pools(target, is_told=is_told)).faults()


@dataclass(slots=True)
class _Check:
    module: Module
    pools: Pools
    homes: Homes = field(init=False)
    items: dict[str, int] = field(default_factory=dict[str, int])
    known: dict[str, VirtualDevice] = field(default_factory=dict[str, VirtualDevice])

    def faults(self) -> Iterator[tuple[Function, object, str]]:
        self.homes = Homes(self.pools)
        main, target = self.module.functions[-1], self.pools.target
        ports = {value.name for value in main.parameters}
        for function in self.module.functions:
            values = (*function.parameters, *(value for node in function.nodes for value in node.outputs))
            for value in values:
                place = value.type.place
                self.known[value.name] = place
                is_of_caller = value.name in ports and place.scope is None
                need = self.pools.input if is_of_caller else None
                places = self.pools.resolve(place)
                if value.name in ports:
                    places &= self.pools.of_device(target.default_device_name)  # for the application
                self.items[value.name] = self.homes.add(places, need)
        hopeless = {name for name, item in self.items.items() if not self.homes.of(item)}
        needed = dict.fromkeys(name for name in main.results if name in self.items and name not in hopeless)
        for name in needed:
            self._is_result(name)
        clashes = self._joined(hopeless)
        yield from self._clashes(clashes)
        for function in self.module.functions:
            for node in function.nodes:
                yield from ((function, node, text) for text in self._touches(node, hopeless))
        for name in needed:
            if not self.homes.of(self.items[name]):
                yield main, main, self._missing(f"the application, whose result '{name}' is,", name)

    def _joined(self, hopeless: set[str]) -> dict[str, str]:
        """Makes homes of what is one memory; returns pairs that have no place in common, whatever else they are."""
        names = self.items.keys() - hopeless  # of those the storage stage has something to say
        left = [pair for pair in aliases(self.module) if names.issuperset(pair)]
        while True:
            clashes: list[tuple[str, str]] = []
            for first, second in left:
                ends = self.items[first], self.items[second]
                if self.homes.can_join(*ends):
                    self.homes.join(*ends)
                else:
                    clashes.append((first, second))
            if len(clashes) == len(left) or not clashes:
                return {second: first for first, second in clashes}
            left = clashes

    def _is_result(self, name: str) -> None:
        """A result without a scope is written where the application has it, unless it is copied anyhow."""
        home = self.homes.classes.find(self.items[name])
        if self.known[name].scope is None and self.homes.needs[home] == self.pools.planned:
            self.homes.needs[home] = self.pools.output
        self.homes.narrow(home, self.pools.of_device(self.pools.target.default_device_name))

    def _clashes(self, clashes: dict[str, str]) -> Iterator[tuple[Function, object, str]]:
        for function in self.module.functions:
            for node in (function, *function.nodes):
                values = node.parameters if isinstance(node, Function) else node.outputs
                for value in values:
                    if value.name in clashes:
                        first = clashes[value.name]
                        places = (
                            f"'{first}' is {self.known[first]}, '{value.name}' is {self.known[value.name]}"
                        )
                        yield function, node, f"{places}, and they are one memory: a device_copy is missing"

    def _touches(self, node: Node, hopeless: set[str]) -> Iterator[str]:
        """What a node's device, or the one that carries out its copy, lacks."""
        operation = node.operation
        if operation.is_view:
            return
        touched = dict.fromkeys(name for name in node.inputs if name in self.items)
        if isinstance(operation, ControlOperation):
            device = self.pools.target.default_device_name  # which branches
            callee = next(f for f in self.module.functions if f.name == operation.callees[0])
            touched = dict.fromkeys(node.inputs[: len(node.inputs) - len(callee.parameters)])
        elif isinstance(operation, CopyOperation):
            device = operation.by
            touched[node.outputs[0].name] = None
            if device is None:
                yield f"no device is named that copies '{node.inputs[0]}'"
                return
        else:
            device = node.outputs[0].type.place.device if node.outputs else None
        reach = self.pools.of_device(device)
        for name in touched:
            if name not in self.items or name in hopeless or not self.homes.of(self.items[name]):
                continue
            if not self.homes.admits(self.items[name], reach):
                yield self._missing(f"'{operation.name}' on device '{device}'", name)
            self.homes.narrow(self.items[name], reach)

    def _missing(self, who: str, name: str) -> str:
        left = self.homes.of(self.items[name])
        where = ", ".join(self.pools.names(left)) or "memory of the application"
        return f"{who} does not reach '{name}' ({self.known[name]}: {where}): a device_copy is missing"
