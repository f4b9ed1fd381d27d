"""Every value of the graph gets a virtual device, and what is needed out of reach gets a copy.

What annotations, options and types of values ask for comes first; what is tied to it follows (`infer_devices`); then
what devices take by themselves (`choose_devices`); the rest is on the target's default device. Then it is decided what
is lent and what is copied (`settle`). Annotations are gone afterwards, and doing it again changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.diagnostics import CompileError
from bytewright.ir.analyses.homes import Pools
from bytewright.ir.where import Where
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.options import On
from bytewright.place.check_devices import check_devices
from bytewright.place.choose_devices import choose_devices
from bytewright.place.copy_makers import Copy
from bytewright.place.flows import Program, Tie, read_program
from bytewright.place.infer_devices import Devices
from bytewright.place.on_options import asked_by_options
from bytewright.place.routes import Hop, Routes
from bytewright.place.settle import Settled, settle
from bytewright.target.model import Target


def plan_devices(
    module: ir.Module, target: Target, on: tuple[On, ...] = (), io: ir.Io = ir.Io.CALLER
) -> ir.Module:
    """Returns the module with a device and target on every value, and copies.

    Args:
        module: The graph, with annotations where there are any. Kernels have their devices already.
        target: The target.
        on: The user's options that put operators on devices.
        io: Where inputs and outputs are.

    Raises:
        CompileError: BW204 for options that match nothing, name what does not exist, or put an operator on a device
            that cannot run it; BW701 to BW704 for places that contradict each other, do not exist, are out of every
            device's reach, or of a device that cannot run what is there.
    """
    if not module.functions:
        return module
    program = read_program(module, target, asked_by_options(module, target, on), io)
    devices = Devices(program)
    devices.take_asked()
    devices.spread(devices.edges(Tie.PLAIN, Tie.FIXED))
    devices.spread(devices.edges(Tie.PLAIN, Tie.FIXED, Tie.FREE))
    choose_devices(program, devices, io)
    check_devices(program, devices)
    return _Writer(program, _settled(program, devices, io)).module()


def _settled(program: Program, devices: Devices, io: ir.Io) -> Settled:
    """Places with copies in as few hops as will do.

    The application is told where to have what other devices touch, and nothing is copied then; its rows it pushes from
    anywhere. Where one of the two cannot be, the other one is tried. In the workspace are all but states.
    """
    ways = {
        ir.Io.WORKSPACE: (True, False) if program.module.state else (False,),
        ir.Io.ROWS: (False, True),
        ir.Io.CALLER: (True, False),
    }[io]
    refusals: list[CompileError] = []
    for most_hops in range(1, Routes(Pools(program.target)).most_hops + 1):
        refusals = []
        for is_told in ways:
            try:
                return settle(program, devices, io, most_hops, is_told=is_told)
            except CompileError as error:
                refusals.append(error)
            if not _codes(refusals[0]) <= {"BW702", "BW703"}:
                break
        if "BW703" not in _codes(refusals[0]):
            break
    far = [error for error in refusals if _codes(error) == {"BW703"}]
    raise min(far or refusals[:1], key=lambda error: len(error.diagnostics))


def _codes(error: CompileError) -> set[str]:
    return {diagnostic.code for diagnostic in error.diagnostics}


@dataclass(slots=True)
class _Writer:
    """Writes the module anew: places on values, copies before what first reads them, no annotations."""

    program: Program
    settled: Settled
    flows: dict[tuple[int, int | None, int], int] = field(
        default_factory=dict[tuple[int, "int | None", int], int]
    )
    names: set[str] = field(default_factory=set[str])
    copies: dict[int, str] = field(default_factory=dict[int, str])  # names of copies, by identity
    stops: dict[tuple[str, tuple[Hop, ...]], str] = field(
        default_factory=dict[tuple[str, tuple[Hop, ...]], str]
    )  # names of copies on their way, by what is copied and the way so far
    nodes: list[ir.Node] = field(default_factory=list[ir.Node])

    def module(self) -> ir.Module:
        program = self.program
        for number, flow in enumerate(program.flows):
            if not flow.is_output:
                self.flows[flow.function, flow.node, flow.operand] = number
        self.names = {*program.uses, *(constant.name for constant in program.module.constants)}
        functions = tuple(self.function(n, function) for n, function in enumerate(program.module.functions))
        return replace(program.module, functions=functions)

    def function(self, number: int, function: ir.Function) -> ir.Function:
        self.nodes = []
        parameters = tuple(map(self.placed, function.parameters))
        for position, node in enumerate(function.nodes):
            if not isinstance(node.operation, OnDevice):
                self.node(number, position, node)
        where = Where(self.program.module.name)
        results = tuple(
            self.operand(number, None, index, name, where) for index, name in enumerate(function.results)
        )
        return replace(function, parameters=parameters, nodes=tuple(self.nodes), results=results)

    def node(self, number: int, position: int, node: ir.Node) -> None:
        program, settled, operation = self.program, self.settled, node.operation
        item = program.items.get(node.outputs[0].name) if isinstance(operation, DeviceCopy) else None
        made = None if item is None else settled.made.get(item)
        if item in program.copies and made is None:
            return  # only another name
        inputs = tuple(
            self.operand(number, position, operand, name, node.where)
            for operand, name in enumerate(node.inputs)
        )
        if made is not None:
            self.nodes.extend(self.copy_nodes(made, inputs[0], self.placed(node.outputs[0]), node.where))
            return
        if isinstance(operation, DeviceCopy) and item is not None:  # of a constant
            place = settled.places[item]
            operation = DeviceCopy(ir.UNPLACED, place, operation.by or place.device)
        outputs, copies = list(map(self.placed, node.outputs)), list[ir.Node]()
        for index, value in enumerate(node.outputs):
            copy = settled.after.get(program.items[value.name])
            if copy is not None:
                raw = replace(value, name=unique_name(f"{value.name}_given", self.names), reason=None)
                outputs[index] = replace(raw, type=replace(raw.type, place=settled.places[copy.source]))
                copies.extend(self.copy_nodes(copy, outputs[index].name, self.placed(value), node.where))
        self.nodes.append(replace(node, operation=operation, inputs=inputs, outputs=tuple(outputs)))
        self.nodes.extend(copies)

    def placed(self, value: ir.Value) -> ir.Value:
        item = self.program.items[value.name]
        place, known = self.settled.places[item], value.type.place
        place = replace(place, target=known.target or place.target)
        return replace(value, type=replace(value.type, place=place), reason=self.settled.reasons[item])

    def operand(self, number: int, position: int | None, index: int, name: str, where: Where) -> str:
        """What is read for an operand: a value, or the copy of it, which is made now if nobody needed it before."""
        flow_number = self.flows.get((number, position, index))
        if flow_number is None:
            return name  # a constant
        pending: list[Copy] = []
        while True:  # from an annotation of an annotation to what it says it of
            flow = self.program.flows[flow_number]
            copy = self.settled.copies.get(flow_number)
            if copy is not None:
                pending.append(copy)
            behind = self.behind(flow.value)
            if behind is None or (copy is not None and id(copy) in self.copies):
                break
            flow_number = behind
        value = self.program.values[flow.value]
        assert value is not None
        found = value.name
        for copy in reversed(pending):
            if id(copy) not in self.copies:
                source = self.program.values[copy.source]
                assert source is not None
                found = self.make(copy, found, source, where)
            found = self.copies[id(copy)]
        return found

    def behind(self, item: int) -> int | None:
        """The flow that an item stands for that is no value of the module any more."""
        flow = self.program.anchors.get(item)
        if flow is None and item not in self.settled.made:
            flow = self.program.copies.get(item)
        return None if flow is None else self.flows[flow.function, flow.node, flow.operand]

    def make(self, copy: Copy, source: str, value: ir.Value, where: Where) -> str:
        scope = copy.place.scope
        pool = "" if scope is None or scope.pool is None else f"_in_{scope.pool}"
        name = unique_name(f"{value.name}_on_{copy.place.device}{pool}", self.names)
        self.copies[id(copy)] = name
        type_ = replace(value.type, place=copy.place)
        self.nodes.extend(self.copy_nodes(copy, source, ir.Value(name, type_, reason=copy.reason), where))
        return name

    def copy_nodes(self, copy: Copy, source: str, output: ir.Value, where: Where) -> Iterator[ir.Node]:
        """Copies from pool to pool to a place; those before the last serve others that go the same way."""
        place, current = self.settled.places[copy.source], source
        for number, hop in enumerate(copy.way, 1):
            end = output
            if hop.pool is not None:
                key = (source, copy.way[:number])
                stop = ir.VirtualDevice(hop.device.name, place.target, ir.pool_scope(hop.pool))
                if key in self.stops:
                    place, current = stop, self.stops[key]
                    continue
                self.stops[key] = unique_name(f"{source}_in_{hop.pool}", self.names)
                end = ir.Value(self.stops[key], replace(output.type, place=stop), reason=copy.reason)
            operation = DeviceCopy(place, end.type.place, hop.device.name)
            yield ir.Node(operation, (current,), (end,), where)
            place, current = end.type.place, end.name
