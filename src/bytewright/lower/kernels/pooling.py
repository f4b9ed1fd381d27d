"""Pools and means: reductions over a window or over axes, a few channels side by side."""

from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import DIVIDE_ROUND
from bytewright.lower.kernels.context import Pixel, Template, channel_blocks, loops, named, pixels
from bytewright.lower.kernels.window import Axis, Window, window_of
from bytewright.lower.rescale import ScaleOperands, double_round
from bytewright.lower.scalar import Scalar, clamped, element, lowest, require_i32
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean

I32, F32 = ir.DType.I32, ir.DType.F32
LANES = 8


def lower_pool(template: Template, operation: MaxPool2d | TflAveragePool2d) -> None:
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
    pool = _Pool(template, window, template.input(0), isinstance(operation, MaxPool2d))
    with pixels(template) as pixel:
        for first, lanes in channel_blocks(template.body, channels, LANES, _reduced):
            pool.write_block(pixel, first, lanes)


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

    def write_block(self, pixel: Pixel, first: ir.Expr, lanes: int) -> None:
        """Reduces and stores `lanes` channels."""
        body, window = self.template.body, self.window
        start = lowest(self.source.dtype)
        start = start if self.is_max else ir.const(0, start.dtype)
        results = self.template.kernel.scratch("results", (lanes,), start.dtype)
        with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
            body.store(results, lane, start)
        with window.loops(body) as (ky, kx):
            position = window.under(body, pixel, ky, kx)
            inside = window.contains(position, ky, kx)
            with (
                nullcontext() if inside == ir.TRUE else body.if_(inside),
                body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane,
            ):
                value = element(load(self.source, *position, first + lane)).expr
                old = load(results, lane)
                body.store(results, lane, ir.maximum(old, value) if self.is_max else old + value)
        count = ir.const(1) if self.is_max else self._count(pixel)
        with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
            self.template.epilogue.store((*pixel, first + lane), self._result(load(results, lane), count))

    def _count(self, pixel: Pixel) -> ir.Expr:
        """How many taps of the window lie inside the input."""
        _, y, x = pixel
        taps = _taps_inside(self.window.rows, y) * _taps_inside(self.window.columns, x)
        return named(self.template.body, "count", taps)

    def _result(self, value: ir.Expr, count: ir.Expr) -> Scalar:
        if self.is_max:
            return Scalar(value, -128, 127)
        if value.dtype.is_integer:
            return Scalar(DIVIDE_ROUND(value, count), -128, 127)
        return Scalar(value / ir.cast(count, value.dtype))


def _taps_inside(axis: Axis, position: ir.Expr) -> ir.Expr:
    """How many taps lie inside the input along one axis."""
    if axis.is_all_interior:
        return ir.const(axis.kernel)
    first = position * axis.stride - axis.pad_before
    return ir.minimum(first + axis.kernel, axis.size) - ir.maximum(first, 0)


def lower_mean(template: Template, operation: TflMean) -> None:
    """Writes the kernel of a mean over axes.

    For i8: DOUBLE_ROUND of the sum less its zero points, plus the output's zero point.
    """
    body = template.body
    source, input_shape = template.input(0), template.type(0).shape
    axes = range(len(input_shape))
    kept = [axis for axis in axes if axis not in operation.axes]
    with loops(template.kernel, input_shape, kept, by_rows=operation.keep_dims) as outer:
        total = body.scalar("total", I32 if source.dtype.is_integer else F32, 0)
        with loops(template.kernel, input_shape, operation.axes, by_rows=False) as inner:
            indices = {**outer, **inner}
            body.add_to(total, (), element(load(source, *(indices[axis] for axis in axes))).expr)
        own = [outer.get(axis, ir.const(0)) for axis in axes if operation.keep_dims or axis in outer]
        template.epilogue.store(tuple(own), _mean(template, operation, load(total)))


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
