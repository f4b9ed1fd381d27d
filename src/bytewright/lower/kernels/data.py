"""Operators that move data: each output element is loaded from where it comes from, then finished and stored."""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, elements, loops, stretch
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import element
from bytewright.ops.data import Concat, Pad, Slice, Transpose


def lower_pad(template: Template, operation: Pad) -> None:
    """Writes the kernel of a pad: along each axis what stands before, the input, and what stands after.

    No element asks where it lies. Besides being slower, that is code which GCC 12 vectorises wrongly for AVX-512
    (a masked load of six elements whose condition is the outer loop's). Axes that are padded have fixed extents.
    Rows are in order all the same, those before the input first, so that the caller may ask for some of them.
    """
    source = template.input(0)
    shape = template.type(0).shape
    result = template.result_type.shape

    def fill(outer: Coordinates, first: int, count: int) -> None:
        """The constant at `count` indices from `first` on, along the axis after the outer ones."""
        if count:
            axis = len(outer)
            with (
                stretch(template.kernel, result, axis, first, count) as own,
                loops(template.kernel, result, range(axis + 1, len(result))) as inner,
            ):
                value = ir.const(operation.value, source.dtype)
                template.epilogue.store((*outer, own, *inner.values()), element(value))

    def write(outer: Coordinates, indices: Coordinates) -> None:
        axis = len(outer)
        if axis == len(shape):
            template.epilogue.store(outer, element(load(source, *indices)))
            return
        before = operation.before[axis]
        fill(outer, 0, before)
        with stretch(template.kernel, result, axis, before, shape[axis]) as own:
            write((*outer, own), (*indices, own - before))
        fill(outer, before + ir.upper_bound(shape[axis]), operation.after[axis])

    write((), ())


def lower_slice(template: Template, operation: Slice) -> None:
    """Writes the kernel of a slice, strides included."""
    source = template.input(0)
    with elements(template.kernel, template.result_type.shape) as coordinates:
        indices = [
            index * stride + start
            for index, start, stride in zip(coordinates, operation.start, operation.stride, strict=True)
        ]
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_transpose(template: Template, operation: Transpose) -> None:
    """Writes the kernel of a transpose: axis i of the result is axis permutation[i] of the input."""
    source = template.input(0)
    with elements(template.kernel, template.result_type.shape) as coordinates:
        indices: list[ir.Expr] = [ir.const(0)] * len(coordinates)
        for index, axis in zip(coordinates, operation.permutation, strict=True):
            indices[axis] = index
        template.epilogue.store(coordinates, element(load(source, *indices)))


def lower_concat(template: Template, operation: Concat) -> None:
    """Writes the kernel of a concatenation: within the axes outside of it, one operand after the other."""
    axis, result = operation.axis, template.result_type.shape
    inner_axes = range(axis + 1, len(result))
    with loops(template.kernel, result, range(axis)) as outer:
        first = 0
        for operand in range(len(template.anchor.inputs)):
            source, count = template.input(operand), template.type(operand).fixed_shape[axis]
            with (
                stretch(template.kernel, result, axis, first, count) as own,
                loops(template.kernel, result, inner_axes) as inner,
            ):
                coordinates = (*outer.values(), own, *inner.values())
                indices = (*outer.values(), own - first, *inner.values())
                template.epilogue.store(coordinates, element(load(source, *indices)))
            first += count


def lower_identity(template: Template, _: ir.Operation) -> None:
    """Writes a copy: where one tensor must exist twice, at two outputs of the model or at two places."""
    source, shape = template.input(0), template.result_type.shape
    with loops(template.kernel, shape, range(len(shape))) as indices:
        coordinates = tuple(indices.values())
        template.epilogue.store(coordinates, element(load(source, *coordinates)))
