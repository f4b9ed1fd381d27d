"""Pools and means: reductions over a window or over axes, a few channels side by side."""

from collections.abc import Generator
from contextlib import contextmanager
from math import prod

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.ir.scalar_functions import DIVIDE_ROUND
from bytewright.lower.kernels.context import Template, axis_names, blocks, counted, named, nest, repeated
from bytewright.lower.kernels.window import Axis, Window, window_of
from bytewright.lower.rescale import ScaleOperands, double_round
from bytewright.lower.scalar import Scalar, clamped, require_i32
from bytewright.ops.pooling import MaxPool2d, TflAveragePool2d, TflMean

I32, F32 = ir.DType.I32, ir.DType.F32
LANES = 8
FLOAT_LOWEST = -3.4028234663852886e38


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
    pool = _Pool(template, operation, window)
    body = template.body
    with (
        counted(body, "n", template.type(0).shape[0]) as n,
        template.kernel.rows(out_height) as y,
        counted(body, "x", out_width) as x,
    ):
        for first, repeats, size in blocks(channels, LANES):
            what = "1 channel" if size == 1 else f"{size} channels"
            at_once = f"{what} at a time" if repeats > 1 else what
            body.note(f"{at_once}: reduce the window, then store")
            with repeated(body, "block", repeats) as block:
                pool.write_block((n, y, x), block * size + first, size)


class _Pool:
    """The reduction of one window for a block of channels."""

    def __init__(self, template: Template, operation: MaxPool2d | TflAveragePool2d, window: Window) -> None:
        self.template = template
        self.is_max = isinstance(operation, MaxPool2d)
        self.window = window
        self.input = template.input(0)
        self.dtype = F32 if self.input.dtype is F32 else I32
        num_taps = window.num_taps
        require_i32(-128 * num_taps, 127 * num_taps, "the sum of a window", template.anchor.where)

    def write_block(self, pixel: tuple[ir.Expr, ir.Expr, ir.Expr], first: ir.Expr, lanes: int) -> None:
        """Reduces and stores `lanes` channels."""
        body = self.template.body
        results = self.template.kernel.scratch("results", (lanes,), self.dtype)
        with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
            body.store(results, lane, self._neutral())
        with (
            counted(body, "ky", self.window.rows.kernel) as ky,
            counted(body, "kx", self.window.columns.kernel) as kx,
        ):
            self._visit(pixel, ky, kx, results, first, lanes)
        count = None if self.is_max else self._count(pixel)
        with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
            value = self._result(load(results, lane), count)
            self.template.epilogue.store((*pixel, first + lane), value)

    def _neutral(self) -> ir.Expr:
        if self.is_max:
            return ir.const(-128, I32) if self.dtype is I32 else ir.const(FLOAT_LOWEST, F32)
        return ir.const(0, self.dtype)

    def _visit(
        self,
        pixel: tuple[ir.Expr, ir.Expr, ir.Expr],
        ky: ir.Expr,
        kx: ir.Expr,
        results: ir.Buffer,
        first: ir.Expr,
        lanes: int,
    ) -> None:
        n, y, x = pixel
        body = self.template.body
        iy = named(body, "iy", self.window.rows.tap(y, ky))
        ix = named(body, "ix", self.window.columns.tap(x, kx))
        inside = self.window.columns.contains(ix, kx, self.window.rows.contains(iy, ky))

        def reduce() -> None:
            with body.for_("lane", 0, lanes, ir.LoopKind.VECTORISED) as lane:
                value = ir.cast(load(self.input, n, iy, ix, first + lane), self.dtype)
                old = load(results, lane)
                body.store(results, lane, ir.maximum(old, value) if self.is_max else old + value)

        if self.window.is_all_interior:
            reduce()
        else:
            with body.if_(inside):
                reduce()

    def _count(self, pixel: tuple[ir.Expr, ir.Expr, ir.Expr]) -> ir.Expr:
        _, y, x = pixel
        rows = _taps_inside(self.window.rows, y)
        columns = _taps_inside(self.window.columns, x)
        return named(self.template.body, "count", rows * columns)

    def _result(self, value: ir.Expr, count: ir.Expr | None) -> Scalar:
        if count is None:
            return Scalar(value, -128, 127)
        if self.dtype is F32:
            return Scalar(value / ir.cast(count, F32))
        return Scalar(DIVIDE_ROUND(value, count), -128, 127)


def _taps_inside(axis: Axis, position: ir.Expr) -> ir.Expr:
    """How many taps of the window lie inside the input."""
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
    rank = len(input_shape)
    axes = sorted({axis % rank for axis in operation.axes})
    is_float = source.dtype is F32
    num_reduced = prod(template.type(0).fixed_shape[axis] for axis in axes)
    kept = [axis for axis in range(rank) if axis not in axes]
    with _loops(template, kept, input_shape) as outer:
        total = body.scalar("total", F32 if is_float else I32, 0.0 if is_float else 0)
        with _loops(template, axes, input_shape) as inner:
            coordinates = [{**outer, **inner}[axis] for axis in range(rank)]
            value = load(source, *coordinates)
            body.add_to(total, (), value if is_float else ir.cast(value, I32))
        own = [outer.get(axis, ir.const(0)) for axis in range(rank) if operation.keep_dims or axis in outer]
        template.epilogue.store(tuple(own), _mean(template, operation, load(total), num_reduced, is_float))


@contextmanager
def _loops(
    template: Template, axes: list[int], shape: tuple[ir.Extent, ...]
) -> Generator[dict[int, ir.Expr], None, None]:
    """Nested loops over some axes of a tensor; yields the index of each axis."""
    names = axis_names(len(shape))
    with nest(template.body, "".join(names[axis] for axis in axes), tuple(shape[a] for a in axes)) as indices:
        yield dict(zip(axes, indices, strict=True))


def _mean(template: Template, operation: TflMean, total: ir.Expr, num_reduced: int, is_float: bool) -> Scalar:
    if is_float:
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
