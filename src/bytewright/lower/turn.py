"""A convolution along rows of an open extent that are one column wide, seen as one along the columns of one row.

[N, T, 1, C] has the bytes of [N, 1, T, C], and kernels that take several pixels of a row at once have several then.
Rows of a fixed extent stay what they are, since layers run together row by row.
"""

from collections.abc import Mapping
from dataclasses import replace

from bytewright import ir
from bytewright.lower.group import Group
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d

_WEIGHTS = 1
Types = Mapping[str, ir.TensorType]
Constants = Mapping[str, ir.Constant]


def turned(group: Group, types: Types, constants: Constants) -> tuple[Group, Types, Constants] | None:
    """The group with rows and columns of its tensors swapped, and what tensors and constants are then.

    None if it has no such rows, or a tensor that cannot be seen so.
    """
    anchor = group.anchor
    if anchor is None or not isinstance(anchor.operation, Conv2d | DepthwiseConv2d):
        return None
    operation, source, weights = anchor.operation, anchor.inputs[0], anchor.inputs[_WEIGHTS]
    _, height, width, _ = types[source].shape
    _, columns = operation.kernel(types[weights].fixed_shape)
    if isinstance(height, int) or (width, columns, *operation.padding[2:]) != (1, 1, 0, 0):
        return None
    named = {name for node in group.nodes for name in (*node.inputs, *(v.name for v in node.outputs))}
    shapes = {name: types[name].shape for name in sorted(named - {weights}) if len(types[name].shape) > 2}
    if weights not in constants or any(shape[-2] != 1 for shape in shapes.values()):
        return None
    swapped = {name: _swapped(shape, -3) for name, shape in shapes.items()}
    swapped[weights] = _swapped(types[weights].shape, operation.kernel_axis)
    types = {**types, **{name: replace(types[name], shape=shape) for name, shape in swapped.items()}}
    shaped = {name: _shaped(constants[name], types[name]) for name in swapped if name in constants}
    first, *rest = (_with_types(node, types) for node in group.nodes)
    group = replace(group, anchor=replace(first, operation=operation.turned), elementwise=tuple(rest))
    return group, types, {**constants, **shaped}


def _swapped(shape: tuple[ir.Extent, ...], axis: int) -> tuple[ir.Extent, ...]:
    """The shape with an axis and the one behind it swapped."""
    axis %= len(shape)
    return (*shape[:axis], shape[axis + 1], shape[axis], *shape[axis + 2 :])


def _with_types(node: ir.Node, types: Types) -> ir.Node:
    return replace(node, outputs=tuple(replace(value, type=types[value.name]) for value in node.outputs))


def _shaped(constant: ir.Constant, type_: ir.TensorType) -> ir.Constant:
    data = constant.data
    return replace(constant, data=ir.TensorData.from_array(data.array.reshape(type_.fixed_shape), data.dtype))
