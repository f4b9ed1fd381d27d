"""Which device operators are on that nothing was asked of: the target says what each device takes by itself.

Operators of the model for one device, connected, form a region. It goes there if that costs less: what the device
saves, work times the difference of the costs per step, against what it takes to hand over and to copy what is out of
reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.ir.analyses.homes import Pools
from bytewright.ir.union_find import UnionFind
from bytewright.place.flows import Flow, Program, operator_key
from bytewright.place.infer_devices import Devices
from bytewright.place.routes import Hop, Routes
from bytewright.target.model import Device

# Steps that launching an operator elsewhere and waiting for it take: both cores of an mps2-an521 together, measured.
HAND_OVER_COST = 65


@dataclass(slots=True)
class _Operator:
    """An operator of the model.

    Attributes:
        items: What its nodes give.
        work: The steps of all nodes.
        heaviest: The steps and the name of the node with the most; it says which device takes the operator.
        num_launches: How many of its nodes do more than one step an element.
    """

    items: list[int] = field(default_factory=list[int])
    work: int = 0
    heaviest: tuple[int, str] = (0, "")
    num_launches: int = 0


def choose_devices(program: Program, devices: Devices, io: ir.Io) -> None:
    """Puts open operators on devices that take them, region by region, in the order of the target's devices.

    A region is judged beside what is decided of devices before its own, and as if the others of its device stayed. They
    are not connected, so at most they share copies that each counts: the whole costs no more than if nothing moved.
    """
    if any(device.operators for device in program.target.devices):
        _Choice(program, devices, io, Pools(program.target, is_told=io is ir.Io.CALLER)).run()


@dataclass(slots=True)
class _Choice:
    program: Program
    devices: Devices
    io: ir.Io
    pools: Pools
    flows: dict[int, list[Flow]] = field(default_factory=dict[int, list[Flow]])  # of each item

    def run(self) -> None:
        for flow in self.program.flows:
            for item in (flow.value, flow.user):
                if item is not None:
                    self.flows.setdefault(item, []).append(flow)
        operators = self.operators()
        wanted = {
            key: device for key, operator in operators.items() if (device := self.taker(operator)) is not None
        }
        of_item = {item: key for key in wanted for item in operators[key].items}
        numbers = {key: number for number, key in enumerate(wanted)}
        regions = UnionFind()
        for _ in wanted:
            regions.add()
        for flow in self.program.flows:
            first, second = of_item.get(flow.value), of_item.get(-1 if flow.user is None else flow.user)
            if first is not None and second is not None and wanted[first] is wanted[second]:
                regions.join(numbers[first], numbers[second])
        members: dict[int, list[object]] = {}
        for key, number in numbers.items():
            members.setdefault(regions.find(number), []).append(key)
        for device in self.program.target.devices:
            before = Devices(self.program, dict(self.devices.known))
            for keys in members.values():
                if wanted[keys[0]] is device:
                    self.decide([operators[key] for key in keys], device, before)

    def operators(self) -> dict[object, _Operator]:
        """The operators of the model that are open as a whole."""
        found: dict[object, _Operator] = {}
        closed: set[object] = set()
        program = self.program
        types = {name: program.values[item] for name, item in program.items.items()}
        constants = program.module.constant_types
        for function in program.module.functions:
            for node in function.nodes:
                if isinstance(node.operation, ir.ControlOperation | ir.CopyOperation) or not node.outputs:
                    continue
                if any(value.name not in program.items for value in node.outputs):
                    continue  # an annotation
                key = operator_key(node)
                operator = found.setdefault(key, _Operator())
                items = [program.items[value.name] for value in node.outputs]
                if any(program.classes.find(item) in self.devices.known for item in items):
                    closed.add(key)
                operator.items.extend(items)
                if node.operation.is_view:
                    continue
                inputs = tuple(
                    constants[name] if name in constants else self.type_of(name, types)
                    for name in node.inputs
                )
                steps = node.operation.work_per_element(inputs)
                work = steps * sum(value.type.num_elements for value in node.outputs)
                operator.work += work
                operator.heaviest = max(operator.heaviest, (work, node.operation.name))
                operator.num_launches += steps > 1
        return {key: operator for key, operator in found.items() if key not in closed}

    def type_of(self, name: str, types: dict[str, ir.Value | None]) -> ir.TensorType:
        value = types.get(name) or self.program.values[self.program.uses[name][0]]
        assert value is not None
        return value.type

    def taker(self, operator: _Operator) -> Device | None:
        """The first device that takes an operator; None for the default device, on which it is anyhow."""
        target, name = self.program.target, operator.heaviest[1]
        device = next((device for device in target.devices if name and device.takes(name)), None)
        return None if device is None or device.name == target.default_device_name else device

    def decide(self, region: list[_Operator], device: Device, before: Devices) -> None:
        program, default = self.program, self.program.target.default_device
        items = {item: None for operator in region for item in operator.items}
        work = sum(operator.work for operator in region)
        saved = work * (default.cost_per_mac - device.cost_per_mac)
        launches = sum(max(1, operator.num_launches) for operator in region)
        copied: dict[tuple[int, str], int] = {}
        is_possible = True
        for flow in dict.fromkeys(flow for item in items for flow in self.flows.get(item, ())):
            if (flow.value in items) == (flow.user in items):
                continue
            other = self.outside(flow, items, before)
            if other == device.name:
                continue
            ends = (device.name, other) if flow.value in items else (other, device.name)
            places = self.ends(flow, *ends)
            if not places[0] & places[1]:
                way = Routes(self.pools).find(places[:1], places[1])
                copied[flow.value, ends[1]] = self.copy_cost(flow.value, way, *ends)
                is_possible = is_possible and bool(way)
        paid = launches * HAND_OVER_COST + sum(copied.values())
        sums = (
            f"{len(region)} operators that device '{device.name}' takes: {work} steps save {saved}, {launches} "
            f"hand-overs and {len(copied)} copies cost {paid}{'' if is_possible else ', which no device can make'}"
        )
        for item in items:
            if saved > paid and is_possible:
                self.devices.known[program.classes.find(item)] = self.devices.number(device.name)
                self.devices.reasons[program.classes.find(item)] = f"a region of {sums}"
            else:
                self.devices.reasons.setdefault(
                    program.classes.find(item), f"here, and not in a region of {sums}"
                )

    def outside(self, flow: Flow, items: Mapping[int, None], before: Devices) -> str:
        """The device of the end of a flow that is not in a region."""
        item = flow.user if flow.value in items else flow.value
        return self.program.target.default_device_name if item is None else before.of(item)

    def ends(self, flow: Flow, source: str, destination: str) -> tuple[int, int]:
        """Where the value of a flow may be for each of the two devices: inputs and outputs with the application."""
        program = self.program
        value, is_of_caller = program.values[flow.value], self.io is not ir.Io.WORKSPACE
        is_input = is_of_caller and value is not None and value in program.main.parameters
        is_output = is_of_caller and flow.user in program.results[program.main.name]
        places = [self.pools.of_device(device) for device in (source, destination)]
        if is_input or is_output:
            size = 0 if value is None else value.type.size_bytes
            places[0 if is_input else 1] &= self.pools.input if is_input else self.pools.output
            places[0 if is_input else 1] &= self.pools.with_room(size)
            return places[0], places[1]
        return places[0] & self.pools.planned, places[1] & self.pools.planned

    def copy_cost(self, item: int, way: tuple[Hop, ...], source: str, destination: str) -> int:
        """What it costs to read a value in the cheapest memory of one device and write it in that of another, and in
        the memories on the way.
        """
        value = self.program.values[item]
        size = 0 if value is None else value.type.size_bytes
        between = [self.program.target.memory_of(hop.pool) for hop in way if hop.pool is not None]
        costs = [memory.read_cost + memory.write_cost for memory in between]
        for device, is_read in ((source, True), (destination, False)):
            memories = [self.program.target.memory_of(pool) for pool in self.pool_names(device)]
            costs.append(min((m.read_cost if is_read else m.write_cost for m in memories), default=1))
        return size * sum(costs)

    def pool_names(self, device: str) -> list[str]:
        tags = {tag.name for tag in self.program.target.scope_tags}
        return [name for name in self.pools.names(self.pools.of_device(device)) if name not in tags]
