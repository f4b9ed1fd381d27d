"""Extents that the data decides: each kernel writes as much as there is room for, and says how much there would be."""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.expr import equal
from bytewright.lower.kernels.context import Template, counted, loops
from bytewright.lower.scalar import element
from bytewright.ops.sizes import DistinctValues, StatedSize, TruePlaces


def lower_stated_size(template: Template, _: StatedSize) -> None:
    """Writes the kernel of a number that says an extent."""
    number, size = template.input(0), template.epilogue.output
    asked = load(number, *(0 for _ in number.shape))
    kept = ir.minimum(ir.maximum(asked, -1), ir.DType.I32.bounds[1])
    template.body.store(size, (0,), ir.cast(kept, ir.DType.I32))


def lower_distinct_values(template: Template, operation: DistinctValues) -> None:
    """Writes the kernel of values without repetition: each element is looked for among those found so far.

    Of more values than there is room for, only their number counts.
    """
    source, values, places, size, body = (
        template.input(0),
        template.epilogue.output,
        template.output(1),
        template.output(2),
        template.body,
    )
    most = ir.upper_bound(operation.count)
    with counted(body, "n", most) as n:
        body.store(values, (n,), 0)
    num_found = body.scalar("num_found", ir.DType.I32, 0)
    with counted(body, "element", template.type(0).shape[0]) as each:
        own = body.let("own", element(load(source, each)).expr)
        place = body.scalar("place", ir.DType.I32, load(num_found))
        kept = body.let("kept", ir.minimum(load(num_found), most))
        with body.for_("back", 0, kept) as back:
            other = body.let("other", ir.maximum(kept - 1 - back, 0))
            with body.if_(equal(element(load(values, other)).expr, own)):
                body.store(place, (), other)
        with body.if_(equal(load(place), load(num_found))):
            with body.if_(load(num_found) < most):
                body.store(values, (load(num_found),), load(source, each))
            body.add_to(num_found, (), 1)
        body.store(places, (each,), ir.cast(load(place), places.dtype))
    body.store(size, (0,), load(num_found))


def lower_true_places(template: Template, operation: TruePlaces) -> None:
    """Writes the kernel of a search for truth values that hold; rows behind the last one are zero."""
    source, places, size, body = (
        template.input(0),
        template.epilogue.output,
        template.output(1),
        template.body,
    )
    shape, most = template.type(0).shape, ir.upper_bound(operation.count)
    with loops(template.kernel, places.shape, range(2), by_rows=False) as indices:
        body.store(places, tuple(indices.values()), 0)
    num_found = body.scalar("num_found", ir.DType.I32, 0)
    with loops(template.kernel, shape, range(len(shape)), by_rows=False) as indices:
        coordinates = tuple(indices.values())
        with body.if_(load(source, *coordinates)):
            with body.if_(load(num_found) < most):
                row = body.let("row", load(num_found))
                for axis, coordinate in enumerate(coordinates):
                    body.store(places, (row, axis), ir.cast(coordinate, ir.DType.I64))
            body.add_to(num_found, (), 1)
    body.store(size, (0,), load(num_found))
