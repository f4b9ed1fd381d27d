"""Extents that the data decides: each kernel writes as much as there is room for, and says how much there would be."""

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Template, loops
from bytewright.ops.sizes import Measured, TruePlaces


def lower_measured(template: Template, _: Measured) -> None:
    """Writes the kernel of a number as an extent: what none can be is less than 0, or the most."""
    source, size = template.input(0), template.epilogue.output
    number = load(source, *(0 for _ in source.shape))
    kept = ir.minimum(ir.maximum(number, -1), ir.DType.I32.bounds[1])
    template.body.store(size, (0,), ir.cast(kept, ir.DType.I32))


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
