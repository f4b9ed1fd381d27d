"""Operators that move data: each output element is loaded from where it comes from, then finished and stored."""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, axis_names, counted, elements, nest
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import element
from bytewright.ops.data import Concat, Pad, Slice, Transpose


def lower_pad(template: Template, operation: Pad) -> None:
    """Writes the kernel of a pad: along each axis what stands before, the input, and what stands after.

    No element asks where it lies. Besides being slower, that is code which GCC 12 vectorises wrongly for AVX-512
    (a masked load of six elements whose condition is the outer loop's). Axes that are padded have fixed extents.
    """
    source = template.input(0)
    shape = template.type(0).shape
    result = template.result_type.shape
    names = axis_names(len(shape))
    body = template.body

    def fill(outer: Coordinates, first: int, count: int) -> None:
        """The constant at `count` indices from `first` on, along the axis after the outer ones."""
        if count:
            axis = len(outer)
            with nest(body, names[axis:], (count, *result[axis + 1 :])) as inner:
                value = ir.const(operation.value, source.dtype)
                template.epilogue.store((*outer, inner[0] + first, *inner[1:]), element(value))

    def write(outer: Coordinates, indices: Coordinates) -> None:
        axis = len(outer)
        if axis == len(shape):
            template.epilogue.store(outer, element(load(source, *indices)))
            return
        before = operation.before[axis]
        fill(outer, 0, before)
        with counted(body, names[axis], shape[axis]) as index:
            write((*outer, index + before), (*indices, index))
        fill(outer, before + ir.upper_bound(shape[axis]), operation.after[axis])

    write((), ())


def lower_slice(template: Template, operation: Slice) -> None:
    """Writes the kernel of a slice, strides included."""
    source = template.input(0)
    with elements(template.body, template.result_type.shape) as coordinates:
        indices = [
            index * stride + start
            for index, start, stride in zip(coordinates, operation.start, operation.stride, strict=True)
        ]
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_transpose(template: Template, operation: Transpose) -> None:
    """Writes the kernel of a transpose: axis i of the result is axis permutation[i] of the input."""
    source = template.input(0)
    with elements(template.body, template.result_type.shape) as coordinates:
        indices: list[ir.Expr] = [ir.const(0)] * len(coordinates)
        for index, axis in zip(coordinates, operation.permutation, strict=True):
            indices[axis] = index
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_concat(template: Template, operation: Concat) -> None:
    """Writes the kernel of a concatenation: one loop nest an operand."""
    axis = operation.axis
    first = 0
    for operand in range(len(template.anchor.inputs)):
        source = template.input(operand)
        with elements(template.body, template.type(operand).shape) as coordinates:
            own = list(coordinates)
            own[axis] = own[axis] + first
            template.epilogue.store(tuple(own), element(load(source, *coordinates)))
        first += template.type(operand).fixed_shape[axis]


def lower_identity(template: Template, operation: ir.Operation) -> None:
    """Writes a copy: where one tensor must exist twice, at two outputs of the model or at two places."""
    del operation
    source = template.input(0)
    with elements(template.body, template.result_type.shape) as coordinates:
        template.epilogue.store(coordinates, element(load(source, *coordinates)))
