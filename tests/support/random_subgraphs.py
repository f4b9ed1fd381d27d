"""Kinds of nodes of `random_mixed` that run subgraphs: branches, loops, and variables with what they start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.random_networks import NodeKind, Tensor
from tflite_writer import ModelBuilder, Subgraph

if TYPE_CHECKING:
    from support.random_mixed import Mixed


class _Body:
    """A subgraph on tensors that are typed as one of the network is."""

    def __init__(self, network: Mixed, source: Tensor) -> None:
        self.network, self.source = network, source
        self.builder = ModelBuilder(subgraph_name=f"part_{len(network.functions)}")

    def like(self) -> int:
        """A tensor of the source's type."""
        keywords: dict[str, Any] = {}
        if self.source.dtype != "float32":
            keywords = {"scale": self.source.affine[0], "zero_point": self.source.affine[1]}
        return self.builder.tensor("value", self.source.shape, self.source.dtype, **keywords)

    def computed(self, value: int) -> int:
        """One or two operators on a value."""
        for _ in range(self.network.between(1, 2)):
            kind = self.network.one_of(["RELU", "REVERSE_V2", "TRANSPOSE"])
            result, rank = self.like(), len(self.source.shape)
            operands = {
                "RELU": [],
                "REVERSE_V2": [np.array([self.network.below(rank)], np.int32)],
                "TRANSPOSE": [np.arange(rank, dtype=np.int32)],
            }[kind]
            constants = [self.builder.constant("k", each) for each in operands]
            self.builder.operator(kind, [value, *constants], [result])
            value = result
        return value

    def handle(self, name: str, *, is_given: bool) -> int:
        """The handle of a variable, which is an input of the subgraph, or which it makes itself."""
        handle = self.builder.tensor("handle", (), "resource")
        if not is_given:
            self.builder.operator("VAR_HANDLE", [], [handle], shared_name=name)
        return handle

    def read(self, handle: int) -> int:
        """What a variable is."""
        value = self.like()
        self.builder.operator("READ_VARIABLE", [handle], [value])
        return value

    def accumulated(self, handle: int, value: int) -> int:
        """A value and what the variable was, which it becomes."""
        after = self.like()
        options = {"pot_scale_int16": False} if self.source.dtype == "int16" else {}
        operands = [self.read(handle), value]
        self.builder.operator("ADD", operands, [after], activation="RELU6", **options)
        self.builder.operator("ASSIGN_VARIABLE", [handle, after], [])
        return after

    def touched(self, handle: int, value: int) -> int:
        """Something that reads the variable, assigns it, does both, one after the other, or leaves it alone."""
        match self.network.below(5):
            case 0:
                return self.computed(value)
            case 1:
                return self.read(handle)
            case 2:
                self.builder.operator("ASSIGN_VARIABLE", [handle, self.computed(value)], [])
                return self.read(handle)
            case 3:
                before = self.read(handle)
                self.builder.operator("ASSIGN_VARIABLE", [handle, value], [])
                return before
            case _:
                return self.accumulated(handle, value)

    def add(self, inputs: list[int], outputs: list[int]) -> int:
        """Its number in the file."""
        return _added(self.network, self.builder.subgraph(inputs, outputs))


def _added(network: Mixed, part: Subgraph) -> int:
    network.functions.append(part)
    return len(network.functions)


def _condition(network: Mixed, source: Tensor) -> int:
    """Whether the greatest element is above a constant."""
    axes = list(range(len(source.shape)))
    greatest = network.tensor((), source.affine)
    network.operator("REDUCE_MAX", [source.index, network.integers(axes)], [greatest], keep_dims=False)
    truth = network.tensor((), (0.0, 0), dtype="bool")
    network.operator("GREATER", [greatest.index, network.constant((), source.affine).index], [truth])
    return truth.index


def _branch(network: Mixed, source: Tensor) -> Tensor:
    """IF, of two subgraphs."""
    condition, numbers = _condition(network, source), list[int]()
    for _ in range(2):
        body = _Body(network, source)
        value = body.like()
        numbers.append(body.add([value], [body.computed(value)]))
    result = network.tensor(source.shape, source.affine)
    options = {"then_subgraph_index": numbers[0], "else_subgraph_index": numbers[1]}
    network.operator("IF", [condition, source.index], [result], **options)
    return result


def _loop(network: Mixed, source: Tensor) -> Tensor:
    """WHILE, of so many turns as a constant says."""
    test = _Body(network, source)
    number, value = test.builder.tensor("number", (), "int32"), test.like()
    truth = test.builder.tensor("truth", (), "bool")
    limit = test.builder.constant("limit", np.array(network.between(0, 4), np.int32))
    test.builder.operator("LESS", [number, limit], [truth])
    condition = test.add([number, value], [truth])
    body = _Body(network, source)
    number, value, more = (
        body.builder.tensor("number", (), "int32"),
        body.like(),
        body.builder.tensor("more", (), "int32"),
    )
    body.builder.operator("ADD", [number, body.builder.constant("one", np.array(1, np.int32))], [more])
    turn = body.add([number, value], [more, body.computed(value)])
    start = network.builder.constant("start", np.array(0, np.int32))
    count = network.tensor((), (0.0, 0), dtype="int32")
    result = network.tensor(source.shape, source.affine)
    options = {"cond_subgraph_index": condition, "body_subgraph_index": turn}
    network.operator("WHILE", [start, source.index], [count, result], **options)
    return result


def _declared(network: Mixed, source: Tensor) -> tuple[str, int]:
    """A variable that starts from a constant: its name, and a handle of it."""
    name = f"variable_{len(network.functions)}"
    body = _Body(network, source)
    handle = body.handle(name, is_given=False)
    keywords: dict[str, Any] = {}
    if source.dtype != "float32":
        keywords = {"scale": source.affine[0], "zero_point": source.affine[1]}
    first = body.builder.constant("first", network.values(source.shape), **keywords)
    body.builder.operator("ASSIGN_VARIABLE", [handle, first], [])
    network.builder.operator("CALL_ONCE", [], [], init_subgraph_index=body.add([], []))
    resource = network.builder.tensor(f"{name}_handle", (), "resource")
    network.builder.operator("VAR_HANDLE", [], [resource], shared_name=name)
    return name, resource


def _variable(network: Mixed, source: Tensor) -> Tensor:
    """A variable to which each run adds what it computed."""
    _, resource = _declared(network, source)
    before, after = (network.tensor(source.shape, source.affine) for _ in range(2))
    network.operator("READ_VARIABLE", [resource], [before])
    options = {"pot_scale_int16": False} if source.dtype == "int16" else {}
    network.operator("ADD", [before.index, source.index], [after], activation="RELU6", **options)
    network.operator("ASSIGN_VARIABLE", [resource, after.index], [])
    return after


def _variable_in_branch(network: Mixed, source: Tensor) -> Tensor:
    """IF, of two subgraphs that have to do with a variable, whose handle they are given, or make."""
    name, resource = _declared(network, source)
    condition, is_given, numbers = _condition(network, source), network.below(2) == 0, list[int]()
    for _ in range(2):
        body = _Body(network, source)
        handle, value = body.handle(name, is_given=is_given), body.like()
        result = body.touched(handle, value)
        numbers.append(body.add([*([handle] if is_given else []), value], [result]))
    result = network.tensor(source.shape, source.affine)
    network.story.append(f"of {name}:")
    options = {"then_subgraph_index": numbers[0], "else_subgraph_index": numbers[1]}
    network.operator("IF", [condition, *([resource] if is_given else []), source.index], [result], **options)
    return _read_behind(network, resource, result)


def _variable_in_loop(network: Mixed, source: Tensor) -> Tensor:
    """WHILE, whose turns have to do with a variable."""
    name, resource = _declared(network, source)
    is_given = network.below(2) == 0
    test = _Body(network, source)
    number, value, truth = (
        test.builder.tensor("number", (), "int32"),
        test.like(),
        test.builder.tensor("truth", (), "bool"),
    )
    limit = test.builder.constant("limit", np.array(network.between(1, 3), np.int32))
    test.builder.operator("LESS", [number, limit], [truth])
    handles = [test.handle(name, is_given=True)] if is_given else []
    condition = test.add([*handles, number, value], [truth])
    body = _Body(network, source)
    handle = body.handle(name, is_given=is_given)
    number, value, more = (
        body.builder.tensor("number", (), "int32"),
        body.like(),
        body.builder.tensor("more", (), "int32"),
    )
    body.builder.operator("ADD", [number, body.builder.constant("one", np.array(1, np.int32))], [more])
    handles = [handle] if is_given else []
    turn = body.add([*handles, number, value], [*handles, more, body.touched(handle, value)])
    start = network.builder.constant("start", np.array(0, np.int32))
    count, result = network.tensor((), (0.0, 0), dtype="int32"), network.tensor(source.shape, source.affine)
    kept = [network.builder.tensor("kept_handle", (), "resource")] if is_given else []
    options = {"cond_subgraph_index": condition, "body_subgraph_index": turn}
    given = [*([resource] if is_given else []), start, source.index]
    network.builder.operator("WHILE", given, [*kept, count.index, result.index], **options)
    network.story.append(f"WHILE of {name}")
    return _read_behind(network, resource, result)


def _read_behind(network: Mixed, resource: int, result: Tensor) -> Tensor:
    """A result, or what the variable is behind what gave it."""
    if network.below(2):
        return result
    found = network.tensor(result.shape, result.affine)
    network.operator("READ_VARIABLE", [resource], [found])
    return found


def _has_flow(network: Mixed, source: Tensor) -> bool:
    return network.has_flow and network.is_exact(source) and source.dtype in ("int8", "float32")


def _has_condition(network: Mixed, source: Tensor) -> bool:
    return _has_flow(network, source) and source.affine[0] < 1


def _has_state(network: Mixed, source: Tensor) -> bool:
    return network.is_exact(source) and source.dtype in ("int8", "int16", "float32")


KINDS = (
    *(NodeKind(_branch, _has_condition),) * 3,
    *(NodeKind(_loop, _has_flow),) * 3,
    NodeKind(_variable, _has_state),
    *(NodeKind(_variable_in_branch, _has_condition),) * 2,
    *(NodeKind(_variable_in_loop, _has_flow),) * 2,
)
