"""Means, sums, greatest and least values over axes: reductions of whole axes, a few channels side by side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from operator import add, mul
from typing import assert_never

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.expr import both, either
from bytewright.ir.scalar_functions import SCALE_HALF_UP_WIDE, WRAPPING_ADD, WRAPPING_MULTIPLY
from bytewright.lower.kernels.context import Template, channel_blocks, loops, reduced
from bytewright.lower.kernels.side_by_side import Reducer
from bytewright.lower.point import Coordinates
from bytewright.lower.rescale import ScaleOperands, double_round, fixed_scale, scales_of
from bytewright.lower.scalar import Scalar, clamped, computed_on, element, highest, lowest, require_i32
from bytewright.ops import pooling

Reduction = (
    pooling.ReduceAll
    | pooling.ReduceAny
    | pooling.ReduceMax
    | pooling.ReduceMin
    | pooling.ReduceProduct
    | pooling.ReduceSum
    | pooling.TflIntegerMean
    | pooling.TflMean
    | pooling.TflQuantizedProduct
    | pooling.WrappingReduceSum
)


@dataclass(frozen=True, slots=True)
class Reduced:
    """What a reduction does with elements.

    Attributes:
        hint: What to call a result.
        start: What a result is at first.
        combine: The result so far and an element make the next one.
        finish: The anchor's element, of the result of all.
        first: What the first element makes of itself, where that is not what combining it with the start gives.
    """

    hint: str
    start: ir.Const
    combine: Callable[[ir.Expr, ir.Expr], ir.Expr]
    finish: Callable[[ir.Expr], Scalar]
    first: Callable[[ir.Expr], ir.Expr] | None = None


def reduction(template: Template, operation: Reduction) -> Reduced:
    """How the elements of a reduction are combined."""
    dtype = template.type(0).dtype
    zero = ir.const(0, computed_on(dtype))
    whole = partial(_whole, dtype)
    match operation:
        case pooling.ReduceAll():
            return Reduced("all", ir.TRUE, both, Scalar)
        case pooling.ReduceAny():
            return Reduced("any", ir.FALSE, either, Scalar)
        case pooling.ReduceMax():
            return Reduced("greatest", lowest(dtype), ir.maximum, whole)
        case pooling.ReduceMin():
            return Reduced("least", highest(dtype), ir.minimum, whole)
        case pooling.ReduceProduct():
            return Reduced("product", ir.const(1, computed_on(dtype)), wrapping_product(dtype), whole)
        case pooling.WrappingReduceSum():
            return Reduced("total", zero, wrapping_sum(dtype), whole)
        case pooling.TflIntegerMean():
            total = ir.const(0, ir.DType.I64)
            return Reduced("total", total, WRAPPING_ADD, partial(_integer_mean, template, operation))
        case pooling.ReduceSum():
            return Reduced("total", zero, add, partial(_sum, template, operation))
        case pooling.TflMean():
            scale = _mean_scale(template, operation) if dtype.is_integer else None
            return Reduced("total", zero, add, partial(_mean, template, operation, scale))
        case pooling.TflQuantizedProduct():
            combine, finish = partial(_scaled_product, operation), partial(_product, operation, dtype)
            return Reduced("product", zero, combine, finish, lambda value: value - operation.input_zero_point)
        case _:
            assert_never(operation)


def lower_reduction(template: Template, operation: Reduction, reducer: Reducer | None = None) -> None:
    """Writes the kernel of a reduction over axes; with a reducer, blocks of what is side by side along the last one."""
    input_shape = template.type(0).shape
    axes = range(len(input_shape))
    kept = [axis for axis in axes if axis not in operation.axes]
    if reducer is not None:
        kept.remove(axes[-1])
    how = reduction(template, operation)
    with loops(template.kernel, input_shape, kept, by_rows=operation.keep_dims) as outer:
        own = tuple(outer.get(axis, ir.const(0)) for axis in axes if operation.keep_dims or axis in outer)
        if reducer is None:
            _one(template, operation, how, outer, own)
        else:
            own = own[:-1] if operation.keep_dims else own
            _blocks(template, operation, how, outer, own, reducer)


def _one(
    template: Template, operation: Reduction, how: Reduced, outer: Mapping[int, ir.Expr], own: Coordinates
) -> None:
    """One element of the result, at coordinates of its own and of the input."""
    source, input_shape = template.input(0), template.type(0).shape
    body = template.body
    result = body.scalar(how.hint, how.start.dtype, how.start)
    is_first = None if how.first is None else body.scalar("is_first", ir.DType.BOOL, ir.TRUE)
    with loops(template.kernel, input_shape, operation.axes, by_rows=False) as inner:
        indices = {**outer, **inner}
        value = element(load(source, *(indices[axis] for axis in range(len(input_shape))))).expr
        combined = how.combine(load(result), ir.cast(value, how.start.dtype))
        if how.first is None or is_first is None:
            body.store(result, (), combined)
        else:
            body.store(result, (), ir.select(load(is_first), how.first(value), combined))
            body.store(is_first, (), ir.FALSE)
    template.epilogue.store(own, how.finish(load(result)))


def _blocks(
    template: Template,
    operation: Reduction,
    how: Reduced,
    outer: Mapping[int, ir.Expr],
    own: Coordinates,
    reducer: Reducer,
) -> None:
    """All that lies along the last axis, where all other coordinates are given."""
    source, input_shape = template.input(0), template.type(0).shape
    *others, last = range(len(input_shape))
    num_all = template.type(0).fixed_shape[last]
    for first, num_channels in channel_blocks(template.body, num_all, reducer.most_channels, reduced):
        results = reducer.begin(template, num_channels, how.start.dtype, lambda _: how.start)
        with loops(template.kernel, input_shape, operation.axes, by_rows=False) as inner:
            indices = {**outer, **inner}
            here = (*(indices[axis] for axis in others), first)
            results.update(partial(_with_element, how, source, here))
        results.store(own, first, lambda result, _: how.finish(result))


def _with_element(
    how: Reduced, source: ir.Buffer, position: Coordinates, old: ir.Expr, channel: ir.Expr
) -> ir.Expr:
    """A result and the element so many channels after a position."""
    *outer, first = position
    return how.combine(old, element(load(source, *outer, first + channel)).expr)


def _whole(dtype: ir.DType, result: ir.Expr) -> Scalar:
    """A result that may be any value of the elements' type."""
    return Scalar(result, *dtype.bounds) if dtype.is_integer else Scalar(result)


def wrapping_sum(dtype: ir.DType) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
    """What adds an element of a wide integer type to a total of it."""
    return WRAPPING_ADD if dtype is ir.DType.I64 else partial(_wrapped, add)


def wrapping_product(dtype: ir.DType) -> Callable[[ir.Expr, ir.Expr], ir.Expr]:
    """What multiplies a product by an element of its type, a wide integer or a float."""
    if not dtype.is_integer:
        return mul
    return WRAPPING_MULTIPLY if dtype is ir.DType.I64 else partial(_wrapped, mul)


def _wrapped(combine: Callable[[ir.Expr, ir.Expr], ir.Expr], left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """Of I32: in 64 bits, of which the lower half is taken."""
    return ir.cast(combine(ir.cast(left, ir.DType.I64), ir.cast(right, ir.DType.I64)), ir.DType.I32)


def _integer_mean(template: Template, operation: pooling.TflIntegerMean, total: ir.Expr) -> Scalar:
    dtype = template.type(0).dtype
    count = ir.cast(_count(template, operation), ir.DType.I64)
    return Scalar(ir.cast(total // count, dtype), *dtype.bounds)


def num_reduced(template: Template, operation: Reduction) -> int:
    """Elements that become one, the most there are."""
    return prod(template.type(0).fixed_shape[axis] for axis in operation.axes)


def _count(template: Template, operation: Reduction) -> ir.Expr:
    """Elements that become one, in a run."""
    number, opened = ir.elements_of([template.type(0).shape[axis] for axis in operation.axes])
    return reduce(mul, map(ir.extent_expr, opened), ir.const(number))


def _sum(template: Template, operation: pooling.ReduceSum, total: ir.Expr) -> Scalar:
    if not total.dtype.is_integer:
        return Scalar(total)
    low, high = (bound * num_reduced(template, operation) for bound in template.type(0).dtype.bounds)
    require_i32(low, high, "the sum", template.anchor.where)
    return Scalar(total, low, high)


def _mean(
    template: Template, operation: pooling.TflMean, scale: ScaleOperands | None, total: ir.Expr
) -> Scalar:
    """For integers: DOUBLE_ROUND of the sum less its zero points, plus the output's zero point."""
    count = _count(template, operation) * operation.sums_of
    if scale is None:
        return Scalar(total / ir.cast(count, total.dtype))
    bounds = template.type(0).dtype.bounds
    zero_points = operation.input_zero_point * operation.sums_of
    low, high = ((bound - zero_points) * num_reduced(template, operation) for bound in bounds)
    require_i32(low, high, "the sum of a mean", template.anchor.where)
    centred = Scalar(total - count * operation.input_zero_point, min(low, 0), max(high, 0))
    scaled = double_round(centred, scale, template.anchor.where)
    zero_point = operation.output_zero_point
    return clamped(
        Scalar(scaled.expr + zero_point, scaled.low + zero_point, scaled.high + zero_point), *bounds
    )


def _mean_scale(template: Template, operation: pooling.TflMean) -> ScaleOperands:
    """What a sum less its zero points is scaled by; of an open extent, by a table with an entry for each value."""
    shape = [template.type(0).shape[axis] for axis in operation.axes]
    opened = [extent for extent in shape if not isinstance(extent, int)]
    if not opened:
        factor = operation.factor(num_reduced(template, operation) * operation.sums_of)
        return fixed_scale(factor.multiplier, factor.exponent)
    if len(opened) > 1:
        return _divided_scale(template, operation)
    (extent,) = opened
    others = prod(each for each in shape if isinstance(each, int)) * operation.sums_of
    counts = (value * others for value in range(extent.lower, extent.upper + 1))
    factors = [operation.factor(count) for count in counts]
    place = template.body.let("place", ir.extent_expr(extent) - extent.lower)

    def entry(hint: str, values: ir.Array, dtype: ir.DType) -> ir.Expr:
        return ir.cast(
            load(template.kernel.constant(hint, values.astype(dtype.numpy), dtype), place), ir.DType.I32
        )

    multipliers = np.array([factor.multiplier for factor in factors])
    exponents = np.array([factor.exponent for factor in factors])
    return scales_of(multipliers, exponents, entry)


def _divided_scale(template: Template, operation: pooling.TflMean) -> ScaleOperands:
    """Of several open extents: what `divided_by` makes of the number of elements, computed in the run."""
    body, of_one = template.body, operation.factor(1)
    least = prod(ir.lower_bound(template.type(0).shape[axis]) for axis in operation.axes) * operation.sums_of
    most = num_reduced(template, operation) * operation.sums_of
    count = body.let("count", _count(template, operation) * operation.sums_of)
    halvings = body.scalar("halvings", ir.DType.I32, 0)
    with body.for_("bit", 1, most.bit_length()) as bit, body.if_((count >> bit) > 0):
        body.store(halvings, (), bit)
    limit = 31 + of_one.exponent
    divided = body.let("divided", ir.minimum(load(halvings), limit))
    wide = ir.const(of_one.multiplier, ir.DType.I64) << ir.cast(divided, ir.DType.I64)
    multiplier = body.let("multiplier", ir.cast(wide // ir.cast(count, ir.DType.I64), ir.DType.I32))
    exponents = [of_one.exponent - min(each.bit_length() - 1, limit) for each in (most, least)]
    low, high = min(exponents), max(exponents)
    return ScaleOperands(
        multiplier=multiplier,
        shift=body.let("shift", ir.maximum(divided - of_one.exponent, 0)),
        left=body.let("left", ir.const(1) << ir.maximum(of_one.exponent - divided, 0)) if high > 0 else None,
        shifts=frozenset(max(-each, 0) for each in range(low, high + 1)),
        left_bits=max(high, 0),
        ratio=of_one.multiplier * 2.0 ** (of_one.exponent - 31) / least,
    )


def _scaled_product(operation: pooling.TflQuantizedProduct, product: ir.Expr, value: ir.Expr) -> ir.Expr:
    """The next one, of an element; what leaves 32 bits wraps."""
    centred = ir.cast(value - operation.input_zero_point, ir.DType.I64)
    return _half_up(operation, ir.cast(product, ir.DType.I64) * centred)


def _half_up(operation: pooling.TflQuantizedProduct, wide: ir.Expr) -> ir.Expr:
    return SCALE_HALF_UP_WIDE(wide, ir.const(operation.multiplier), ir.const(31 - operation.exponent))


def _product(operation: pooling.TflQuantizedProduct, dtype: ir.DType, product: ir.Expr) -> Scalar:
    """Scaled once more. Limits come before the zero point, which could leave 32 bits."""
    scaled = _half_up(operation, ir.cast(product, ir.DType.I64))
    low, high = (bound - operation.output_zero_point for bound in dtype.bounds)
    return Scalar(ir.clamp(scaled, low, high) + operation.output_zero_point, *dtype.bounds)
