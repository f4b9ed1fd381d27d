"""Groups the operators of a graph into kernels: an anchor, and the element-wise operators around it.

An element-wise operator joins the group that produces one of its operands when nothing else reads that operand,
so the intermediate tensor never exists. Reshapes are free: they become aliases. The result is plain data that
`lower_graph` turns into PrimFuncs.
"""

from __future__ import annotations

from dataclasses import dataclass

from bytewright.ir.graph import Function, Node, Value
from bytewright.ir.types import TensorType
from bytewright.ops.data import Reshape
from bytewright.ops.elementwise import (
    Add,
    Clamp,
    Mul,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
)
from bytewright.ops.rescale import Rescale, TflRealRescale
from bytewright.ops.softmax import TflSoftmax

ELEMENTWISE = (
    Add,
    Clamp,
    Mul,
    Rescale,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
    TflRealRescale,
)
# Anchors whose kernels work on whole rows of elements and store them themselves.
UNFUSABLE = (TflSoftmax,)


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that become one kernel.

    Attributes:
        anchor: The operator that is not element-wise, if there is one.
        elementwise: The element-wise operators, in an order that respects definitions.
    """

    anchor: Node | None
    elementwise: tuple[Node, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All operators, the anchor first."""
        return ((self.anchor,) if self.anchor else ()) + self.elementwise

    @property
    def output(self) -> Value:
        """The tensor that the kernel writes: the last operator's result."""
        return self.nodes[-1].outputs[0]

    @property
    def external_inputs(self) -> tuple[str, ...]:
        """Names that the group reads and does not compute, each once, in order of first use."""
        own = {value.name for node in self.nodes for value in node.outputs}
        names = [name for node in self.nodes for name in node.inputs if name not in own]
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class FusedGraph:
    """The groups in execution order, and the names that are only other shapes of a tensor."""

    groups: tuple[Group, ...]
    aliases: dict[str, str]

    def root(self, name: str) -> str:
        """The tensor whose memory a name denotes."""
        while name in self.aliases:
            name = self.aliases[name]
        return name


@dataclass(slots=True)
class _Open:
    """A group while it grows; `order` is the position of its last operator."""

    anchor: Node | None
    elementwise: list[Node]
    order: int


def fuse(function: Function) -> FusedGraph:
    """Forms the groups of a function."""
    consumers = _consumers(function)
    types = {value.name: value.type for node in function.nodes for value in node.outputs}
    group_of: dict[str, _Open] = {}
    groups: list[_Open] = []
    aliases: dict[str, str] = {}
    for order, node in enumerate(function.nodes):
        if isinstance(node.operation, Reshape):
            aliases[node.outputs[0].name] = node.inputs[0]
            continue
        if isinstance(node.operation, ELEMENTWISE):
            group = _join(node, order, group_of, groups, consumers, types)
        else:
            group = _Open(node, [], order)
            groups.append(group)
        for value in node.outputs:
            group_of[value.name] = group
    groups.sort(key=lambda group: group.order)
    return FusedGraph(tuple(Group(g.anchor, tuple(g.elementwise)) for g in groups), aliases)


def _consumers(function: Function) -> dict[str, int]:
    """How many operators read each name; being a result of the function counts as one more."""
    counts: dict[str, int] = {}
    for node in function.nodes:
        for name in dict.fromkeys(node.inputs):
            counts[name] = counts.get(name, 0) + 1
    for name in function.results:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _join(
    node: Node,
    order: int,
    group_of: dict[str, _Open],
    groups: list[_Open],
    consumers: dict[str, int],
    types: dict[str, TensorType],
) -> _Open:
    """Puts an element-wise operator into the groups of its operands, merged, or into a new one."""
    shape = node.outputs[0].type.shape
    merged = _Open(None, [], order)
    producers: list[_Open] = []
    for name in dict.fromkeys(node.inputs):
        producer = group_of.get(name)
        if producer is None or consumers[name] != 1 or producer in producers:
            continue
        if producer.anchor is None or (
            types[name].shape == shape and not isinstance(producer.anchor.operation, UNFUSABLE)
        ):
            producers.append(producer)
    anchored = [producer for producer in producers if producer.anchor is not None]
    if anchored:
        latest = max(anchored, key=lambda group: group.order)
        producers = [p for p in producers if p.anchor is None or p is latest]
        merged.anchor = latest.anchor
    for producer in sorted(producers, key=lambda group: group.order):
        merged.elementwise.extend(producer.elementwise)
        groups.remove(producer)
        for owned in (producer.anchor, *producer.elementwise):
            if owned is not None:
                group_of.update((value.name, merged) for value in owned.outputs)
    merged.elementwise.append(node)
    groups.append(merged)
    return merged
