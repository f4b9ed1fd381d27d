"""Groups the operators of a graph into kernels: an anchor, and the element-wise operators around it.

An element-wise operator joins the group that produces one of its operands when nothing else reads that operand,
so the intermediate tensor never exists. Reshapes are free: they become aliases. The result is plain data that
`lower_graph` turns into PrimFuncs.

A group has a limited size, so that no kernel grows with the model. A chain of more element-wise operators is cut where
its tensors are narrow; the 32-bit ones in the middle of a quantised operator are cut only beyond twice the limit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bytewright import ir
from bytewright.graph.bound.function import Bound, BoundValues
from bytewright.lower.elements import ELEMENTS
from bytewright.lower.group import Group
from bytewright.lower.kernels.registry import TEMPLATES
from bytewright.ops.data import Reshape, reshaped

# Element-wise operators of one kernel: more than any network has in a row, few enough for every C compiler.
MAX_ELEMENTWISE = 128


@dataclass(frozen=True, slots=True)
class FusedGraph:
    """The groups in execution order, and the tensor of each name that is only another shape of one."""

    groups: tuple[Group, ...]
    aliases: dict[str, str]

    def root(self, name: str) -> str:
        """The tensor whose memory a name denotes."""
        return self.aliases.get(name, name)


@dataclass(slots=True)
class _Open:
    """A group while it grows; another one may absorb it.

    Attributes:
        order: The position of its last operator.
        anchored: Operands whose groups have an anchor that may join, as long as this one has none.
        bound: The function of the application that computes them all; nothing joins such a group.
    """

    anchor: ir.Node | None
    elementwise: list[ir.Node]
    order: int
    anchored: list[str] = field(default_factory=list[str])
    bound: Bound | None = None

    def absorb(self, other: "_Open", group_of: dict[str, "_Open"]) -> None:
        """Takes what another group has, which then owns no tensor any more."""
        self.anchor = self.anchor or other.anchor
        self.elementwise = [*other.elementwise, *self.elementwise]
        self.anchored = [*other.anchored, *self.anchored]
        for owned in (other.anchor, *other.elementwise):
            if owned is not None:
                group_of.update((value.name, self) for value in owned.outputs)

    def closed(self) -> Group:
        """The group, once it grows no more."""
        elementwise = _computing(self.elementwise) if self.bound else tuple(self.elementwise)
        return Group(self.anchor, elementwise, self.bound)


def fuse(
    function: ir.Function, aliases: Mapping[str, str] | None = None, bound: BoundValues | None = None
) -> FusedGraph:
    """Forms the groups of a function.

    Args:
        function: The function. An operator of it that runs functions is a group of its own.
        aliases: The tensor behind each name that is only another name of one: the result of each reshape, at least; if
            None, of each reshape.
        bound: What functions of the application compute: each of their calls is a group as it is.
    """
    bound = bound or {}
    # How many operators read each name; being a result of the function counts as one more.
    consumers = Counter(name for node in function.nodes for name in dict.fromkeys(node.inputs))
    consumers.update(function.results)
    types = {value.name: value.type for node in function.nodes for value in node.outputs}
    group_of: dict[str, _Open] = {}
    whole: dict[int, _Open] = {}
    for order, node in enumerate(function.nodes):
        if node.outputs[0].name in bound:
            _add_bound(node, order, bound[node.outputs[0].name], whole)
            continue
        if isinstance(node.operation, Reshape):
            continue
        if type(node.operation) in ELEMENTS:
            group = _join(node, order, group_of, consumers, types)
        else:
            group = _Open(node, [], order)
        group_of.update((value.name, group) for value in node.outputs)
    # A group that another one absorbed owns no tensor any more.
    groups = sorted({group.order: group for group in (*group_of.values(), *whole.values())}.items())
    return FusedGraph(
        tuple(group.closed() for _, group in groups),
        dict(reshaped(function) if aliases is None else aliases),
    )


def _add_bound(node: ir.Node, order: int, bound: Bound, whole: dict[int, _Open]) -> None:
    """Puts an operator into the group of its call, which stands where the last of them stood that computes."""
    group = whole.setdefault(id(bound), _Open(None, [], order, bound=bound))
    group.elementwise.append(node)
    if not isinstance(node.operation, Reshape):
        group.order = order


def _computing(nodes: list[ir.Node]) -> tuple[ir.Node, ...]:
    """The operators of a call without reshapes of its result, which are other names of the same memory."""
    last = max(i for i, node in enumerate(nodes) if not isinstance(node.operation, Reshape))
    return tuple(nodes[: last + 1])


def _producers(names: Iterable[str], group_of: Mapping[str, _Open]) -> list[tuple[_Open, str]]:
    """The groups of these names, the latest first, and what is read of each."""
    found = {id(group_of[name]): (group_of[name], name) for name in names}
    return sorted(found.values(), key=lambda pair: -pair[0].order)


def _join(
    node: ir.Node,
    order: int,
    group_of: dict[str, _Open],
    consumers: Counter[str],
    types: dict[str, ir.TensorType],
) -> _Open:
    """Puts an element-wise operator into the groups of its operands, merged, or into a new one.

    Element-wise groups merge as far as the limit admits. One anchored group at most joins, the latest; an operator that
    widens its operand joins none, but waits for its consumer, so that the narrow tensor is the one that is stored.
    """
    merged = _Open(None, [], order)
    output = node.outputs[0].type

    def producers(names: Iterable[str]) -> list[tuple[_Open, str]]:
        read_once = (name for name in names if name in group_of and consumers[name] == 1)
        on_device = (name for name in read_once if types[name].place.device == output.place.device)
        return _producers(on_device, group_of)

    def admits(producer: _Open, name: str) -> bool:
        limit = MAX_ELEMENTWISE * (2 if types[name].dtype is ir.DType.I32 else 1)
        return len(merged.elementwise) + len(producer.elementwise) < limit

    for producer, name in producers(node.inputs):
        if producer.anchor is not None:
            template = TEMPLATES.get(type(producer.anchor.operation))
            if template is not None and template.takes_epilogue:
                merged.anchored.append(name)
        elif admits(producer, name):
            merged.absorb(producer, group_of)
    merged.elementwise.append(node)
    if not _widens(node, types):
        fitting = [name for name in merged.anchored if types[name].shape == output.shape]
        for producer, name in producers(fitting):
            if admits(producer, name):
                merged.absorb(producer, group_of)
                merged.anchored = []
                break
    return merged


def _widens(node: ir.Node, types: dict[str, ir.TensorType]) -> bool:
    operand = types.get(node.inputs[0])
    return operand is not None and node.outputs[0].type.dtype.size_bytes > operand.dtype.size_bytes
