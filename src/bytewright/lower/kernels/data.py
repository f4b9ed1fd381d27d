"""Operators that move data: each output element is loaded from where it comes from, then finished and stored."""

from collections.abc import Callable, Iterator

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, load
from bytewright.lower.kernels.context import (
    Template,
    axis_names,
    counted,
    elements,
    loops,
    stretch,
)
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar, element
from bytewright.ops.data import Concat, Gather, Pad, ShiftIn, Slice, Tile, Transpose, total_extent

Line = Callable[[Template, Coordinates, Callable[[ir.Expr], Scalar]], None]
"""Writes all elements along the last axis: at the outer coordinates, each given its index."""


def element_by_element(template: Template, outer: Coordinates, value: Callable[[ir.Expr], Scalar]) -> None:
    """A line as a loop."""
    shape = template.result_type.shape
    with stretch(template.kernel, shape, len(outer), 0, shape[-1]) as own:
        template.epilogue.store((*outer, own), value(own))


def lower_pad(template: Template, operation: Pad, line: Line = element_by_element) -> None:
    """Writes the kernel of a pad: along each axis what stands before, the input, and what stands after.

    No element asks where it lies. Besides being slower, that is code which GCC 12 vectorises wrongly for AVX-512
    (a masked load of six elements whose condition is the outer loop's).
    Rows are in order all the same, those before the input first, so that the caller may ask for some of them.
    """
    source = template.input(0)
    shape = template.type(0).shape
    result, last = template.result_type.shape, len(template.result_type.shape) - 1

    def fill(outer: Coordinates, first: ir.Extent, count: int) -> None:
        """The constant at `count` indices from `first` on, along the axis after the outer ones."""
        if count:
            axis, value = len(outer), element(ir.const(operation.value, source.dtype))
            with stretch(template.kernel, result, axis, first, count) as own:
                if axis == last:
                    template.epilogue.store((*outer, own), value)
                    return
                with loops(template.kernel, result, range(axis + 1, last)) as inner:
                    line(template, (*outer, own, *inner.values()), lambda _: value)

    def write(outer: Coordinates, indices: Coordinates) -> None:
        axis = len(outer)
        if axis == len(shape):
            template.epilogue.store(outer, element(load(source, *indices)))
            return
        before = operation.before[axis]
        if axis == last and not before and not operation.after[axis]:
            line(template, outer, lambda own: element(load(source, *indices, own)))
            return
        fill(outer, 0, before)
        with stretch(template.kernel, result, axis, before, shape[axis]) as own:
            write((*outer, own), (*indices, own - before))
        fill(outer, ir.quotient(shape[axis], before), operation.after[axis])

    write((), ())


def lower_slice(template: Template, operation: Slice) -> None:
    """Writes the kernel of a slice, strides included."""
    source = template.input(0)
    with elements(template.kernel, template.result_type.shape) as coordinates:
        indices = [
            index * stride + ir.extent_expr(start)
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
        first: ir.Extent = 0
        for operand in range(len(template.anchor.inputs)):
            source, count = template.input(operand), template.type(operand).shape[axis]
            with (
                stretch(template.kernel, result, axis, first, count) as own,
                loops(template.kernel, result, inner_axes) as inner,
            ):
                coordinates = (*outer.values(), own, *inner.values())
                indices = (*outer.values(), own - ir.extent_expr(first), *inner.values())
                template.epilogue.store(coordinates, element(load(source, *indices)))
            first = total_extent((first, count))


Place = tuple[ir.Buffer, Coordinates]
"""An element of a buffer, and those behind it along the last axis."""


def copy_one_by_one(body: BodyBuilder, target: Place, source: Place, count: int) -> None:
    """Copies so many elements, the first one first."""
    (to, (*to_outer, to_first)), (of, (*of_outer, of_first)) = target, source
    with counted(body, "c", count) as c:
        body.store(to, (*to_outer, to_first + c), load(of, *of_outer, of_first + c))


def lower_shift_in(
    template: Template,
    operation: ShiftIn,
    copy: Callable[[BodyBuilder, Place, Place, int], None] = copy_one_by_one,
    *,
    are_apart: bool = False,
) -> None:
    """Writes the kernel that moves up what was kept, where it is, and puts what is new behind it.

    Args:
        template: The kernel under construction.
        operation: What is shifted in, and along which axis.
        copy: Writes a copy of some elements, given where the first is put, where it is, and how many there are.
        are_apart: Whether what is copied, and where it is put, may have no element in common.
    """
    kernel, body, axis = template.kernel, template.body, operation.axis
    kept, new = kernel.updated(template.epilogue.output), template.input(1)
    shape, count = template.result_type.fixed_shape, template.type(1).fixed_shape[axis]
    last, staying = len(shape) - 1, shape[axis] - count
    body.note(f"what was kept moves up by {count}")
    for source, extent, to, of in ((kept, staying, 0, count), (new, count, staying, 0)):
        moved = (*shape[:axis], extent, *shape[axis + 1 :])
        size = min(count, extent) if are_apart and axis == last else moved[last]
        for first, num_copies, num in _runs(moved[last], size) if extent else ():
            with (
                loops(kernel, moved, range(last), by_rows=False) as indices,
                counted(body, "run", num_copies) as run,
            ):
                own = (*indices.values(), run * size + first)
                target, origin = ((*own[:axis], own[axis] + offset, *own[axis + 1 :]) for offset in (to, of))
                copy(body, (kept, target), (source, origin), num)


def _runs(count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Covers so many elements by runs of a size, and the rest: the first element, how many runs, and of how many."""
    whole, rest = divmod(count, size)
    if whole:
        yield 0, whole, size
    if rest:
        yield whole * size, 1, rest


def lower_tile(template: Template, operation: Tile) -> None:
    """Writes the kernel of a repetition: along each axis a loop over the times, if there are several, and the input's.

    No index is divided, so that each is a sum which the analyses understand.
    """
    source, shape = template.input(0), template.type(0).shape
    kernel, result = template.kernel, template.result_type.shape
    names = axis_names(len(shape))

    def write(outer: Coordinates, indices: Coordinates) -> None:
        axis = len(outer)
        if axis == len(shape):
            template.epilogue.store(outer, element(load(source, *indices)))
            return
        multiple, extent = operation.multiples[axis], shape[axis]
        if multiple == 1 or extent == 1:
            with loops(kernel, result, (axis,)) as own:
                write((*outer, own[axis]), (*indices, own[axis] if multiple == 1 else ir.const(0)))
            return
        with (
            counted(kernel.body, f"{names[axis]}_time", multiple) as time,
            counted(kernel.body, names[axis], extent) as index,
        ):
            write((*outer, time * ir.upper_bound(extent) + index), (*indices, index))

    write((), ())


def within(number: ir.Expr, extent: ir.Extent) -> ir.Expr:
    """The number of an element of an axis, or of the nearest one that there is: where there is none, of the first."""
    last = ir.cast(ir.extent_expr(extent) - 1, number.dtype)
    if ir.lower_bound(extent) < 1:
        return ir.maximum(ir.minimum(number, last), 0)
    return ir.minimum(ir.maximum(number, 0), last)


def lower_gather(template: Template, operation: Gather) -> None:
    """Writes the kernel of a gather; an index that only the run knows is kept within the axis."""
    source, table = template.input(0), template.input(1)
    shape, num_indices = template.type(0).shape, len(template.type(1).shape)
    is_known = template.anchor.inputs[1] in template.epilogue.constants
    batch, end = operation.batch_axes, operation.axis + num_indices - operation.batch_axes
    result = template.result_type.shape
    with loops(template.kernel, result, range(end)) as outer:
        coordinates = tuple(outer.values())
        taken: ir.Expr = load(table, *coordinates[:batch], *coordinates[operation.axis : end])
        if not is_known:
            taken = within(taken, shape[operation.axis])
        taken = template.body.let("taken", ir.cast(taken, ir.DType.I32))
        with loops(template.kernel, result, range(end, len(result))) as inner:
            indices = (*coordinates[: operation.axis], taken, *inner.values())
            template.epilogue.store((*coordinates, *inner.values()), element(load(source, *indices)))


def lower_identity(template: Template, _: ir.Operation) -> None:
    """Writes a copy: where one tensor must exist twice, at two outputs of the model or at two places."""
    source, shape = template.input(0), template.result_type.shape
    with loops(template.kernel, shape, range(len(shape))) as indices:
        coordinates = tuple(indices.values())
        template.epilogue.store(coordinates, element(load(source, *coordinates)))
