"""What each graph function becomes in the entry: its kernels in order, and how values enter and leave it.

Arms of conditionals write their results where those of the conditional are. A loop has a buffer for each value that it
carries: a turn reads it, and what the turn gives on is written there, at once where nothing in the turn reads the old
value any more, else by a copy at the end. Values that change places take a detour. What every turn gives on as it was
is carried by nobody: all that a loop is given so is read where it is. The model itself is the body of a loop over runs,
which carries its states.
"""

from collections import Counter
from collections.abc import Mapping
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
        body: Of a function that a loop runs, and of the model, whose states are carried from run to run.
    """

    function: ir.Function
    fused: FusedGraph
    body: Body | None = None


def blocks_of(module: ir.Module, names: set[str], bound: BoundValues | None = None) -> dict[str, Block]:
    """The blocks of a module whose functions are each run at one place, by name.

    Args:
        module: A module after `inline_calls`.
        names: Those of its values and constants; what is added here gets others, and they are added.
        bound: What functions of the application compute.
    """
    found: dict[str, Block] = {}
    wanted = _wanted_results(module)
    for function in module.functions:
        aliases = _aliases(function, found)
        if function.name in wanted and wanted[function.name] is None:
            fused = fuse(function, aliases, bound)
            found[function.name] = Block(function, fused, _body(function, fused, names))
        else:
            num_states = len(module.state) if function is module.graph else 0
            copying = _with_copies(function, module, aliases, wanted.get(function.name), names, num_states)
            fused = fuse(copying, aliases, bound)
            body = _body(_of_states(copying, num_states), fused, names) if num_states else None
            found[function.name] = Block(copying, fused, body)
    return found


def _of_states(function: ir.Function, num_states: int) -> ir.Function:
    """The function with its states alone for parameters and results: those behind all others."""
    return replace(
        function, parameters=function.parameters[-num_states:], results=function.results[-num_states:]
    )


def _wanted_results(module: ir.Module) -> dict[str, tuple[ir.Value, ...] | None]:
    """What the results of each arm become; None for a body, whose results are carried on."""
    found: dict[str, tuple[ir.Value, ...] | None] = {}
    for function in module.functions:
        for node in function.nodes:
            match node.operation:
                case CondIf():
                    found.update(dict.fromkeys(node.operation.callees, node.outputs))
                case Loop(body=body):
                    found[body] = None
                case _:
                    pass
    return found


def _aliases(function: ir.Function, blocks: Mapping[str, Block]) -> dict[str, str]:
    """The tensor behind each name that is only another shape of one, or what a loop gives on as it was."""
    origin: dict[str, str] = {}
    for node in function.nodes:
        match node.operation:
            case Reshape():
                pairs = [(node.outputs[0], node.inputs[0])]
            case Loop(body=body):
                same = blocks[body].body or Body((), ())
                carried = {value.number for value in same.carried}
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
    num_states: int,
) -> ir.Function:
    """Adds a copy for each result that has no memory of its own to be written to; what states become has theirs."""
    types = ir.value_types(function, module.constants)
    where = {value.name: node.where for node in function.nodes for value in node.outputs}
    taken = {value.name for value in function.parameters} | {constant.name for constant in module.constants}
    nodes, results = list(function.nodes), list(function.results)
    num_outputs = len(results) - num_states
    taken |= {aliases.get(name, name) for name in results[num_outputs:]}
    for index, name in enumerate(results[:num_outputs]):
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
        end = last_read.get(own, -1) - (updated.get(source) == own)
        is_last = end < written_at.get(source, -1)
        if is_last and not num_needed[own] and source not in claimed:
            written[number] = source
            claimed.add(source)
            del copied[number]
    read = {*last_read, *copied.values()}
    carried = tuple(Carried(number, parameters[number] in read, written.get(number)) for number in changed)
    return Body(carried, _moves(copied, parameters, names))


def _positions(fused: FusedGraph) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """The last kernel that reads each tensor, the one that writes it, and the tensor in whose place it is made."""
    last_read: dict[str, int] = {}
    written_at: dict[str, int] = {}
    updated: dict[str, str] = {}
    for position, group in enumerate(fused.groups):
        for node in group.nodes:
            last_read.update((fused.root(name), position) for name in node.inputs)
            roots = [fused.root(name) for name in node.inputs]
            operand = node.operation.updates
            if operand is not None and roots.count(roots[operand]) == 1:
                updated[node.outputs[0].name] = roots[operand]
        written_at.update((value.name, position) for value in group.nodes[-1].outputs)
    return last_read, written_at, updated


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
