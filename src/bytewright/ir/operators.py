"""The operators of the model, as a user names them: what one operator of the file became, and what it is called.

A frontend makes several graph operators of one operator of the file, and each says where it comes from. Those that say
nothing stand for themselves.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from bytewright.ir.graph import Function, Node
from bytewright.ir.where import Where


@dataclass(frozen=True, slots=True)
class ModelOperator:
    """One operator of the model.

    Attributes:
        nodes: What it became, in order.
        kind: `CONV_2D`, as in the file; of a graph operator that stands for itself, its name.
    """

    nodes: tuple[Node, ...]
    kind: str

    @property
    def name(self) -> str:
        """The tensor that it computes: `conv2d_3/out`."""
        return self.nodes[-1].outputs[0].name

    @property
    def where(self) -> Where:
        """Where it comes from."""
        return self.nodes[-1].where

    @property
    def names(self) -> tuple[str, ...]:
        """What a pattern may match: its tensor, that up to the slash, its kind."""
        return tuple(dict.fromkeys((self.name, self.name.partition("/")[0], self.kind)))

    def matches(self, pattern: str) -> bool:
        """Whether a shell pattern matches one of its names."""
        return any(fnmatchcase(name, pattern) for name in self.names)


def model_operators(function: Function) -> tuple[ModelOperator, ...]:
    """The operators of a function, in the order of their first nodes."""
    found: dict[object, list[Node]] = {}
    for position, node in enumerate(function.nodes):
        key = position if node.where.operator is None else (node.where.model, node.where.operator)
        found.setdefault(key, []).append(node)
    return tuple(ModelOperator(tuple(nodes), _kind(nodes[0])) for nodes in found.values())


def _kind(node: Node) -> str:
    """`CONV_2D` of `3 (CONV_2D)`."""
    operator = node.where.operator
    if operator is None:
        return node.operation.name
    number, _, kind = operator.partition(" ")
    return kind.strip("()") or number
