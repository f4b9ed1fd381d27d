"""WHILE, IF and STABLEHLO_CASE: subgraphs become functions of the graph, which a loop or a conditional runs.

A loop of the graph takes a known number of turns. How many a WHILE takes is found by running its condition, and what
that depends on, at import: exporters count time from a constant to a constant. Where the run alone knows it, the user
says how many there are at most, and turns for which the condition does not hold do nothing. Operands that are constant,
and that a loop hands on as they are, are constants in the subgraphs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

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
from bytewright.frontends.tflite.graph_builder import Kept, Operand
from bytewright.frontends.tflite.logic import IS_EQUAL
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
    most, turns = at.graph.bounds.of(*at.names), None
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
    condition = at.typed_operand(0, "condition", (ir.DType.BOOL,))
    branches = _branches(at, "condition", condition, ("then", "else"))
    names = [function.name for function in branches.functions]
    at.graph.functions += branches.functions
    operands = [at.value_of(condition, "condition"), *branches.operands]
    branches.define(at, CondIf(names[0], names[1]), operands)


def convert_case(at: Conversion) -> None:
    """STABLEHLO_CASE: the function of a number, or the last one, as one choice after the other."""
    number = at.typed_operand(0, "number", (ir.DType.I32,))
    at.require(len(at.operator.subgraphs) > 0, "there are no branches")
    roles = tuple(f"case_{n}" for n in range(len(at.operator.subgraphs)))
    branches = _branches(at, "number", number, roles)
    kind = ir.TensorType(number.shape, ir.DType.I32)
    # Each function of the chain is given the number, that of a branch too, which has no use for it.
    chain = [
        replace(each, parameters=(ir.Value(f"{each.name}_number", kind), *each.parameters))
        for each in branches.functions
    ]
    at.graph.functions += chain
    rest = chain[-1]
    for place in reversed(range(len(chain) - 1)):
        rest = _choice(at, place, chain[place], rest)
        at.graph.functions.append(rest)
    operands = [at.value_of(number, "number"), *branches.operands]
    branches.define(at, Call(rest.name), operands)


def _choice(at: Conversion, place: int, chosen: ir.Function, rest: ir.Function) -> ir.Function:
    """A function that runs one if the first of its operands is a number, and else another."""
    name = f"{at.prefix}_from_{place}"
    own = at.constant(f"place_{place}", np.array(place, np.int32), ir.DType.I32)
    given = tuple(ir.Value(f"{name}_{n}", value.type) for n, value in enumerate(chosen.parameters))
    number, where = given[0], at.where()
    is_own = ir.Value(f"{name}_is_own", ir.TensorType(number.type.shape, ir.DType.BOOL))
    kinds = [at.type_of(result) for result in chosen.results]
    results = tuple(ir.Value(f"{name}_result_{n}", each) for n, each in enumerate(kinds))
    nodes = (
        ir.Node(IS_EQUAL, (number.name, own), (is_own,), where),
        ir.Node(
            CondIf(chosen.name, rest.name), (is_own.name, *(each.name for each in given)), results, where
        ),
    )
    return ir.Function(name, given, nodes, tuple(each.name for each in results))


@dataclass(frozen=True, slots=True)
class _Branches:
    """Subgraphs of which one is run.

    Attributes:
        functions: What they are, of the same operands and results.
        operands: What these are given.
        types: Of the results, by their numbers.
        changed: What survives runs, by the numbers of the results that it is from here on.
    """

    functions: list[ir.Function]
    operands: list[str]
    types: dict[int, ir.TensorType]
    changed: dict[int, Kept]

    def define(self, at: Conversion, operation: ir.ControlOperation, operands: Sequence[str]) -> None:
        """Makes the results of a choice of them those of the operator."""
        outputs = at.emit_control(operation, operands, self.types)
        for position, name in outputs.items():
            if position in self.changed:
                at.keep(self.changed[position], name)
            else:
                at.define(name, position)


def _branches(at: Conversion, chooser: str, operand: Operand, roles: Sequence[str]) -> _Branches:
    """The subgraphs of an operator whose first operand, of one element, says which of them is run."""
    count, num_results = len(at.operator.inputs) - 1, len(at.operator.outputs)
    at.require_counts((count + 1,), outputs=num_results)
    at.require(operand.type.num_elements == 1, f"the {chooser} has shape {list(operand.shape)}")
    given = given_by(at)
    constant = {position for position, name in enumerate(given) if at.data_of(name) is not None}
    for index in at.operator.subgraphs:
        found = len(subgraph_of(at, index, count).outputs)
        at.require(found == num_results, f"an arm has {found} results for {num_results}")
    arms = callees_of(at, roles, given, constant)
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
    functions = [arm.function(f"{at.prefix}_{role}", wanted) for role, arm in zip(roles, arms, strict=True)]
    types = {position: at.type_of(arms[0].results[position]) for position in wanted}
    for role, arm in zip(roles, arms, strict=True):
        for position, kind in types.items():
            found = at.type_of(arm.results[position])
            at.require(found == kind, f"result {position} is {kind} of {roles[0]}, and {found} of {role}")
    return _Branches(functions, [given[position] for position in arms[0].positions], types, changed)


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
