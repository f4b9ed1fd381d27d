"""Subgraphs that loops and branches run, as functions of what they are given and of what survives runs.

What survives runs is a value as well: what a subgraph reads or assigns is one more operand, and what it leaves there is
one more result, whether it is given the handle of the variable, makes one itself, or has an operator that keeps
something.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Kept, KeptKey
from bytewright.frontends.tflite.model import ModelRecord
from bytewright.frontends.tflite.needed import needed_nodes
from bytewright.frontends.tflite.variables import require_type_of_variable
from bytewright.ops.arithmetic.numerics import Numerics


@dataclass(frozen=True, slots=True)
class Callee:
    """A subgraph as a function.

    Attributes:
        positions: The operands that it takes as parameters; the others are constants, and handles of variables.
        results: Names of all of its results, those that are handed on included; '' for a handle.
        prefix: What names of its values start with.
        kept: What survives runs, as the subgraph finds and leaves it.
        handles: Of the results that are handles, the variables.
    """

    positions: tuple[int, ...]
    parameters: tuple[ir.Value, ...]
    nodes: tuple[ir.Node, ...]
    results: tuple[str, ...]
    prefix: str
    kept: Mapping[KeptKey, Kept]
    handles: Mapping[int, str]

    def with_kept(self, at: Conversion, states: Mapping[KeptKey, Kept], first: int) -> "Callee":
        """With what survives runs as its last operands, from position `first` on, and as its last results."""
        own = [self.kept.get(key) or self._untouched(at, state) for key, state in states.items()]
        return replace(
            self,
            positions=(*self.positions, *range(first, first + len(own))),
            parameters=(*self.parameters, *(kept.parameter for kept in own)),
            results=(*self.results, *(kept.current for kept in own)),
        )

    def _untouched(self, at: Conversion, state: Kept) -> Kept:
        """What survives runs, where the subgraph has nothing to do with it."""
        value = self.parameter(at, state.parameter.name, state.parameter.type)
        return Kept(value, value.name, state.initial, state.stated)

    def parameter(self, at: Conversion, name: str, kind: ir.TensorType) -> ir.Value:
        """One more parameter."""
        value = ir.Value(f"{self.prefix}{name}", kind)
        at.types[value.name] = kind
        return value

    def assigns(self, key: KeptKey) -> bool:
        """Whether it leaves something else there than it found."""
        own = self.kept.get(key)
        return own is not None and own.current != own.parameter.name

    def function(self, name: str, kept: Iterable[int]) -> ir.Function:
        """The function that gives some of the results."""
        results = tuple(self.results[position] for position in kept)
        return ir.Function(name, self.parameters, needed_nodes(self.nodes, results), results)


def given_by(at: Conversion) -> list[str]:
    """The names in the graph of what subgraphs are given; '' of the handle of a variable."""
    names: list[str] = []
    first = len(at.operator.inputs) - len(at.operator.handed)
    for position, index in enumerate(at.operator.handed, first):
        if index in at.graph.handles:
            names.append("")
        else:
            names.append(at.value_of(at.operand(position, "operand"), f"operand_{position}"))
    return names


def subgraph_of(at: Conversion, index: int, count: int) -> ModelRecord:
    """A subgraph by its number, which takes so many operands."""
    record = at.graph.model.called[index]
    at.require(
        len(record.inputs) == count, f"a subgraph has {len(record.inputs)} inputs for {count} operands"
    )
    return record


def callees_of(
    at: Conversion, roles: Sequence[str], given: Sequence[str], constant: set[int]
) -> list[Callee]:
    """The subgraphs that the operator runs."""
    both = zip(at.operator.subgraphs, roles, strict=True)
    return [callee_of(at, index, role, given, constant) for index, role in both]


def callee_of(at: Conversion, index: int, role: str, given: Sequence[str], constant: set[int]) -> Callee:
    """A subgraph, converted with the operands' types, and with the values of those that are constant."""
    graph = at.graph.inside(index, f"{at.prefix}_{role}_")
    record, operands = graph.model, at.operator.handed
    parameters: dict[int, ir.Value] = {}
    for position, (own, name) in enumerate(zip(record.inputs, given, strict=True)):
        data = at.data_of(name)
        if not name:
            graph.handles[own] = at.graph.handles[operands[position]]
        elif position in constant and data is not None:
            graph.name_constant(own, name, data)
        else:
            value = ir.Value(f"{graph.prefix}operand_{position}", at.type_of(name))
            graph.values[own], graph.types[value.name] = value.name, value.type
            parameters[position] = value
    graph.convert(graph)
    handles = {n: graph.handles[own] for n, own in enumerate(record.outputs) if own in graph.handles}
    results = tuple(
        "" if number in handles else graph.result(own, f"{graph.prefix}constant_{own}")
        for number, own in enumerate(record.outputs)
    )
    at.graph.take_constants(graph)
    return Callee(
        (*parameters,),
        (*parameters.values(),),
        tuple(graph.nodes),
        results,
        graph.prefix,
        graph.kept,
        handles,
    )


def states_of(at: Conversion, callees: Sequence[Callee]) -> dict[KeptKey, Kept]:
    """What survives runs of the subgraphs, as it is at the operator."""
    states: dict[KeptKey, Kept] = {}
    for callee in callees:
        for key, inner in callee.kept.items():
            if key not in states:
                states[key] = _begun(at, inner) if _begins_anew(at, key) else at.graph.keep_for(key, inner)
            require_type_of_variable(at, inner.stated, states[key], inner.parameter.type)
    return states


def _begins_anew(at: Conversion, key: KeptKey) -> bool:
    """Whether LiteRT sets it back with each run of the operator: a tensor of a subgraph that is a variable.

    TensorFlow Lite Micro does not; customs of its own keep what they have.
    """
    return at.numerics is not Numerics.TFLM and isinstance(key, tuple) and isinstance(key[1], int)


def _begun(at: Conversion, inner: Kept) -> Kept:
    """What an operator of a subgraph begins with."""
    kind = inner.parameter.type
    array = np.zeros(kind.fixed_shape, kind.dtype.numpy) if inner.initial is None else inner.initial.array
    return replace(inner, current=at.constant("begin", array, kind.dtype))
