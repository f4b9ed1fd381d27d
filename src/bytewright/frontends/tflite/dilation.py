"""Dilated convolutions that exporters write as convolutions of every n-th row and column.

Between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND, row r of sample s is row n*r + s of the image. A convolution of stride
1 reads rows r + d*k - p of a sample, so rows n*r + s + n*d*k - n*p of the image: it is the convolution of the image
with dilation n*d and padding n*p. What the image was padded with is zero there as well, so the first convolution takes
that in; crops lessen the padding of the last one, and what they cut beyond it is sliced off the result. Element-wise
operators of one value and constants may stand between, and reshapes that add or drop an axis of extent 1. All of it is
exact: every sum has the same terms.
"""

from dataclasses import dataclass, replace
from math import prod

from bytewright import ir
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Spread
from bytewright.frontends.tflite.shape import emit_slice
from bytewright.frontends.tflite.windows import MAX_STEP
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Reshape
from bytewright.ops.registry import ELEMENTWISE

# Operators between the two: a few convolutions have some for each rescale and activation.
_MOST_BETWEEN = 64
_Widths = tuple[int, ...]


class _OtherwiseError(Exception):
    """What stands between is no such chain."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """One between batch and channels.

    Attributes:
        number: Among those that are cut into blocks; None for one that a reshape added.
        side: Of its blocks.
        before, after: Zeros around it that no convolution has taken in so far.
    """

    number: int | None = None
    side: int = 1
    before: int = 0
    after: int = 0


def dilated(at: Conversion, name: str, sides: _Widths, before: _Widths, after: _Widths) -> str | None:
    """The result of convolutions of the image itself; None if there are none, or something else stands between.

    Args:
        at: The BATCH_TO_SPACE_ND.
        name: What it is given.
        sides: Of its blocks.
        before: What it crops before the image.
        after: What it crops after it.
    """
    found = _chain(at, name)
    if found is None or found[0].sides != sides:
        return None
    spread, nodes = found
    try:
        return _Image(at, spread, nodes, before, after).result()
    except _OtherwiseError:
        return None


def _chain(at: Conversion, name: str) -> tuple[Spread, list[ir.Node]] | None:
    """The operators, in order, from the samples that an image was spread to on to a value."""
    graph = at.graph
    if not graph.spreads:
        return None
    spreads = {graph.values[index]: spread for index, spread in graph.spreads.items()}
    nodes: list[ir.Node] = []
    while name not in spreads:
        node = graph.producers.get(name) if len(nodes) < _MOST_BETWEEN else None
        operands = () if node is None else tuple({n for n in node.inputs if n not in graph.constants})
        if node is None or len(operands) != 1:
            return None
        nodes.append(node)
        (name,) = operands
    return spreads[name], nodes[::-1]


class _Image:
    """The image on its way through the operators; axes are those between batch and channels."""

    def __init__(
        self, at: Conversion, spread: Spread, nodes: list[ir.Node], before: _Widths, after: _Widths
    ) -> None:
        self.at, self.nodes = at, nodes
        self.crops = list(zip(before, after, strict=True))
        self.name = spread.source
        self.zero = spread.value
        around = zip(spread.sides, spread.before, spread.after, strict=True)
        self.axes = tuple(_Axis(number, *each) for number, each in enumerate(around))

    def result(self) -> str:
        """The value after the last operator, cropped."""
        convolutions = [n for n in self.nodes if isinstance(n.operation, Conv2d | DepthwiseConv2d)]
        if not convolutions:
            raise _OtherwiseError
        for node in self.nodes:
            match node.operation:
                case Reshape(shape=shape):
                    self._reshape(node, shape)
                case Conv2d() | DepthwiseConv2d():
                    self._convolution(node, node.operation, is_last=node is convolutions[-1])
                case _:
                    self._elementwise(node)
        if [axis.number for axis in self.axes] != list(range(len(self.crops))):
            raise _OtherwiseError
        batch, *spatial, channels = self.at.type_of(self.name).fixed_shape
        size = tuple(extent - sum(crop) for extent, crop in zip(spatial, self.crops, strict=True))
        start = (0, *(first for first, _ in self.crops), 0)
        return emit_slice(self.at, self.name, start, (batch, *size, channels), (1,) * len(start))

    def _again(self, node: ir.Node, operation: ir.Operation) -> None:
        """The operator on the image."""
        inputs = tuple(name if name in self.at.graph.constants else self.name for name in node.inputs)
        self.name = self.at.emit_like(node, operation, inputs, "dilated")

    def _reshape(self, node: ir.Node, shape: tuple[ir.Extent, ...]) -> None:
        """One that adds axes of extent 1, or drops added ones; which, must be plain from the extents."""
        batch, *taken, channels = self.at.type_of(node.inputs[0]).fixed_shape
        given = tuple(map(ir.upper_bound, shape))
        if len(given) < 3 or (given[0], given[-1]) != (batch, channels):
            raise _OtherwiseError
        image = self.at.type_of(self.name).fixed_shape
        staying = [
            (axis, extent, whole)
            for axis, extent, whole in zip(self.axes, taken, image[1:-1], strict=True)
            if axis.number is not None or extent != 1
        ]
        if len(staying) != len(given) - 2 and any(extent == 1 for _, extent, _ in staying):
            raise _OtherwiseError
        axes: list[_Axis] = []
        spatial: list[int] = []
        pending = list(staying)
        for extent in given[1:-1]:
            if pending and pending[0][1] == extent:
                axis, _, whole = pending.pop(0)
                axes.append(axis)
                spatial.append(whole)
            elif extent == 1:
                axes.append(_Axis())
                spatial.append(1)
            else:
                raise _OtherwiseError
        if pending:
            raise _OtherwiseError
        self.axes = tuple(axes)
        self._again(node, Reshape((image[0], *spatial, image[-1])))

    def _elementwise(self, node: ir.Node) -> None:
        """One that does to each element what it did, which zeros around the image would not survive."""
        constants = [self.at.type_of(name) for name in node.inputs if name in self.at.graph.constants]
        is_by_channel = all(
            constant.num_elements == prod(constant.fixed_shape[-1:]) for constant in constants
        )
        is_padded = any(axis.before or axis.after for axis in self.axes)
        if not isinstance(node.operation, ELEMENTWISE) or not is_by_channel or is_padded:
            raise _OtherwiseError
        self._again(node, node.operation)

    def _convolution(self, node: ir.Node, operation: Conv2d | DepthwiseConv2d, *, is_last: bool) -> None:
        """With its taps further apart, in all of the padding; the last one does not compute what is cropped."""
        is_padded = any(axis.before or axis.after for axis in self.axes)
        if is_padded and operation.input_zero_point != self.zero:
            raise _OtherwiseError
        dilation: list[int] = []
        padding: list[int] = []
        for axis, step, spread, first in zip(
            self.axes, operation.stride, operation.dilation, (0, 2), strict=True
        ):
            if step != 1 and axis.side != 1:
                raise _OtherwiseError
            around = [axis.side * width for width in operation.padding[first : first + 2]]
            around = [around[0] + axis.before, around[1] + axis.after]
            if is_last and axis.number is not None and step == 1:
                crops = self.crops[axis.number]
                cut = (min(around[0], crops[0]), min(around[1], crops[1]))
                self.crops[axis.number] = (crops[0] - cut[0], crops[1] - cut[1])
                around = [around[0] - cut[0], around[1] - cut[1]]
            dilation.append(axis.side * spread)
            padding += around
        if max(dilation) > MAX_STEP:
            raise _OtherwiseError
        self.axes = tuple(replace(axis, before=0, after=0) for axis in self.axes)
        self._again(
            node,
            replace(
                operation,
                dilation=(dilation[0], dilation[1]),
                padding=(padding[0], padding[1], padding[2], padding[3]),
            ),
        )
