"""Which channels of an operator's operands are channels of its result: they stay together, or go together.

A channel is an index into the last axis. Most operators compute a channel of the result from that of the same number;
concatenations, slices, pads and reshapes shift them. A `conv2d` computes each from all, so it links none: it can do
without a channel of its input where the weights allow it, and of its result in any case.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.lower.elements import ELEMENTS
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Concat, Gather, Identity, Pad, Reshape, Slice, Tile, Transpose
from bytewright.ops.placement import DeviceCopy
from bytewright.ops.pooling import MaxPool2d, ReduceMax, ReduceMin, ReduceSum, TflAveragePool2d, TflMean
from bytewright.ops.resize import TflResizeBilinear, TflResizeNearest

Reduction = ReduceMax | ReduceMin | ReduceSum | TflMean
Indices = NDArray[np.intp]
Shapes = tuple[tuple[ir.Extent, ...], ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Channel `taken[i]` of an operand is channel `given[i]` of the result; either may be named several times."""

    operand: int
    taken: Indices
    given: Indices


Links = tuple[Link, ...]


def num_channels(shape: tuple[ir.Extent, ...]) -> int | None:
    """The last extent; None if there is none, or it is open."""
    return shape[-1] if shape and isinstance(shape[-1], int) else None


def links_of(node: ir.Node, shapes: Mapping[str, tuple[ir.Extent, ...]]) -> Links | None:
    """The links of an operator; None for one that needs its operands, and gives its result, as they are.

    Args:
        node: Any operator.
        shapes: Of its operands and its results, by name.
    """
    rule = _RULES.get(type(node.operation))
    if rule is None or len(node.outputs) != 1 or num_channels(shapes[node.outputs[0].name]) is None:
        return None
    given = tuple(shapes[name] for name in node.inputs)
    return rule(node.operation, given, shapes[node.outputs[0].name])


def _identical(operand: int, count: int) -> Link:
    indices = np.arange(count)
    return Link(operand, indices, indices)


def _one(operation: ir.Operation, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    """The first operand's channels are the result's."""
    del operation
    count = num_channels(result)
    return (_identical(0, count),) if count is not None and num_channels(operands[0]) == count else None


def _elementwise(num_operands: int) -> Callable[[Any, Shapes, tuple[ir.Extent, ...]], Links | None]:
    """Operands that are broadcast over the channels are read as a whole."""

    def links(operation: ir.Operation, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links:
        del operation
        count = num_channels(result) or 0
        numbers = (i for i in range(num_operands) if num_channels(operands[i]) == count)
        return tuple(_identical(number, count) for number in numbers)

    return links


def _conv2d(operation: Conv2d, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links:
    del operation, operands, result
    return ()


def _depthwise(operation: DepthwiseConv2d, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links:
    """Channel c*M+m of the result is of channel c."""
    del operation
    count, channels = num_channels(result) or 0, num_channels(operands[0]) or 1
    given = np.arange(count)
    return (Link(0, given // (count // channels), given),)


def _reduced(operation: Reduction, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    return None if len(operands[0]) - 1 in operation.axes else _one(operation, operands, result)


def _pad(operation: Pad, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links:
    del result
    taken = np.arange(num_channels(operands[0]) or 0)
    return (Link(0, taken, taken + operation.before[-1]),)


def _concat(operation: Concat, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links:
    if operation.axis != len(result) - 1:
        return tuple(_identical(i, num_channels(shape) or 0) for i, shape in enumerate(operands))
    links: list[Link] = []
    first = 0
    for number, shape in enumerate(operands):
        taken = np.arange(num_channels(shape) or 0)
        links.append(Link(number, taken, first + taken))
        first += taken.size
    return tuple(links)


def _slice(operation: Slice, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    """Only channels one after the other: of others, some would leave numbers that no slice takes."""
    del operands
    first = operation.start[-1]
    if operation.stride[-1] != 1 or not isinstance(first, int):
        return None
    given = np.arange(num_channels(result) or 0)
    return (Link(0, first + given, given),)


def _transpose(operation: Transpose, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    return _one(operation, operands, result) if operation.permutation[-1] == len(result) - 1 else None


def _tile(operation: Tile, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    return _one(operation, operands, result) if operation.multiples[-1] == 1 else None


def _gather(operation: Gather, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    """What is taken has all of its channels, unless it is channels."""
    return _one(operation, operands, result) if operation.axis != len(operands[0]) - 1 else None


def _reshape(operation: Reshape, operands: Shapes, result: tuple[ir.Extent, ...]) -> Links | None:
    """Axes may be merged into the channels, or taken out of them, as long as channels are not torn apart."""
    del operation
    before, after = num_channels(operands[0]), num_channels(result)
    if not before or not after or max(before, after) % min(before, after):
        return None
    every = np.arange(max(before, after))
    return (Link(0, every % before, every % after),)


_RULES: dict[type[ir.Operation], Callable[[Any, Shapes, tuple[ir.Extent, ...]], Links | None]] = {
    **{kind: _elementwise(rule.num_operands) for kind, rule in ELEMENTS.items()},
    Concat: _concat,
    Conv2d: _conv2d,
    DepthwiseConv2d: _depthwise,
    DeviceCopy: _one,
    Gather: _gather,
    Identity: _one,
    MaxPool2d: _one,
    Pad: _pad,
    ReduceMax: _reduced,
    ReduceMin: _reduced,
    ReduceSum: _reduced,
    Reshape: _reshape,
    Slice: _slice,
    TflAveragePool2d: _one,
    TflMean: _reduced,
    TflResizeBilinear: _one,
    TflResizeNearest: _one,
    Tile: _tile,
    Transpose: _transpose,
}
