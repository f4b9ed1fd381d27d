"""What each graph function becomes in the entry: its kernels in order, and how values enter and leave it.

Arms of conditionals write their results where those of the conditional are. A result that is to lie where an operand
is, and that nothing else reads, is written over it; an arm that gives that operand on as it was does nothing for it.

A loop has a buffer for each value that it carries: a turn reads it, and what the turn gives on is written there, at
once where nothing in the turn reads the old value any more, else by a copy at the end. Values that change places take a
detour. What every turn gives on as it was is carried by nobody: all that a loop is given so is read where it is. The
model itself is the body of a loop over runs, which carries its states.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.graph.bound.function import BoundValues
from bytewright.ir.where import Where
from bytewright.lower.fuse import FusedGraph, fuse
from bytewright.ops.control import CondIf, Loop
from bytewright.ops.data import Identity, Reshape


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that a loop carries from turn to turn, in a buffer of its own.

    Attributes:
        number: Among the operands and results of the loop.
        is_read: Whether a turn reads what the one before it gave.
        written: The value of the body that is written to the buffer at once; None if a copy is.
    """

    number: int
    is_read: bool
    written: str | None


@dataclass(frozen=True, slots=True)
class Move:
    """A copy at the end of a turn.

    Attributes:
        source: A value of the body, or what a move before this one has kept.
        number: The carried value whose buffer it is copied to; None for what only keeps a value.
        kept: What is kept, by this name.
    """

    source: str
    number: int | None
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """What a loop does beside its body's operators.

    Attributes:
        carried: The values that have buffers of their own.
        moves: In order.
    """

    carried: tuple[Carried, ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A function as a part of the entry.

    Attributes:
        function: With a copy for each result that needs one to be written.
        fused: Its kernels.
        body: How what is carried comes to where it is found.
        tied: What is carried, as numbers of parameters and results: all of a function that a loop runs, the states of
            the model, and of an arm what is written over an operand.
    """

    function: ir.Function
    fused: FusedGraph
    body: Body
    tied: tuple[tuple[int, int], ...]


def blocks_of(module: ir.Module, names: set[str], bound: BoundValues | None = None) -> dict[str, Block]:
    """The blocks of a module whose functions are each run at one place, by name.

    Args:
        module: A module after `inline_calls`.
        names: Those of its values and constants; what is added here gets others, and they are added.
        bound: What functions of the application compute.
    """
    blocks = _Blocks(module, names, bound)
    graph, num_states = module.graph, len(module.state)
    inputs, outputs = (len(each) - num_states for each in (graph.parameters, graph.results))
    blocks.add(graph, tuple((inputs + n, outputs + n) for n in range(num_states)))
    return blocks.found


class _Blocks:
    """One run of `blocks_of`: those that were found."""

    def __init__(self, module: ir.Module, names: set[str], bound: BoundValues | None) -> None:
        self.module, self.names, self.bound = module, names, bound
        self.functions = {function.name: function for function in module.functions}
        self.found: dict[str, Block] = {}

    def add(
        self,
        function: ir.Function,
        tied: tuple[tuple[int, int], ...],
        wanted: tuple[ir.Value, ...] | None = None,
    ) -> None:
        """A function and those that it runs.

        Args:
            function: The model, the body of a loop, or an arm.
            tied: Its parameters and results that lie at one place, by their numbers.
            wanted: What its results become where it is an arm.
        """
        for node in function.nodes:
            if isinstance(node.operation, Loop):  # what a loop hands on as it was is no value of its own
                body = self.functions[node.operation.body]
                self.add(body, tuple((n, n) for n in range(len(body.results))))
        aliases = _aliases(function, self.found)
        copying = _with_copies(function, self.module, aliases, wanted, self.names, {n for _, n in tied})
        fused = fuse(copying, aliases, self.bound)
        parameters = tuple(copying.parameters[n] for n, _ in tied)
        carrying = replace(copying, parameters=parameters, results=tuple(copying.results[n] for _, n in tied))
        body = _body(carrying, fused, self.names)
        self.found[function.name] = Block(copying, fused, body, tied)
        over = {each.written: parameters[each.number].name for each in body.carried if each.written}
        for node in function.nodes:
            if isinstance(node.operation, CondIf):
                self._add_arms(node, node.operation, fused, over)

    def _add_arms(self, node: ir.Node, operation: CondIf, fused: FusedGraph, over: Mapping[str, str]) -> None:
        """The arms of a conditional, of whose results some are written over what these values are."""
        given = [fused.root(name) for name in node.inputs[1:]]
        tied = tuple(
            (given.index(over[value.name]), number)
            for number, value in enumerate(node.outputs)
            if over.get(value.name) in given
        )
        for callee in operation.callees:
            self.add(self.functions[callee], tied, node.outputs)


def _aliases(function: ir.Function, blocks: Mapping[str, Block]) -> dict[str, str]:
    """The tensor behind each name that is only another shape of one, or what a loop gives on as it was."""
    origin: dict[str, str] = {}
    for node in function.nodes:
        match node.operation:
            case Reshape():
                pairs = [(node.outputs[0], node.inputs[0])]
            case Loop(body=body):
                carried = {value.number for value in blocks[body].body.carried}
                both = enumerate(zip(node.outputs, node.inputs, strict=True))
                pairs = [pair for number, pair in both if number not in carried]
            case _:
                continue
        origin.update((value.name, origin.get(name, name)) for value, name in pairs)
    return origin


def _with_copies(
    function: ir.Function,
    module: ir.Module,
    aliases: Mapping[str, str],
    wanted: tuple[ir.Value, ...] | None,
    names: set[str],
    tied: set[int],
) -> ir.Function:
    """Adds a copy for each result that has no memory of its own to be written to; those that are `tied` have some."""
    types = ir.value_types(function, module.constants)
    where = {value.name: node.where for node in function.nodes for value in node.outputs}
    taken = {value.name for value in function.parameters} | {constant.name for constant in module.constants}
    nodes, results = list(function.nodes), list(function.results)
    taken |= {aliases.get(results[number], results[number]) for number in tied}
    for index, name in enumerate(results):
        if index in tied:
            continue
        root = aliases.get(name, name)
        if root in taken:
            type_ = types[name] if wanted is None else wanted[index].type
            copy = ir.Value(unique_name(f"{name}_copy{index}", names), type_)
            place = where.get(name, Where(module.name, tensor=name))
            nodes.append(ir.Node(Identity(), (name,), (copy,), place))
            results[index] = copy.name
        taken.add(root)
    return replace(function, nodes=tuple(nodes), results=tuple(results))


def _body(function: ir.Function, fused: FusedGraph, names: set[str]) -> Body:
    """How the results of a body come to where its parameters are."""
    parameters = [value.name for value in function.parameters]
    sources = [fused.root(name) for name in function.results]
    changed = [number for number, name in enumerate(parameters) if sources[number] != name]
    last_read, written_at, updated = _positions(fused)
    copied = {number: sources[number] for number in changed}
    num_needed = Counter(copied.values())
    written: dict[int, str] = {}
    claimed: set[str] = set()
    for number in changed:
        source, own = sources[number], parameters[number]
        end = last_read.get(own, -1) - (own in updated.get(source, ()))
        is_last = end < written_at.get(source, -1)
        if is_last and not num_needed[own] and source not in claimed:
            written[number] = source
            claimed.add(source)
            del copied[number]
    read = {*last_read, *copied.values()}
    carried = tuple(Carried(number, parameters[number] in read, written.get(number)) for number in changed)
    return Body(carried, _moves(copied, parameters, names))


def _positions(fused: FusedGraph) -> tuple[dict[str, int], dict[str, int], dict[str, list[str]]]:
    """The last kernel that reads each tensor, the one that writes it, and the tensors in whose place it may be made."""
    last_read: dict[str, int] = {}
    written_at: dict[str, int] = {}
    updated: dict[str, list[str]] = {}
    for position, group in enumerate(fused.groups):
        for node in group.nodes:
            roots = [fused.root(name) for name in node.inputs]
            last_read.update((root, position) for root in roots)
            for number, value in enumerate(node.outputs):
                operands = [roots[operand] for operand in _updated(node.operation, number, len(roots))]
                updated[value.name] = [root for root in operands if roots.count(root) == 1]
        written_at.update((value.name, position) for value in group.nodes[-1].outputs)
    return last_read, written_at, updated


def _updated(operation: ir.Operation | ir.ControlOperation, number: int, num_operands: int) -> Iterable[int]:
    """The operands in whose place a result may be made."""
    match operation:
        case CondIf():
            return range(1, num_operands)  # arms see to what they have still to read
        case Loop():
            return (number,)
        case _:
            return () if operation.updates is None or number else (operation.updates,)


def _moves(copied: Mapping[int, str], parameters: list[str], names: set[str]) -> tuple[Move, ...]:
    """Copies to carried values in an order in which none reads what one before it has overwritten."""
    number_of = {name: number for number, name in enumerate(parameters)}
    num_readers = Counter(copied.values())
    pending = dict(copied)
    ready = [number for number in pending if not num_readers[parameters[number]]]
    moves: list[Move] = []
    while pending:
        if not ready:  # values that change places: one of them is kept beside
            number = next(iter(pending))
            own = parameters[number]
            kept = unique_name(f"{own}/kept", names)
            moves.append(Move(own, None, kept))
            pending.update((key, kept) for key, source in pending.items() if source == own)
            ready.append(number)
        number = ready.pop()
        source = pending.pop(number)
        moves.append(Move(source, number))
        num_readers[source] -= 1
        freed = number_of.get(source)
        if freed in pending and not num_readers[source]:
            ready.append(freed)
    return tuple(moves)
