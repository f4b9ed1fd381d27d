"""Folds an explicit pad of rows and columns into the convolution after it, also behind reshapes.

The padded tensor is then never stored. Exact where the pad's value is the convolution's zero point, since taps in
the padding read just that. Reshapes between the two may add or drop axes of extent 1, as around a convolution of a
signal: then the unpadded tensor is reshaped in place of the padded one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.base.c_names import unique_name
from bytewright.graph.bound.function import BoundValues
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Pad, Reshape


def fold_pad(module: ir.Module, bound: BoundValues | None = None) -> ir.Module:
    """Returns the module with every foldable pad folded; pads that nothing reads any more are gone.

    What is bound to functions of the application stays as it is.
    """
    names = set(module.graph_types)
    functions = (
        _Folding(function, ir.value_types(function, module.constants), bound or {}, names).run()
        for function in module.functions
    )
    return replace(module, functions=tuple(functions))


@dataclass(frozen=True, slots=True)
class _Padded:
    """A tensor that is a padded one, perhaps under another shape.

    Attributes:
        pad: What padded it.
        source: The name of what was padded.
        shape: Of the padded tensor, before any reshape.
    """

    pad: Pad
    source: str
    shape: tuple[ir.Extent, ...]


class _Folding:
    """One function: `types` of all that it names, and `names` of the whole module."""

    def __init__(
        self, function: ir.Function, types: dict[str, ir.TensorType], bound: BoundValues, names: set[str]
    ) -> None:
        self.function, self.types, self.bound, self.names = function, types, bound, names
        self.padded: dict[str, _Padded] = {}
        self.views: dict[tuple[str, tuple[ir.Extent, ...]], str] = {}  # reshapes that were added

    def run(self) -> ir.Function:
        nodes = [folded for node in self.function.nodes for folded in self._folded(node)]
        used = set(self.function.results)
        kept: list[ir.Node] = []
        for node in reversed(nodes):
            names = {value.name for value in node.outputs}
            if names <= self.padded.keys() and not names & used:
                continue
            used.update(node.inputs)
            kept.append(node)
        return replace(self.function, nodes=tuple(reversed(kept)))

    def _folded(self, node: ir.Node) -> Iterator[ir.Node]:
        """The node, which reads what was padded if it is a convolution that can pad by itself."""
        name = node.outputs[0].name
        if name in self.bound:
            yield node
            return
        match node.operation:
            case Pad() as pad:
                self.padded[name] = _Padded(pad, node.inputs[0], self.types[name].shape)
            case Reshape() if node.inputs[0] in self.padded:
                self.padded[name] = self.padded[node.inputs[0]]
            case Conv2d() | DepthwiseConv2d() as operation if (
                node.inputs[0] in self.padded and not operation.is_same
            ):
                padded = self.padded[node.inputs[0]]
                shape = self.types[node.inputs[0]].shape
                image = _image(padded, shape) if padded.pad.value == operation.input_zero_point else None
                if image is not None:
                    source, reshape = self._source(padded, image.shape, node)
                    yield from reshape
                    padding = operation.padding
                    total = tuple(own + more for own, more in zip(padding, image.padding, strict=True))
                    operation = replace(operation, padding=(total[0], total[1], total[2], total[3]))
                    node = replace(node, operation=operation, inputs=(source, *node.inputs[1:]))
            case _:
                pass
        yield node

    def _source(
        self, padded: _Padded, shape: tuple[ir.Extent, ...], node: ir.Node
    ) -> tuple[str, tuple[ir.Node, ...]]:
        """The name of what was padded under a shape, and the reshape that makes it if it is not there."""
        type_ = self.types[padded.source]
        key = (padded.source, shape)
        if type_.shape == shape:
            return padded.source, ()
        if key in self.views:
            return self.views[key], ()
        name = self.views[key] = unique_name(f"{node.inputs[0]}/unpadded", self.names)
        # A constant is at no place of its own.
        place = self.types[node.inputs[0]].place if type_.place == ir.UNPLACED else type_.place
        value = ir.Value(name, ir.TensorType(shape, type_.dtype, place))
        return name, (ir.Node(Reshape(shape), (padded.source,), (value,), node.where),)


@dataclass(frozen=True, slots=True)
class _Image:
    """What a convolution reads in place of a padded image: the shape without the padding, and the padding."""

    shape: tuple[ir.Extent, ...]
    padding: tuple[int, int, int, int]


def _image(padded: _Padded, shape: tuple[ir.Extent, ...]) -> _Image | None:
    """The image of a shape that a padded tensor is seen as; None if more than rows and columns are padded."""
    own = [axis for axis, extent in enumerate(padded.shape) if extent != 1]
    seen = [axis for axis, extent in enumerate(shape) if extent != 1]
    if [padded.shape[axis] for axis in own] != [shape[axis] for axis in seen]:
        return None
    extents, before, after = list(shape), [0] * len(shape), [0] * len(shape)
    for axis, place in zip(own, seen, strict=True):
        before[place], after[place] = padded.pad.before[axis], padded.pad.after[axis]
        extents[place] = ir.quotient(shape[place], -before[place] - after[place])
    if any((before[0], after[0], before[3], after[3])):
        return None
    return _Image(tuple(extents), (before[1], after[1], before[2], after[2]))
