"""Which channels go: those that every convolution that reads them can do without, all that is one with them at once.

A convolution can do without a channel of its input if its products are known, for then they are part of the bias; or if
no sum that stays reads it. Sums go with the channels of the result that nobody needs, so that a channel that is read
for such a sum alone goes too: the largest set is found by beginning with every channel and taking out what is needed,
until nothing changes. What leaves the function, enters it, or is read by an operator that has no links is needed.

Channels that could go stay where the width of a tensor would be none that its device likes, the first of them.
They are computed as before from what is left; what reads them finds the constant, or reads it with a weight of zero.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.lower.channels.known import Known
from bytewright.lower.channels.links import Links, num_channels
from bytewright.lower.channels.weighted import Weighted

Mask = NDArray[np.bool_]
# A value by its name, or a constant as one operand of one node: (position, number).
Item = str | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Operators:
    """What is known of a function's nodes, by position.

    Attributes:
        shapes: Of values and constants, by name.
        links: Of the nodes that may change.
        weighted: Those of them that are convolutions.
    """

    function: ir.Function
    shapes: Mapping[str, tuple[ir.Extent, ...]]
    links: Mapping[int, Links]
    weighted: Mapping[int, Weighted]


@dataclass(slots=True)
class _Around:
    """A function's items, each with the nodes that read it or give it."""

    operators: Operators
    widths: dict[Item, int] = field(default_factory=dict[Item, int])
    nodes: dict[Item, list[int]] = field(default_factory=dict[Item, list[int]])
    whole: set[Item] = field(default_factory=set[Item])  # those that somebody needs as they are
    types: dict[str, ir.TensorType] = field(default_factory=dict[str, ir.TensorType])

    def __post_init__(self) -> None:
        function = self.operators.function
        self.types = ir.function_types(function)
        self.whole.update(value.name for value in function.parameters)
        self.whole.update(function.results)
        for name, type_ in self.types.items():
            self.widths[name] = num_channels(type_.shape) or 0
        for position, node in enumerate(function.nodes):
            links = self.operators.links.get(position)
            read = {link.operand for link in links or ()}
            if position in self.operators.weighted:
                read.add(0)
            for number, name in enumerate(node.inputs):
                item = self.item(position, number)
                if number in read:
                    self.nodes.setdefault(item, []).append(position)
                elif name in self.types:
                    self.whole.add(item)
            for link in links or ():
                if not isinstance(item := self.item(position, link.operand), str):
                    name = function.nodes[position].inputs[link.operand]
                    self.widths[item] = num_channels(self.operators.shapes[name]) or 0
            for value in node.outputs:
                if links is None:
                    self.whole.add(value.name)
                else:
                    self.nodes.setdefault(value.name, []).append(position)

    def item(self, position: int, operand: int) -> Item:
        name = self.operators.function.nodes[position].inputs[operand]
        return name if name in self.types else (position, operand)

    def spread(self, first: Iterable[int], change: Callable[[int], Iterable[Item]]) -> None:
        """Carries out `change` at nodes, and around every item that it reports to have changed, to the end."""
        queue = deque(first)
        waiting = set(queue)
        while queue:
            position = queue.popleft()
            waiting.discard(position)
            for item in change(position):
                for node in self.nodes.get(item, ()):
                    if node not in waiting:
                        waiting.add(node)
                        queue.append(node)


def removed_channels(
    operators: Operators, known: Mapping[str, Known], width: Callable[[str, int], int]
) -> dict[Item, Mask]:
    """The channels that go, of values and of constants where they are operands; items that stay whole are left out.

    Args:
        operators: Of the function.
        known: The constant channels of its values.
        width: To how many channels a value of this name is narrowed that needs so many.
    """
    around = _Around(operators)
    going = _largest(around, known)
    kept = _rounding(around, going, width)
    removed = {item: mask & ~kept[item] for item, mask in going.items()}
    return {item: mask for item, mask in removed.items() if mask.any()}


def _agree(around: _Around, position: int, masks: Mapping[Item, Mask], to: bool) -> list[Item]:
    """Makes linked channels of a node's operands and result equal, to a value that one of them has; what changed."""
    changed: list[Item] = []
    result = around.operators.function.nodes[position].outputs[0].name
    for link in around.operators.links.get(position, ()):
        item = around.item(position, link.operand)
        one, other = masks[item][link.taken] == to, masks[result][link.given] == to
        for mask, indices, which in ((masks[item], link.taken, item), (masks[result], link.given, result)):
            differing = indices[(one | other) & (mask[indices] != to)]
            if differing.size:
                mask[differing] = to
                changed.append(which)
    return changed


def _largest(around: _Around, known: Mapping[str, Known]) -> dict[Item, Mask]:
    """The largest set of channels that can go together."""
    nodes = around.operators.function.nodes
    going = {item: np.full(width, item not in around.whole) for item, width in around.widths.items()}
    staying = {
        position: _staying(weighted, known.get(nodes[position].inputs[0]))
        for position, weighted in around.operators.weighted.items()
        if weighted.source is None and isinstance(around.item(position, 0), str)
    }

    def change(position: int) -> list[Item]:
        changed = _agree(around, position, going, to=False)
        result = nodes[position].outputs[0].name
        if position in staying and going[item := around.item(position, 0)].any():
            needed = around.operators.weighted[position].read_by(~going[result]) & staying[position]
            if (going[item] & needed).any():
                going[item] &= ~needed
                changed.append(item)
        return changed

    around.spread(sorted(around.operators.links, reverse=True), change)
    return going


def _staying(weighted: Weighted, known: Known | None) -> Mask:
    """The channels of a convolution's input whose products are not known."""
    count = weighted.weights.shape[2]
    if known is None:
        return np.ones(count, bool)
    return weighted.unknown(known.is_constant, known.values)


def _rounding(
    around: _Around, going: Mapping[Item, Mask], width: Callable[[str, int], int]
) -> dict[Item, Mask]:
    """Those of the channels that could go that stay, so that widths are multiples, and none is nothing."""
    kept = {item: np.zeros_like(mask) for item, mask in going.items()}

    def is_rounded(item: Item) -> bool:
        mask = going[item] & ~kept[item]
        staying = mask.size - int(mask.sum())
        wanted = max(1, staying)
        if isinstance(item, str):
            wanted = min(mask.size, width(item, wanted))
        more = np.flatnonzero(mask)[: wanted - staying]
        kept[item][more] = True
        if more.size:
            around.spread(around.nodes.get(item, ()), partial(_agree, around, masks=kept, to=True))
        return not more.size

    reduced = [item for item, mask in going.items() if mask.any()]
    while reduced:  # what stays for one tensor may be one channel too many of another
        changed = [item for item in reduced if not is_rounded(item)]
        reduced = reduced if changed else []
    return kept
