"""Axes that all tensors of an element-wise group have in common, as one: neighbours in memory are neighbours there."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from bytewright import ir
from bytewright.lower.elements import ELEMENTS
from bytewright.lower.epilogue import elementwise_operands
from bytewright.lower.group import Group
from bytewright.lower.kernel import ROWS

Shape = tuple[ir.Extent, ...]
Types = Mapping[str, ir.TensorType]
Constants = Mapping[str, ir.Constant]


def merge_axes(group: Group, types: Types, constants: Constants) -> tuple[Types, Constants]:
    """The types of a group's tensors with as many last axes as possible merged into the last one, and its constants.

    Ranks stay, so that rows of [N, H, W, C] are what they were: merged axes have an extent of 1. A tensor that is
    broadcast along some of the axes, open extents, and constants with an entry for each channel keep them apart.
    """
    whole = types[group.output.name].shape
    names = {
        name for node in group.elementwise for name in (node.outputs[0].name, *elementwise_operands(node))
    }
    shapes = {name: _padded(types[name].shape, len(whole)) for name in sorted(names)}
    first = _first_merged(group, constants, whole, shapes.values())
    if first >= len(whole) - 1:
        return types, constants
    merged = {name: _merged(shape, first) for name, shape in shapes.items()}
    return (
        {**types, **{name: replace(types[name], shape=shape) for name, shape in merged.items()}},
        {
            **constants,
            **{
                name: _reshaped(constants[name], shape) for name, shape in merged.items() if name in constants
            },
        },
    )


def _first_merged(group: Group, constants: Constants, whole: Shape, shapes: Iterable[Shape]) -> int:
    """The first of the last axes along which each tensor has either all extents of `whole` or one element."""
    last = len(whole) - 1
    if any(_is_by_channel(node, constants) for node in group.elementwise):
        return last
    rows = ROWS if len(whole) == 4 and whole[ROWS] != 1 else -1
    first = last
    while first > 0 and first - 1 != rows and isinstance(whole[first - 1], int):
        tails = {shape[first - 1 :] for shape in shapes}
        if any(tail != whole[first - 1 :] and set(tail) != {1} for tail in tails):
            break
        first -= 1
    return first


def _is_by_channel(node: ir.Node, constants: Constants) -> bool:
    """Whether an operand that is read as a whole has an entry for each channel."""
    whole = node.inputs[ELEMENTS[type(node.operation)].num_operands :]
    return ELEMENTS[type(node.operation)].is_by_channel and any(
        constants[name].data.array.size > 1 for name in whole
    )


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _merged(shape: Shape, first: int) -> Shape:
    size = prod(extent for extent in shape[first:] if isinstance(extent, int))
    return (*shape[:first], *(1,) * (len(shape) - 1 - first), size)


def _reshaped(constant: ir.Constant, shape: Shape) -> ir.Constant:
    data = constant.data
    fixed = tuple(extent for extent in shape if isinstance(extent, int))
    return replace(constant, data=ir.TensorData.from_array(data.array.reshape(fixed), data.dtype))
