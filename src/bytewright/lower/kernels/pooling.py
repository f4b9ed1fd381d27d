"""Pools: reductions over a window, a few channels side by side."""

from contextlib import nullcontext
from dataclasses import dataclass

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import DIVIDE_ROUND
from bytewright.lower.kernels.context import Pixel, Template, channel_blocks, named, pixels, reduced
from bytewright.lower.kernels.side_by_side import ArrayReducer, Reducer
from bytewright.lower.kernels.window import Axis, Window, window_of
from bytewright.lower.rescale import ScaleOperands, double_round
from bytewright.lower.scalar import Scalar, element, lowest, require_i32
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d

ARRAYS = ArrayReducer()


def lower_pool(
    template: Template, operation: MaxPool2d | TflAveragePool2d, reducer: Reducer = ARRAYS
) -> None:
    """Writes the kernel of a pool.

    x: [N, H, W, C]; result: [N, OH, OW, C]. Taps outside the input take no part, nor do they count.
    """
    channels = template.type(0).fixed_shape[-1]
    window = window_of(
        template.type(0).shape,
        template.result_type.shape,
        operation.kernel,
        operation.stride,
        (1, 1),
        operation.padding,
        is_same=operation.is_same,
    )
    if template.type(0).dtype.is_integer:
        low, high = (bound * window.num_taps for bound in template.type(0).dtype.bounds)
        require_i32(low, high, "the sum of a window", template.anchor.where)
    is_max = isinstance(operation, MaxPool2d)
    rounds_up = not is_max and operation.rounds_up
    pool = _Pool(template, window, template.input(0), reducer, is_max=is_max, rounds_up=rounds_up)
    with pixels(template) as pixel:
        for first, num_channels in channel_blocks(template.body, channels, reducer.most_channels, reduced):
            pool.write_block(pixel, first, num_channels)


@dataclass(frozen=True, slots=True)
class _Pool:
    """The reduction of one window for a block of channels."""

    template: Template
    window: Window
    source: ir.Buffer
    reducer: Reducer
    is_max: bool
    rounds_up: bool

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
        if not value.dtype.is_integer:
            return Scalar(value if self.is_max else value / ir.cast(count, value.dtype))
        return Scalar(value if self.is_max else self._quotient(value, count), *self.source.dtype.bounds)

    def _quotient(self, total: ir.Expr, count: ir.Expr) -> ir.Expr:
        """The sum divided by how many it is of, rounded half away from zero, or up."""
        low, high = self.source.dtype.bounds
        if self.rounds_up:
            # Of none that is negative, both are the same.
            raised = total + count * -low
            return self._away_from_zero(raised, count, 0, high - low) + low
        return self._away_from_zero(total, count, low, high)

    def _away_from_zero(self, total: ir.Expr, count: ir.Expr, low: int, high: int) -> ir.Expr:
        """The sum of so many values of a range, divided by their number."""
        if self.reducer.divides or not isinstance(count, ir.Const):
            return DIVIDE_ROUND(total, count)
        num = int(count.value)
        scale = reciprocal(num, max(-low, high))
        if scale is None:
            return DIVIDE_ROUND(total, count)
        return double_round(Scalar(total, low * num, high * num), scale, self.template.anchor.where).expr


def reciprocal(count: int, reach: int) -> ScaleOperands | None:
    """Operands with which DOUBLE_ROUND of a sum of `count` values is its mean, rounded half away from zero.

    The magnitude of a value is `reach` at most.

    The sum s is multiplied by 2^k so that it stays below 2^30, and by m / 2^31, which is 2^q / count but for half of
    2^-31; then it is divided by 2^(k + q). Before the first rounding the error is at most 1/8 of 2^-(k + q), after it
    5/8. A mean that lies halfway is a multiple of 2^-(k + q), so it is met; any other is 1 / (2 count) away from
    halfway at least, which is more if k is 2 or more, since 2^q is no less than count / 2. None where k is less, or
    the mean is the sum.
    """
    left_bits = 29 - (reach * count - 1).bit_length()
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
    first = position * axis.stride - axis.before
    return ir.minimum(first + axis.kernel, ir.extent_expr(axis.extent)) - ir.maximum(first, 0)
