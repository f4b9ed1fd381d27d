"""Places of greatest values, elements by several numbers, running sums, and tensors of which a part is replaced."""

import operator
from collections.abc import Callable
from typing import assert_never

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.expr import both, either, equal
from bytewright.lower.kernels.context import Template, counted, loops
from bytewright.lower.kernels.data import within
from bytewright.lower.kernels.reduction import wrapping_product, wrapping_sum
from bytewright.lower.point import Coordinates
from bytewright.lower.scalar import Scalar, computed_on, element
from bytewright.ops.places import (
    ArgMax,
    ArgMin,
    CumulativeSum,
    GatherNd,
    Scatter,
    ScatterLast,
    ScatterMax,
    ScatterMin,
    ScatterNd,
    ScatterProduct,
    TopKPlaces,
    UpdateSlice,
)


def lower_arg_extremum(template: Template, operation: ArgMax | ArgMin) -> None:
    """Writes the kernel of a search along an axis: the first element is the best, until one is beyond it."""
    source, shape, body = template.input(0), template.type(0).shape, template.body
    axis = operation.axis
    beyond = operator.gt if isinstance(operation, ArgMax) else operator.lt
    kept = [each for each in range(len(shape)) if each != axis]
    with loops(template.kernel, shape, kept, by_rows=False) as outer:
        own = tuple(outer[each] for each in kept)

        def value(place: ir.Expr | int) -> ir.Expr:
            indices = [outer.get(each, place) for each in range(len(shape))]
            found = element(load(source, *indices)).expr
            is_truth = found.dtype is ir.DType.BOOL
            return ir.select(found, ir.const(1), ir.const(0)) if is_truth else found

        first = value(0)
        best = body.scalar("best", first.dtype, first)
        place = body.scalar("place", ir.DType.I32, 0)
        with body.for_("candidate", 1, ir.extent_expr(shape[axis])) as candidate:
            found = body.let("found", value(candidate))
            with body.if_(beyond(found, load(best))):
                body.store(best, (), found)
                body.store(place, (), candidate)
        result = Scalar(
            ir.cast(load(place), computed_on(operation.dtype)), 0, ir.upper_bound(shape[axis]) - 1
        )
        template.epilogue.store(own, result)


def lower_top_k(template: Template, operation: TopKPlaces) -> None:
    """Writes the kernel of a search for the greatest elements: each is the greatest of those that come after the last.

    What comes after is smaller, or alike and further on: so nothing is kept of what was found but the last. What is not
    a number is smaller than all numbers, so that there is always a next one.
    """
    source, shape, body = template.input(0), template.type(0).shape, template.body
    extent = shape[-1]
    kind = computed_on(template.type(0).dtype)
    with loops(template.kernel, shape, range(len(shape) - 1), by_rows=False) as outer:
        own = tuple(outer.values())

        def value(place: ir.Expr | int) -> ir.Expr:
            return element(load(source, *own, place)).expr

        last = body.scalar("last", kind, value(0))
        last_place = body.scalar("last_place", ir.DType.I32, -1)
        with counted(body, "rank", operation.count) as rank:
            best = body.scalar("best", kind, value(0))
            place = body.scalar("place", ir.DType.I32, -1)
            with body.for_("candidate", 0, ir.extent_expr(extent)) as candidate:
                found = body.let("found", value(candidate))
                is_later = both(_is_alike(found, load(last)), candidate > load(last_place))
                is_after = either(load(last_place) < 0, either(_is_greater(load(last), found), is_later))
                is_first = load(place) < 0
                with body.if_(both(is_after, either(is_first, _is_greater(found, load(best))))):
                    body.store(best, (), found)
                    body.store(place, (), candidate)
            template.epilogue.store((*own, rank), Scalar(load(place), 0, ir.upper_bound(extent) - 1))
            body.store(last, (), load(best))
            body.store(last_place, (), load(place))


def _is_greater(one: ir.Expr, other: ir.Expr) -> ir.Expr:
    """Whether one comes before another of TOPK_V2; all numbers do before what is none."""
    is_beyond = one > other
    return either(is_beyond, _numbers(one) > _numbers(other)) if one.dtype is ir.DType.F32 else is_beyond


def _is_alike(one: ir.Expr, other: ir.Expr) -> ir.Expr:
    """Whether neither is greater."""
    is_same = equal(one, other)
    neither = equal(_numbers(one) + _numbers(other), 0)
    return either(is_same, neither) if one.dtype is ir.DType.F32 else is_same


def _numbers(value: ir.Expr) -> ir.Expr:
    """How many numbers a value is: 1, or 0."""
    return ir.select(equal(value, value), ir.const(1), ir.const(0))


def lower_gather_nd(template: Template, _: GatherNd) -> None:
    """Writes the kernel of a gather by several numbers; those that only the run knows are kept within their axes."""
    source, table = template.input(0), template.input(1)
    shape, rows = template.type(0).shape, template.type(1).fixed_shape
    is_known = template.anchor.inputs[1] in template.epilogue.constants
    result, end = template.result_type.shape, len(rows) - 1
    with loops(template.kernel, result, range(end)) as outer:
        coordinates = tuple(outer.values())
        taken = _places(template, table, coordinates, shape[: rows[-1]], is_known=is_known)
        with loops(template.kernel, result, range(end, len(result))) as inner:
            value = load(source, *taken, *inner.values())
            template.epilogue.store((*coordinates, *inner.values()), element(value))


def lower_scatter(template: Template, operation: Scatter) -> None:
    """Writes what the result begins as, and combines it with the updates, one after the other."""
    table, updates = template.input(0), template.input(1)
    shape, rows, parts = operation.shape, template.type(0).fixed_shape, template.type(1).fixed_shape
    is_known = template.anchor.inputs[0] in template.epilogue.constants
    body, output = template.body, template.epilogue.output
    dtype, kind = template.result_type.dtype, computed_on(template.result_type.dtype)
    combine = _combined(operation, dtype)
    with loops(template.kernel, shape, range(len(shape)), by_rows=False) as indices:
        start = ir.const(operation.start(dtype), kind)
        body.store(output, tuple(indices.values()), ir.cast(start, dtype))
    end = len(rows) - 1
    with loops(template.kernel, parts, range(end), by_rows=False) as outer:
        coordinates = tuple(outer.values())
        taken = _places(template, table, coordinates, shape[: rows[-1]], is_known=is_known)
        with loops(template.kernel, parts, range(end, len(parts)), by_rows=False) as inner:
            own = (*taken, *inner.values())
            update = element(load(updates, *coordinates, *inner.values())).expr
            total = combine(element(load(output, *own)).expr, update) if combine else update
            body.store(output, own, ir.cast(total, dtype))


def _combined(operation: Scatter, dtype: ir.DType) -> Callable[[ir.Expr, ir.Expr], ir.Expr] | None:
    """What an element so far and an update make; None for the update alone."""
    match operation:
        case ScatterNd():
            return _combining(dtype)
        case ScatterProduct():
            return wrapping_product(dtype)
        case ScatterMax():
            return ir.maximum
        case ScatterMin():
            return ir.minimum
        case ScatterLast():
            return None
        case _:
            assert_never(operation)


def _combining(dtype: ir.DType) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
    """What adds two elements of a type."""
    if dtype is ir.DType.BOOL:
        return either
    return wrapping_sum(dtype) if dtype.is_integer else operator.add


def _places(
    template: Template, table: ir.Buffer, row: Coordinates, extents: tuple[ir.Extent, ...], *, is_known: bool
) -> tuple[ir.Expr, ...]:
    """The numbers in a row of a table; those that only the run knows are kept within their axes."""
    taken: list[ir.Expr] = []
    for number, extent in enumerate(extents):
        own: ir.Expr = load(table, *row, number)
        own = own if is_known else within(own, extent)
        taken.append(template.body.let("taken", ir.cast(own, ir.DType.I32)))
    return tuple(taken)


def lower_cumulative_sum(template: Template, operation: CumulativeSum) -> None:
    """Writes the kernel of running sums: one total for each line along the axis."""
    source, shape, body = template.input(0), template.type(0).shape, template.body
    axis, dtype = operation.axis, template.type(0).dtype
    extent = shape[axis]
    add = _combining(dtype)
    kept = [each for each in range(len(shape)) if each != axis]
    with loops(template.kernel, shape, kept, by_rows=False) as outer:
        total = body.scalar("total", computed_on(dtype), ir.const(0, computed_on(dtype)))
        with counted(body, "step", extent) as step:
            place = ir.extent_expr(extent) - 1 - step if operation.reverse else step
            indices = tuple(outer.get(each, place) for each in range(len(shape)))
            after = body.let("after", add(load(total), element(load(source, *indices)).expr))
            shown = load(total) if operation.exclusive else after
            bounds = dtype.bounds if dtype.is_integer else (0, 0)
            template.epilogue.store(indices, Scalar(shown, *bounds))
            body.store(total, (), after)


def lower_update_slice(template: Template, _: UpdateSlice) -> None:
    """Writes a copy of the operand, and the update over it."""
    operand, update, start = (template.input(number) for number in range(3))
    whole, part = template.result_type.shape, template.type(1).shape
    with loops(template.kernel, whole, range(len(whole)), by_rows=False) as indices:
        own = tuple(indices.values())
        template.epilogue.store(own, element(load(operand, *own)))
    first = [
        template.body.let("first", ir.cast(_first(load(start, axis), extent, size), ir.DType.I32))
        for axis, (extent, size) in enumerate(zip(whole, part, strict=True))
    ]
    with loops(template.kernel, part, range(len(part)), by_rows=False) as indices:
        own = tuple(indices.values())
        moved = tuple(index + offset for index, offset in zip(own, first, strict=True))
        template.epilogue.store(moved, element(load(update, *own)))


def _first(number: ir.Expr, extent: ir.Extent, size: ir.Extent) -> ir.Expr:
    """Where an update of a size begins, or the nearest place from which it fits."""
    last = ir.cast(ir.extent_expr(extent) - ir.extent_expr(size), number.dtype)
    return ir.minimum(ir.maximum(number, 0), last)
