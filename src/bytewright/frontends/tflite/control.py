"""WHILE and IF: subgraphs become functions of the graph, which a loop or a conditional runs.

A loop of the graph takes a known number of turns. How many a WHILE takes is found by running its condition, and what
that depends on, at import: exporters count time from a constant to a constant. Where the run alone knows it, the user
says how many there are at most, and turns for which the condition does not hold do nothing. Operands that are constant,
and that a loop hands on as they are, are constants in the subgraphs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.needed import needed_nodes
from bytewright.ops.control import Call, CondIf, Loop

_MOST_TURNS = 1 << 16
_ADVICE = "write recurrent layers with unroll=True, or the loop with a number of turns that is a constant"


class _OpenError(Exception):
    """The number of turns is not known; the text says why."""


@dataclass(frozen=True, slots=True)
class _Callee:
    """A subgraph as a function.

    Attributes:
        positions: The operands that it takes as parameters; the others are constants.
        results: Names of all of its results, those that are handed on included.
    """

    positions: tuple[int, ...]
    parameters: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]
    results: tuple[str, ...]

    def function(self, name: str, kept: Iterable[int]) -> ir.Function:
        """The function that gives some of the results."""
        results = tuple(self.results[position] for position in kept)
        return ir.Function(name, self.parameters, needed_nodes(self.nodes, results), results)


def convert_while(at: Conversion) -> None:
    """WHILE: a loop of as many turns as the condition holds."""
    count = len(at.operator.inputs)
    at.require_counts((count,), outputs=count)
    condition, body = (_subgraph(at, index, count) for index in at.operator.subgraphs)
    at.require(len(body.outputs) == count, f"its body has {len(body.outputs)} results for {count} operands")
    at.require(len(condition.outputs) == 1, f"its condition has {len(condition.outputs)} results")
    given = _given(at)
    constant = {
        position
        for position, (name, source) in enumerate(zip(given, body.inputs, strict=True))
        if at.data_of(name) is not None and body.outputs[position] == source
    }
    test = _callee(at, condition, "condition", given, constant)
    turn = _callee(at, body, "body", given, constant)
    changed = tuple(position for position in range(count) if position not in constant)
    for position in changed:
        _require_same_type(at, turn, given, position)
    most = at.graph.bounds.of_loop(at.prefix, at.operator.kind)
    name = f"{at.prefix}_body"
    try:
        turns = _num_turns(at, test, turn, given)
        at.graph.functions.append(turn.function(name, changed))
    except _OpenError as error:
        if most is None:
            at.fail(
                str(error), help=f"--bound {at.prefix}=N, N being the most turns that it takes; or {_ADVICE}"
            )
        name, turns = _bounded(at, test, turn, changed), most
    types = {position: at.type_of(turn.results[position]) for position in changed}
    outputs = at.emit_control(Loop(name, turns), [given[position] for position in changed], types)
    for position in range(count):
        at.define(outputs[position] if position in outputs else given[position], position)


def convert_if(at: Conversion) -> None:
    """IF: one of two functions; where the condition is constant, still both."""
    count = len(at.operator.inputs) - 1
    at.require(count >= 0, "there is no condition")
    num_results = len(at.operator.outputs)
    at.require_counts((count + 1,), outputs=num_results)
    condition = at.typed_operand(0, "condition", (ir.DType.BOOL,))
    at.require(condition.type.num_elements == 1, f"the condition has shape {list(condition.shape)}")
    given = _given(at)[1:]
    constant = {position for position, name in enumerate(given) if at.data_of(name) is not None}
    arms = [
        _callee(at, _subgraph(at, index, count), role, given, constant)
        for index, role in zip(at.operator.subgraphs, ("then", "else"), strict=True)
    ]
    for arm in arms:
        at.require(
            len(arm.results) == num_results, f"an arm has {len(arm.results)} results for {num_results}"
        )
    names = [f"{at.prefix}_{role}" for role in ("then", "else")]
    for name, arm in zip(names, arms, strict=True):
        at.graph.functions.append(arm.function(name, range(num_results)))
    operands = [at.value_of(condition, "condition"), *(given[position] for position in arms[0].positions)]
    types = {position: at.type_of(name) for position, name in enumerate(arms[0].results)}
    outputs = at.emit_control(CondIf(names[0], names[1]), operands, types)
    for position, name in outputs.items():
        at.define(name, position)


def _given(at: Conversion) -> list[str]:
    """The operands' names in the graph."""
    operands = [at.operand(position, "operand") for position in range(len(at.operator.inputs))]
    return [at.value_of(operand, f"operand_{position}") for position, operand in enumerate(operands)]


def _subgraph(at: Conversion, index: int, count: int) -> ModelRecord:
    record = at.graph.model.called[index]
    at.require(
        len(record.inputs) == count, f"a subgraph has {len(record.inputs)} inputs for {count} operands"
    )
    return record


def _callee(
    at: Conversion, record: ModelRecord, role: str, given: Sequence[str], constant: set[int]
) -> _Callee:
    """A subgraph, converted with the operands' types, and with the values of those that are constant."""
    graph = at.graph.inside(record, f"{at.prefix}_{role}_")
    parameters: list[ir.Value] = []
    for position, (index, name) in enumerate(zip(record.inputs, given, strict=True)):
        data = at.data_of(name)
        if position in constant and data is not None:
            graph.name_constant(index, name, data)
            continue
        value = ir.Value(f"{graph.prefix}operand_{position}", at.type_of(name))
        graph.values[index], graph.types[value.name] = value.name, value.type
        parameters.append(value)
    graph.convert(graph)
    if graph.kept:
        at.fail(
            "a subgraph keeps something between runs, which is supported outside of loops and branches alone"
        )
    results = tuple(graph.result(index, f"{graph.prefix}constant_{index}") for index in record.outputs)
    at.graph.take_constants(graph)
    positions = tuple(position for position in range(len(given)) if position not in constant)
    return _Callee(positions, tuple(parameters), tuple(graph.nodes), results)


def _require_same_type(at: Conversion, turn: _Callee, given: Sequence[str], position: int) -> None:
    """What a turn gives is what the next one takes."""
    found, wanted = at.type_of(turn.results[position]), at.type_of(given[position])
    at.require(
        found == wanted,
        f"operand {position} is {wanted} at first, and {found} after a turn of the body",
    )


def _bounded(at: Conversion, test: _Callee, turn: _Callee, changed: Sequence[int]) -> str:
    """A turn of a loop that the run ends: it does nothing once the condition no longer holds. Returns its function.

    What does not change keeps the condition as it is, so that all later turns do nothing either.
    """
    prefix, where = at.prefix, at.where()
    kinds = [value.type for value in turn.parameters]
    moving = [n for n, value in enumerate(turn.parameters) if turn.results[changed[n]] != value.name]
    given, kept = (
        tuple(ir.Value(f"{prefix}_{role}_operand_{n}", kind) for n, kind in enumerate(kinds))
        for role in ("turn", "stay")
    )
    names = tuple(value.name for value in given)
    holds = ir.Value(f"{prefix}_holds", at.type_of(test.results[0]))
    results = {n: ir.Value(f"{prefix}_turn_result_{n}", kinds[n]) for n in moving}
    arms = (f"{prefix}_body", f"{prefix}_stay")
    at.graph.functions += [
        test.function(f"{prefix}_condition", (0,)),
        turn.function(arms[0], [changed[n] for n in moving]),
        ir.Function(arms[1], kept, (), tuple(kept[n].name for n in moving)),
        ir.Function(
            f"{prefix}_turn",
            given,
            (
                ir.Node(Call(f"{prefix}_condition"), names, (holds,), where),
                ir.Node(CondIf(*arms), (holds.name, *names), tuple(results.values()), where),
            ),
            tuple(results[n].name if n in results else name for n, name in enumerate(names)),
        ),
    ]
    return f"{prefix}_turn"


def _num_turns(at: Conversion, test: _Callee, turn: _Callee, given: Sequence[str]) -> int:
    """How often the condition holds, where what it depends on is known.

    Raises:
        _OpenError: It is not, or there is no end.
    """
    taken = _taken(test, turn)
    unknown = [position for position in taken if at.data_of(given[position]) is None]
    if unknown:
        raise _OpenError(f"the number of turns depends on operand {unknown[0]}, which is not constant")
    values = {position: data.array for position in taken if (data := at.data_of(given[position])) is not None}
    turns = 0
    while _computed(at, test, values, (0,))[0].all():
        turns += 1
        if turns > _MOST_TURNS:
            raise _OpenError(f"its condition holds for more than {_MOST_TURNS} turns")
        values = _computed(at, turn, values, tuple(taken))
    return turns


def _taken(test: _Callee, turn: _Callee) -> set[int]:
    """The operands that the condition depends on, in whatever turn."""
    taken = _read(test, test.results)
    while not (more := _read(turn, [turn.results[position] for position in taken])) <= taken:
        taken |= more
    return taken


def _read(callee: _Callee, results: Sequence[str]) -> set[int]:
    """The operands that some results depend on."""
    nodes = needed_nodes(callee.nodes, tuple(results))
    names = {*results, *(name for node in nodes for name in node.inputs)}
    both = zip(callee.positions, callee.parameters, strict=True)
    return {position for position, value in both if value.name in names}


def _computed(
    at: Conversion, callee: _Callee, given: Mapping[int, ir.Array], wanted: Sequence[int]
) -> dict[int, ir.Array]:
    """Some results of a subgraph for operands that are known."""
    results = tuple(callee.results[position] for position in wanted)
    nodes = needed_nodes(callee.nodes, results)
    arrays = {
        value.name: given[position]
        for position, value in zip(callee.positions, callee.parameters, strict=True)
        if position in given
    }
    at.charge(sum(value.type.num_elements for node in nodes for value in node.outputs))

    def array(name: str) -> ir.Array:
        if name in arrays:
            return arrays[name]
        data = at.data_of(name)
        assert data is not None  # what is no operand, and of no node, is a constant
        return data.array

    for node in nodes:
        if isinstance(node.operation, ir.ControlOperation):
            raise _OpenError("the number of turns depends on a loop or branch")
        computed = node.operation.evaluate(tuple(map(array, node.inputs)))
        arrays |= {value.name: result for value, result in zip(node.outputs, computed, strict=True)}
    return dict(zip(wanted, map(array, results), strict=True))
