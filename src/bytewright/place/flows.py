"""The graph as placement sees it: items that have places, flows between them, and what was asked of each.

An item is a value, or a result of a function as its callers get it. Annotations are no items: what they say is taken
down (`Asked`), and each use of an annotated value is a flow that tells whether it may be cut. An annotation of a
parameter or of what a function gives is an item of its own, because others may have that elsewhere, and so is one of
what is annotated already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bytewright import ir
from bytewright.diagnostics import Collector, compile_error
from bytewright.ir.analyses.homes import passed
from bytewright.ir.union_find import UnionFind
from bytewright.ops.placement import DeviceCopy, OnDevice
from bytewright.target.model import Target


class Tie(Enum):
    """How a use is tied to what it uses."""

    PLAIN = "plain"  # the same device, as far as annotations admit it
    FREE = "free"  # the same device if that contradicts nothing
    LOOSE = "loose"  # no reason to be on the same device
    FIXED = "fixed"  # the same device, or the program is refused


@dataclass(frozen=True, slots=True)
class Asked:
    """A place that something asks for, and the words for it."""

    place: ir.VirtualDevice
    text: str


@dataclass(frozen=True, slots=True)
class Flow:
    """One use of a value.

    Attributes:
        value: The item that is used.
        user: The item whose device uses it; None for the default device.
        tie: To the user.
        is_alias: Whether the user is the same memory.
        function, node, operand: Where it stands in the module, by numbers: an operand of a node; where the node is
            None, a result of the function.
        is_output: Whether it stands for what a node that runs functions gives, not for an operand.
    """

    value: int
    user: int | None
    tie: Tie
    is_alias: bool
    function: int
    node: int | None
    operand: int
    is_output: bool = False


@dataclass(slots=True)
class Program:
    """What `read_program` finds.

    Attributes:
        values: The value of each item; None for results of functions.
        items: The items of values by name.
        uses: Of names that annotations gave: the item, and the tie of who uses it by this name.
        results: The items of a function's results, by its name.
        classes: Items that are on one device whatever happens.
        asked: What is asked of items.
        stated: Items whose type names a device already.
        annotations: Names that annotations gave which name a device.
        anchors: Items that are annotations of what was annotated before.
        copies: Items that explicit copies give, each with its flow.
        one_memory: Items, two by two, that are one memory whatever happens.
    """

    module: ir.Module
    target: Target
    values: list[ir.Value | None] = field(default_factory=list[ir.Value | None])
    items: dict[str, int] = field(default_factory=dict[str, int])
    uses: dict[str, tuple[int, Tie]] = field(default_factory=dict[str, tuple[int, Tie]])
    results: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    classes: UnionFind = field(default_factory=UnionFind)
    flows: list[Flow] = field(default_factory=list[Flow])
    asked: dict[int, list[Asked]] = field(default_factory=dict[int, list[Asked]])
    stated: set[int] = field(default_factory=set[int])
    annotations: set[str] = field(default_factory=set[str])
    anchors: dict[int, Flow] = field(default_factory=dict[int, Flow])
    copies: dict[int, Flow] = field(default_factory=dict[int, Flow])
    one_memory: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def join(self, first: int, second: int) -> None:
        """Makes two items one memory on one device."""
        self.classes.join(first, second)
        self.one_memory.append((first, second))

    @property
    def main(self) -> ir.Function:
        """The function that the model is."""
        return self.module.functions[-1]

    def name_of(self, item: int) -> str:
        """What to call an item."""
        value = self.values[item]
        if value is not None:
            return f"'{value.name}'"
        for name, items in self.results.items():
            if item in items:
                return f"result {items.index(item)} of '{name}'"
        return "?"

    def add(self, value: ir.Value | None) -> int:
        """One item more."""
        item = self.classes.add()
        self.values.append(value)
        if value is not None:
            self.items[value.name] = item
            self.uses[value.name] = (item, Tie.PLAIN)
            place = value.type.place
            if place.device is not None:
                self.stated.add(item)
            if place.device is not None or place.scope is not None:
                self.ask(item, Asked(place, f"the type of '{value.name}' says {place}"))
        return item

    def ask(self, item: int, asked: Asked) -> None:
        """Takes down what is asked of an item."""
        self.asked.setdefault(item, []).append(asked)


def read_program(module: ir.Module, target: Target, on: Mapping[int, Asked], io: ir.Io) -> Program:
    """Reads the graph functions of a module.

    Args:
        module: With annotations, if there are any.
        target: The target.
        on: What the user asks of nodes, by their identity.
        io: Where inputs and outputs are.

    Raises:
        CompileError: BW702 for annotations of constants; all at once.
    """
    reader = _Reader(Program(module, target), on, io)
    reader.read()
    return reader.program


def operator_key(node: ir.Node) -> object:
    """What the nodes have in common that a frontend made of one operator of the model."""
    return id(node) if node.where.operator is None else (node.where.model, node.where.operator)


@dataclass(slots=True)
class _Reader:
    program: Program
    on: Mapping[int, Asked]
    io: ir.Io
    collector: Collector = field(default_factory=Collector)
    functions: dict[str, ir.Function] = field(default_factory=dict[str, ir.Function])  # that were read
    computed: set[int] = field(default_factory=set[int])  # items that an operator computes by itself
    groups: dict[int, object] = field(
        default_factory=dict[int, object]
    )  # by item: its operator, if asked by it

    def read(self) -> None:
        program = self.program
        for number, function in enumerate(program.module.functions):
            for value in function.parameters:
                program.add(value)
            for position, node in enumerate(function.nodes):
                with self.collector.catch():
                    self.node(number, position, node)
            self.results(number, function)
            self.functions[function.name] = function
        self.collector.stop_if_any()

    def is_input(self, item: int) -> bool:
        """Whether an item is an input of the model: the application's, whatever is asked."""
        value = self.program.values[item]
        return value is not None and value in self.program.main.parameters

    def node(self, number: int, position: int, node: ir.Node) -> None:
        operation = node.operation
        if isinstance(operation, OnDevice):
            self.annotation(number, position, node, operation)
            return
        outputs = [self.program.add(value) for value in node.outputs]
        asked = self.on.get(id(node))
        if asked is not None:
            key = operator_key(node)
            for item in outputs:
                self.program.ask(item, asked)
                self.groups[item] = key
        if isinstance(operation, ir.ControlOperation):
            self.control(number, position, node, operation, outputs)
        elif isinstance(operation, DeviceCopy):
            self.copy(number, position, node, operation, outputs[0])
        elif outputs:
            self.computed.update(outputs)
            for item in outputs[1:]:
                self.program.classes.join(outputs[0], item)
            for operand, name in enumerate(node.inputs):
                self.use(name, outputs[0], number, position, operand, is_alias=operation.is_view)

    def use(
        self,
        name: str,
        user: int | None,
        number: int,
        position: int | None,
        operand: int,
        *,
        is_alias: bool = False,
        is_loose: bool = False,
    ) -> None:
        """A flow of a name, unless it is a constant's, which has no place."""
        program = self.program
        if name not in program.uses:
            return
        item, tie = program.uses[name]
        if tie is Tie.FIXED:
            self.fix(item, user, name)
        elif is_loose or user is None or self.is_cut(item, user):
            tie = Tie.LOOSE
        elif is_alias and tie is Tie.PLAIN and program.values[user] is not None and position is not None:
            node = program.module.functions[number].nodes[position]
            if node.operation.is_view:
                program.classes.join(item, user)
        program.flows.append(Flow(item, user, tie, is_alias, number, position, operand))

    def is_cut(self, item: int, user: int) -> bool:
        """Whether one of the two was placed by itself, in its type or by an option, and the other one not with it."""
        if None in (self.program.values[item], self.program.values[user]):
            return False  # a result of a function has no type that could say a place
        stated = self.program.stated
        return item in stated or user in stated or self.groups.get(item) != self.groups.get(user)

    def fix(self, item: int, user: int | None, name: str) -> None:
        """What uses a fixed value is on its device."""
        for asked in self.program.asked.get(item, ()):
            if asked.place.device is not None and user is not None:
                text = f"{asked.text}, fixed, so that is where '{name}' is used"
                self.program.ask(user, Asked(ir.VirtualDevice(asked.place.device), text))

    def annotation(self, number: int, position: int, node: ir.Node, operation: OnDevice) -> None:
        program, (operand,) = self.program, node.inputs
        if operand not in program.uses:
            raise compile_error(
                "BW702",
                f"'{operand}' is a constant, which has no place of its own: it is where parameters are",
                help="--pin 'NAME=POOL' puts a constant into a pool",
                where=str(node.where),
            )
        item, tie = program.uses[operand]
        place, own = operation.place, Tie.FREE if operation.free else Tie.LOOSE
        own = Tie.FIXED if operation.fixed else own
        words = "".join(
            (
                "" if place.device is None else f" on device '{place.device}'",
                "" if place.scope is None else f" in '{place.scope}'",
            )
        )
        of = "" if node.where.operator is None else f", operator {node.where.operator}"
        asked = Asked(place, f"on_device puts '{operand}'{of}{words}")
        if place != ir.UNPLACED:
            if tie is not Tie.PLAIN or item not in self.computed:
                is_input = self.is_input(item)
                item = program.add(node.outputs[0])
                self.use(operand, item, number, position, 0, is_alias=True, is_loose=is_input)
                program.anchors[item] = program.flows[-1]
            program.ask(item, asked)
        program.uses[node.outputs[0].name] = (item, own)
        if place.device is not None:
            program.annotations.add(node.outputs[0].name)

    def copy(self, number: int, position: int, node: ir.Node, operation: DeviceCopy, output: int) -> None:
        of = "" if node.where.operator is None else f", operator {node.where.operator}"
        if node.inputs[0] in self.program.uses:
            item, _ = self.program.uses[node.inputs[0]]
            source = ir.VirtualDevice(operation.source.device, None, operation.source.scope)
            if source != ir.UNPLACED:
                self.program.ask(
                    item, Asked(source, f"device_copy takes '{node.inputs[0]}'{of} from {source}")
                )
        place = ir.VirtualDevice(operation.destination.device, None, operation.destination.scope)
        if place != ir.UNPLACED:
            self.program.ask(
                output, Asked(place, f"device_copy brings '{node.outputs[0].name}'{of} to {place}")
            )
        if node.inputs[0] in self.program.uses:
            self.use(node.inputs[0], output, number, position, 0, is_loose=True)
            self.program.copies[output] = self.program.flows[-1]

    def control(
        self, number: int, position: int, node: ir.Node, operation: ir.ControlOperation, outputs: list[int]
    ) -> None:
        program = self.program
        callees = [self.functions[name] for name in operation.callees]
        num_own = len(node.inputs) - len(passed(node, callees[0]))
        for operand, name in enumerate(node.inputs[:num_own]):
            self.use(name, None, number, position, operand)
        for callee in callees:
            for index, value in enumerate(callee.parameters):
                parameter = program.items[value.name]
                operand = num_own + index
                self.use(node.inputs[operand], parameter, number, position, operand, is_alias=True)
                if callee is not callees[0] and node.inputs[operand] in program.uses:
                    program.join(program.items[callees[0].parameters[index].name], parameter)
        for index, item in enumerate(outputs):
            given = self.given(callees, index, operation.carries_values)
            for other in given[1:]:
                program.join(given[0], other)
            if not given:
                continue
            if item not in program.asked:
                program.join(given[0], item)
                continue
            program.flows.append(
                Flow(given[0], item, Tie.PLAIN, True, number, position, index, is_output=True)
            )

    def given(self, callees: list[ir.Function], index: int, carries_values: bool) -> list[int]:
        """What a result of a node that runs functions may be: theirs, without constants, which are nobody's memory,
        and what a loop carries, since it may have no turn.
        """
        program = self.program
        names = (callee.results[index] for callee in callees)
        slots = [
            program.results[c.name][index] for c, n in zip(callees, names, strict=True) if n in program.uses
        ]
        return slots + [program.items[c.parameters[index].name] for c in callees if carries_values]

    def results(self, number: int, function: ir.Function) -> None:
        """What a function gives. An annotation at the top of a function is fixed, but for the model's own results.

        Those go to the application, which is no context: what it is given may be a copy.
        """
        program = self.program
        is_main = number == len(program.module.functions) - 1
        items: list[int] = []
        for index, name in enumerate(function.results):
            slot = program.add(None)
            items.append(slot)
            if name not in program.uses:
                continue
            item, tie = program.uses[name]
            if tie is Tie.LOOSE and name in program.annotations and not is_main:
                program.uses[name] = (item, Tie.FIXED)
            self.use(name, slot, number, None, index, is_alias=True, is_loose=is_main)
            program.uses[name] = (item, tie)
        program.results[function.name] = tuple(items)
