"""How many turns a WHILE takes, where it is known at import."""

from collections.abc import Mapping, Sequence

from bytewright import ir
from bytewright.frontends.tflite.callee import Callee
from bytewright.frontends.tflite.computed import Computation
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.needed import needed_nodes

_MOST_TURNS = 1 << 16


class OpenTurnsError(Exception):
    """The number of turns is not known; the text says why."""


def num_turns(at: Conversion, test: Callee, turn: Callee, given: Sequence[str], said: Sequence[str]) -> int:
    """How often the condition holds, where what it depends on is known; `said` is how operands are called.

    Raises:
        OpenTurnsError: It is not, or there is no end.
    """
    taken = _taken(test, turn)
    unknown = [position for position in taken if at.data_of(given[position]) is None]
    if unknown:
        raise OpenTurnsError(f"the number of turns depends on {said[unknown[0]]}, which is not constant")
    values = {position: data.array for position in taken if (data := at.data_of(given[position])) is not None}
    turns = 0
    while _computed(at, test, values, (0,))[0].all():
        turns += 1
        if turns > _MOST_TURNS:
            raise OpenTurnsError(f"its condition holds for more than {_MOST_TURNS} turns")
        values = _computed(at, turn, values, tuple(taken))
    return turns


def _taken(test: Callee, turn: Callee) -> set[int]:
    """The operands that the condition depends on, in whatever turn."""
    taken = _read(test, test.results[:1])
    while not (more := _read(turn, [turn.results[position] for position in taken])) <= taken:
        taken |= more
    return taken


def _read(callee: Callee, results: Sequence[str]) -> set[int]:
    """The operands that some results depend on."""
    nodes = needed_nodes(callee.nodes, tuple(results))
    names = {*results, *(name for node in nodes for name in node.inputs)}
    both = zip(callee.positions, callee.parameters, strict=True)
    return {position for position, value in both if value.name in names}


def _computed(
    at: Conversion, callee: Callee, given: Mapping[int, ir.Array], wanted: Sequence[int]
) -> dict[int, ir.Array]:
    """Some results of a subgraph for operands that are known."""
    both = zip(callee.positions, callee.parameters, strict=True)
    arrays = {value.name: given[position] for position, value in both if position in given}
    computation = Computation(at.data_of, at.graph.functions, at.charge)
    results = [callee.results[position] for position in wanted]
    return dict(zip(wanted, computation.compute(callee.nodes, results, arrays), strict=True))
