"""What the properties of placement are stated in: forms without names and order, shuffled modules, missing copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from bytewright.ir.graph import ControlOperation, Function, Node, Value
from bytewright.ir.module import Module
from bytewright.ops.data import Reshape
from bytewright.ops.placement import DeviceCopy

Form = dict[str, Any]


def shuffled(module: Module, random: Random) -> tuple[Module, dict[str, str]]:
    """The module with other names and another order of functions and operators; new name -> old name."""
    names = [value.name for function in module.functions for value in values_of(function)]
    functions = [function.name for function in module.functions]
    new = {name: f"n{number}" for number, name in enumerate(random.sample(names, len(names)))}
    new_functions = {
        name: f"g{number}" for number, name in enumerate(random.sample(functions, len(functions)))
    }

    def value(old: Value) -> Value:
        return replace(old, name=new[old.name])

    def node(old: Node) -> Node:
        operation: Any = old.operation
        fields = {"callee", "then_branch", "else_branch", "body"}
        if isinstance(operation, ControlOperation):
            changed = {f: new_functions[getattr(operation, f)] for f in fields if hasattr(operation, f)}
            operation = replace(operation, **changed)
        inputs = tuple(new.get(name, name) for name in old.inputs)
        return replace(old, operation=operation, inputs=inputs, outputs=tuple(map(value, old.outputs)))

    def function(old: Function) -> Function:
        nodes = [node(n) for n in _in_some_order(old, random)]
        results = tuple(new.get(name, name) for name in old.results)
        return Function(new_functions[old.name], tuple(map(value, old.parameters)), tuple(nodes), results)

    ordered = _functions_in_some_order(module, random)
    return replace(module, functions=tuple(map(function, ordered))), {n: o for o, n in new.items()}


def _in_some_order(function: Function, random: Random) -> Iterator[Node]:
    left = list(function.nodes)
    produced = {value.name for node in left for value in node.outputs}
    while left:
        ready = [node for node in left if not set(node.inputs) & produced]
        node = random.choice(ready)
        left.remove(node)
        produced -= {value.name for value in node.outputs}
        yield node


def _functions_in_some_order(module: Module, random: Random) -> list[Function]:
    *left, main = module.functions
    found: list[Function] = []
    while left:
        known = {function.name for function in found}
        ready = [f for f in left if all(name in known for name in _callees(f))]
        found.append(random.choice(ready))
        left.remove(found[-1])
    return [*found, main]


def _callees(function: Function) -> Iterator[str]:
    for node in function.nodes:
        if isinstance(node.operation, ControlOperation):
            yield from node.operation.callees


def values_of(function: Function) -> Iterator[Value]:
    """What a function defines, in order."""
    yield from function.parameters
    yield from (value for node in function.nodes for value in node.outputs)


def form_of(module: Module, known: dict[str, str], given: frozenset[str]) -> Form:
    """Places and copies of a placed module, without its own names and order.

    Args:
        module: Placed.
        known: Its names -> those of the module that is compared; those of copies are not among them.
        given: Names of the values of that module.
    """
    form: Form = {}
    described: dict[str, Any] = {}
    for function in module.functions:
        for value in function.parameters:
            described[value.name] = known.get(value.name, value.name)
            form[described[value.name]] = str(value.type.place)
        for node in function.nodes:
            inputs = [described.get(name, name) for name in node.inputs]
            for index, value in enumerate(node.outputs):
                name = known.get(value.name, value.name)
                if name in given:
                    described[value.name] = name
                elif isinstance(node.operation, DeviceCopy):
                    described[value.name] = ("copy", str(value.type.place), node.operation.by, *inputs)
                else:
                    others = [known.get(other.name, other.name) for other in node.outputs]
                    described[value.name] = ("given", index, len(others), str(value.type.place), *inputs)
                if name in given:
                    form[name] = (str(value.type.place), node.operation.name, *inputs)
        if function is module.functions[-1]:
            form["results"] = [described.get(name, name) for name in function.results]
    return form


def without_each_copy(module: Module, explicit: frozenset[str]) -> Iterator[tuple[str, Module]]:
    """The module without one of its copies, for each of them, with the name of what the copy was.

    What reads a copy reads what was copied then; an explicit copy, which somebody wants at its place, becomes another
    name for that instead: a view of it.
    """
    for number, function in enumerate(module.functions):
        for node in function.nodes:
            if not isinstance(node.operation, DeviceCopy):
                continue
            (value,), (source,) = node.outputs, node.inputs
            if value.name in explicit:
                view = replace(node, operation=Reshape(value.type.shape))
                without = replace(
                    function, nodes=tuple(view if other is node else other for other in function.nodes)
                )
            else:
                without = _reading(function, node, {value.name: source})
            functions = list(module.functions)
            functions[number] = without
            yield value.name, replace(module, functions=tuple(functions))


def _reading(function: Function, without: Node, instead: dict[str, str]) -> Function:
    """The function without a node, whose readers read something else."""
    nodes = tuple(
        replace(node, inputs=tuple(instead.get(name, name) for name in node.inputs))
        for node in function.nodes
        if node is not without
    )
    results = tuple(instead.get(name, name) for name in function.results)
    return replace(function, nodes=nodes, results=results)
