"""WHILE and IF: subgraphs become functions of the graph, which a loop or a conditional runs.

A loop of the graph takes a known number of turns. How many a WHILE takes is found by running its condition, and what
that depends on, at import: exporters count time from a constant to a constant. Where the run alone knows it, the user
says how many there are at most, and turns for which the condition does not hold do nothing. Operands that are constant,
and that a loop hands on as they are, are constants in the subgraphs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.frontends.tflite.callee import (
    Callee,
    callee_of,
    callees_of,
    given_by,
    states_of,
    subgraph_of,
)
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.turns import OpenTurnsError, num_turns
from bytewright.ops.control import Call, CondIf, Loop

_ADVICE = "write recurrent layers with unroll=True, or the loop with a number of turns that is a constant"


def convert_while(at: Conversion) -> None:
    """WHILE: a loop of as many turns as the condition holds."""
    count = len(at.operator.inputs)
    at.require_counts((count,), outputs=count)
    condition, body = (subgraph_of(at, index, count) for index in at.operator.subgraphs)
    at.require(len(body.outputs) == count, f"its body has {len(body.outputs)} results for {count} operands")
    at.require(len(condition.outputs) == 1, f"its condition has {len(condition.outputs)} results")
    given = given_by(at)
    constant = {
        position
        for position, (name, source) in enumerate(zip(given, body.inputs, strict=True))
        if at.data_of(name) is not None and body.outputs[position] == source
    }
    test, turn = callees_of(at, ("condition", "body"), given, constant)
    _hand_on_handles(at, turn, count)
    states = states_of(at, (test, turn))
    given += [state.current for state in states.values()]
    test, turn = test.with_kept(at, states, count), turn.with_kept(at, states, count)
    said = [
        *map("operand {}".format, range(count)),
        *(f"variable '{each.stated}'" for each in states.values()),
    ]
    for position in turn.positions:
        _require_same_type(at, turn, given, position, said[position])
    assigned = {position for position, key in enumerate(states, count) if test.assigns(key)}
    # What the condition assigns is not known at import.
    known = ["" if position in assigned else name for position, name in enumerate(given)]
    most, turns = at.graph.bounds.of(at.prefix, at.operator.kind), None
    try:
        turns = num_turns(at, test, turn, known, said)
    except OpenTurnsError as error:
        if most is None:
            help_text = f"--bound {at.prefix}=N, N being the most turns that it takes; or {_ADVICE}"
            at.fail(str(error), help=help_text)
    if assigned:
        again = callee_of(at, at.operator.subgraphs[0], "again", given[:count], constant)
        test, turn = _asked_before(at, test, turn, again.with_kept(at, states, count), given)
    if turns is None:
        name, turns = _bounded(at, test, turn), most or 0
    else:
        name = f"{at.prefix}_body"
        at.graph.functions.append(turn.function(name, turn.positions))
    types = {position: at.type_of(turn.results[position]) for position in turn.positions}
    outputs = at.emit_control(Loop(name, turns), [given[position] for position in turn.positions], types)
    for position in range(count):
        if given[position]:  # and no handle
            at.define(outputs[position] if position in outputs else given[position], position)
    for position, (key, state) in enumerate(states.items(), count):
        if turn.assigns(key) or position in assigned:
            at.keep(state, outputs[position])


def convert_if(at: Conversion) -> None:
    """IF: one of two functions; where the condition is constant, still both."""
    count = len(at.operator.inputs) - 1
    at.require(count >= 0, "there is no condition")
    num_results = len(at.operator.outputs)
    at.require_counts((count + 1,), outputs=num_results)
    condition = at.typed_operand(0, "condition", (ir.DType.BOOL,))
    at.require(condition.type.num_elements == 1, f"the condition has shape {list(condition.shape)}")
    given = given_by(at)
    constant = {position for position, name in enumerate(given) if at.data_of(name) is not None}
    for index in at.operator.subgraphs:
        found = len(subgraph_of(at, index, count).outputs)
        at.require(found == num_results, f"an arm has {found} results for {num_results}")
    arms = callees_of(at, ("then", "else"), given, constant)
    at.require(not any(arm.handles for arm in arms), "a result is the handle of a variable")
    states = states_of(at, arms)
    given += [state.current for state in states.values()]
    arms = [arm.with_kept(at, states, count) for arm in arms]
    changed = {
        number: state
        for number, (key, state) in enumerate(states.items(), num_results)
        if any(arm.assigns(key) for arm in arms)
    }
    wanted = (*range(num_results), *changed)
    names = [f"{at.prefix}_{role}" for role in ("then", "else")]
    for name, arm in zip(names, arms, strict=True):
        at.graph.functions.append(arm.function(name, wanted))
    operands = [at.value_of(condition, "condition"), *(given[position] for position in arms[0].positions)]
    types = {position: at.type_of(arms[0].results[position]) for position in wanted}
    outputs = at.emit_control(CondIf(names[0], names[1]), operands, types)
    for position in range(num_results):
        at.define(outputs[position], position)
    for number, state in changed.items():
        at.keep(state, outputs[number])


def _hand_on_handles(at: Conversion, turn: Callee, count: int) -> None:
    """Results that are handles of variables; of one that the loop is given each turn hands that on."""
    of_operands = [at.graph.handles.get(index) for index in at.operator.inputs]
    for position in range(count):
        name = of_operands[position]
        at.require(
            turn.handles.get(position) == name,
            f"operand {position} is the handle of a variable, and of another after a turn of the body",
        )
        if name is not None:
            at.define_handle(name, position)


def _require_same_type(at: Conversion, turn: Callee, given: Sequence[str], position: int, said: str) -> None:
    """What a turn gives is what the next one takes."""
    found, wanted = at.type_of(turn.results[position]), at.type_of(given[position])
    at.require(
        found == wanted,
        f"{said} is {wanted} at first, and {found} after a turn of the body",
    )


def _asked_before(
    at: Conversion, test: Callee, turn: Callee, again: Callee, given: list[str]
) -> tuple[Callee, Callee]:
    """Condition and body of a loop whose condition assigns variables: it is asked before the loop and behind each turn.

    What it said last is one more operand of the loop, which `given` gets, and all that the new condition reads. `again`
    is the condition once more, under other names.
    """
    first = f"{at.prefix}_first"
    # The results of a condition: what it says, and what survives runs, which are the last operands.
    num_states = len(test.results) - 1
    at.graph.functions.append(test.function(first, range(num_states + 1)))
    types = dict(enumerate(map(at.type_of, test.results)))
    asked = at.emit_control(Call(first), [given[position] for position in test.positions], types)
    given[len(given) - num_states :] = [asked[number] for number in range(1, num_states + 1)]
    position, holds = len(given), types[0]
    given.append(asked[0])
    passed = {
        value.name: turn.results[own] for own, value in zip(again.positions, again.parameters, strict=True)
    }

    def of_turn(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(passed.get(name, name) for name in names)

    said, *left = of_turn(again.results)
    nodes = (*turn.nodes, *(replace(node, inputs=of_turn(node.inputs)) for node in again.nodes))
    results = (*turn.results[: len(turn.results) - num_states], *left, said)
    body = replace(
        turn,
        positions=(*turn.positions, position),
        parameters=(*turn.parameters, turn.parameter(at, "holds", holds)),
        nodes=nodes,
        results=results,
    )
    asked_of = tuple(body.parameter(at, f"asked_{n}", value.type) for n, value in enumerate(body.parameters))
    return replace(body, parameters=asked_of, nodes=(), results=(asked_of[-1].name,)), body


def _bounded(at: Conversion, test: Callee, turn: Callee) -> str:
    """A turn of a loop that the run ends: it does nothing once the condition no longer holds. Returns its function.

    What does not change keeps the condition as it is, so that all later turns do nothing either.
    """
    prefix, where, changed = at.prefix, at.where(), turn.positions
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
