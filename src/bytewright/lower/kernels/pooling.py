"""Pools and means: reductions over a window or over axes, a few channels side by side."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import prod

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import DIVIDE_ROUND
from bytewright.lower.kernels.context import Pixel, Template, channel_blocks, loops, named, pixels
from bytewright.lower.kernels.side_by_side import ArrayReducer, Reducer
from bytewright.lower.kernels.window import Axis, Window, window_of
from bytewright.lower.point import Coordinates
from bytewright.lower.rescale import ScaleOperands, double_round
from bytewright.lower.scalar import Scalar, clamped, element, lowest, require_i32
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean

I32 = ir.DType.I32
ARRAYS = ArrayReducer()


def accumulator_type(dtype: ir.DType) -> ir.DType:
    """Of what type results are kept for elements of a type."""
    return I32 if dtype.is_integer else dtype


def lower_pool(
    template: Template, operation: MaxPool2d | TflAveragePool2d, reducer: Reducer = ARRAYS
) -> None:
    """Writes the kernel of a pool.

    x: [N, H, W, C]; result: [N, OH, OW, C]. Taps outside the input take no part, nor do they count.
    """
    _, in_height, in_width, channels = template.type(0).fixed_shape
    _, out_height, out_width, _ = template.result_type.fixed_shape
    window = window_of(
        (in_height, in_width),
        (out_height, out_width),
        operation.kernel,
        operation.stride,
        (1, 1),
        operation.padding,
    )
    require_i32(-128 * window.num_taps, 127 * window.num_taps, "the sum of a window", template.anchor.where)
    pool = _Pool(template, window, template.input(0), isinstance(operation, MaxPool2d), reducer)
    with pixels(template) as pixel:
        for first, num_channels in channel_blocks(template.body, channels, reducer.most_channels, _reduced):
            pool.write_block(pixel, first, num_channels)


def _reduced(num_channels: int, are_several: bool) -> str:
    """Says of blocks of channels that they are reduced."""
    what = "1 channel" if num_channels == 1 else f"{num_channels} channels"
    return (
        f"{what} at a time: reduce the window, then store"
        if are_several
        else f"{what}: reduce the window, then store"
    )


@dataclass(frozen=True, slots=True)
class _Pool:
    """The reduction of one window for a block of channels."""

    template: Template
    window: Window
    source: ir.Buffer
    is_max: bool
    reducer: Reducer

    def write_block(self, pixel: Pixel, first: ir.Expr, num_channels: int) -> None:
        """Reduces and stores some channels."""
        body, window = self.template.body, self.window
        start = lowest(self.source.dtype)
        start = start if self.is_max else ir.const(0, start.dtype)
        results = self.reducer.begin(self.template, num_channels, start.dtype, lambda _: start)
        with window.loops(body) as (ky, kx):
            position = window.under(body, pixel, ky, kx)
            inside = window.contains(position, ky, kx)

            def combine(old: ir.Expr, channel: ir.Expr) -> ir.Expr:
                value = element(load(self.source, *position, first + channel)).expr
                return ir.maximum(old, value) if self.is_max else old + value

            with nullcontext() if inside == ir.TRUE else body.if_(inside):
                results.update(combine)
        count = ir.const(1) if self.is_max else self._count(pixel)
        results.store(pixel, first, lambda value, _: self._result(value, count))

    def _count(self, pixel: Pixel) -> ir.Expr:
        """How many taps of the window lie inside the input."""
        _, y, x = pixel
        taps = _taps_inside(self.window.rows, y) * _taps_inside(self.window.columns, x)
        return named(self.template.body, "count", taps)

    def _result(self, value: ir.Expr, count: ir.Expr) -> Scalar:
        if self.is_max:
            return Scalar(value, -128, 127)
        if value.dtype.is_integer:
            return self._quotient(value, count)
        return Scalar(value / ir.cast(count, value.dtype))

    def _quotient(self, total: ir.Expr, count: ir.Expr) -> Scalar:
        """The sum divided by how many it is of, rounded half away from zero."""
        if self.reducer.divides or not isinstance(count, ir.Const):
            return Scalar(DIVIDE_ROUND(total, count), -128, 127)
        num = int(count.value)
        scale = reciprocal(num)
        low, high = -128 * num, 127 * num
        if scale is None:
            return Scalar(DIVIDE_ROUND(total, count), -128, 127)
        scaled = double_round(Scalar(total, low, high), scale, self.template.anchor.where)
        return Scalar(scaled.expr, -128, 127)


def reciprocal(count: int) -> ScaleOperands | None:
    """Operands with which DOUBLE_ROUND of a sum of `count` bytes is its mean, rounded half away from zero.

    The sum s is multiplied by 2^k so that it stays below 2^30, and by m / 2^31, which is 2^q / count but for half of
    2^-31; then it is divided by 2^(k + q). Before the first rounding the error is at most 1/8 of 2^-(k + q), after it
    5/8. A mean that lies halfway is a multiple of 2^-(k + q), so it is met; any other is 1 / (2 count) away from
    halfway at least, which is more if k is 2 or more, since 2^q is no less than count / 2. None where k is less, or
    the mean is the sum.
    """
    left_bits = 29 - (128 * count - 1).bit_length()
    if count < 2 or left_bits < 2:
        return None
    q = (count - 1).bit_length() - 1
    multiplier = ((1 << (31 + q)) + count // 2) // count
    shift = left_bits + q
    return ScaleOperands(
        multiplier=ir.const(multiplier),
        shift=ir.const(shift),
        left=ir.const(1 << left_bits),
        shifts=frozenset({shift}),
        left_bits=left_bits,
        ratio=multiplier / 2.0 ** (31 + shift),
    )


def _taps_inside(axis: Axis, position: ir.Expr) -> ir.Expr:
    """How many taps lie inside the input along one axis."""
    if axis.is_all_interior:
        return ir.const(axis.kernel)
    first = position * axis.stride - axis.pad_before
    return ir.minimum(first + axis.kernel, axis.size) - ir.maximum(first, 0)


def lower_mean(template: Template, operation: TflMean, reducer: Reducer | None = None) -> None:
    """Writes the kernel of a mean over axes; with a reducer, of blocks of what lies side by side along the last one.

    For i8: DOUBLE_ROUND of the sum less its zero points, plus the output's zero point.
    """
    input_shape = template.type(0).shape
    axes = range(len(input_shape))
    kept = [axis for axis in axes if axis not in operation.axes]
    if reducer is not None:
        kept.remove(axes[-1])
    with loops(template.kernel, input_shape, kept, by_rows=operation.keep_dims) as outer:
        own = tuple(outer.get(axis, ir.const(0)) for axis in axes if operation.keep_dims or axis in outer)
        if reducer is None:
            _mean_of_one(template, operation, outer, own)
        else:
            _mean_of_blocks(template, operation, outer, own[:-1] if operation.keep_dims else own, reducer)


def _mean_of_one(
    template: Template, operation: TflMean, outer: Mapping[int, ir.Expr], own: Coordinates
) -> None:
    """One element of the result, at coordinates of its own and of the input."""
    source, input_shape = template.input(0), template.type(0).shape
    total = template.body.scalar("total", accumulator_type(source.dtype), 0)
    with loops(template.kernel, input_shape, operation.axes, by_rows=False) as inner:
        indices = {**outer, **inner}
        value = element(load(source, *(indices[axis] for axis in range(len(input_shape))))).expr
        template.body.add_to(total, (), value)
    template.epilogue.store(own, _mean(template, operation, load(total)))


def _mean_of_blocks(
    template: Template,
    operation: TflMean,
    outer: Mapping[int, ir.Expr],
    own: Coordinates,
    reducer: Reducer,
) -> None:
    """All that lies along the last axis, where all other coordinates are given."""
    source, input_shape = template.input(0), template.type(0).shape
    *others, last = range(len(input_shape))
    start = ir.const(0, accumulator_type(source.dtype))
    num_all = template.type(0).fixed_shape[last]
    for first, num_channels in channel_blocks(template.body, num_all, reducer.most_channels, _reduced):
        results = reducer.begin(template, num_channels, start.dtype, lambda _: start)
        with loops(template.kernel, input_shape, operation.axes, by_rows=False) as inner:
            indices = {**outer, **inner}
            here = (*(indices[axis] for axis in others), first)
            results.update(partial(_plus_element, source, here))
        results.store(own, first, lambda total, _: _mean(template, operation, total))


def _plus_element(source: ir.Buffer, position: Coordinates, total: ir.Expr, channel: ir.Expr) -> ir.Expr:
    """A sum and the element so many channels after a position."""
    *outer, first = position
    return total + element(load(source, *outer, first + channel)).expr


def _mean(template: Template, operation: TflMean, total: ir.Expr) -> Scalar:
    num_reduced = prod(template.type(0).fixed_shape[axis] for axis in operation.axes)
    if not total.dtype.is_integer:
        return Scalar(total / float(num_reduced))
    shift = operation.input_zero_point * num_reduced
    low, high = -128 * num_reduced - shift, 127 * num_reduced - shift
    require_i32(low, high, "the sum of a mean", template.anchor.where)
    scale = ScaleOperands(
        multiplier=ir.const(operation.multiplier),
        shift=ir.const(max(-operation.exponent, 0)),
        left=ir.const(1 << operation.exponent) if operation.exponent > 0 else None,
        shifts=frozenset({max(-operation.exponent, 0)}),
        left_bits=max(operation.exponent, 0),
        ratio=operation.multiplier / 2.0 ** (31 + max(-operation.exponent, 0)),
    )
    scaled = double_round(Scalar(total - shift, low, high), scale, template.anchor.where)
    zero_point = operation.output_zero_point
    return clamped(
        Scalar(scaled.expr + zero_point, scaled.low + zero_point, scaled.high + zero_point), -128, 127
    )
