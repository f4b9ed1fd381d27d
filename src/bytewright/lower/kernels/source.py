"""What lies under the windows of neighbouring pixels, in runs of elements that lie one after another.

Where a window is between the sides of the input, each row of it is a run; a row above or below the input is a run of
zero points. Elsewhere, and where columns are dilated, each tap is one.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from bytewright import ir
from bytewright.ir.builder import BodyBuilder, region
from bytewright.lower.kernels.context import Pixel, counted, named
from bytewright.lower.kernels.convolution import Convolution
from bytewright.lower.kernels.window import Axis

# Given a view of a run of each pixel, how many runs come before it under the window, and how many elements each has.
Put = Callable[[Sequence[ir.Buffer], ir.Expr, int], None]


def write_runs(convolution: Convolution, pixels: Sequence[Pixel], put: Put, max_unrolled: int = 0) -> None:
    """Writes what is done with each run.

    Args:
        convolution: Whose windows they are.
        pixels: Neighbours in a row.
        put: Writes what is done with a run of each pixel.
        max_unrolled: Rows of a window that are visited without a loop.
    """
    body, columns = convolution.template.body, convolution.window.columns
    inside: ir.Expr = ir.TRUE
    if not _has_rows(columns, len(pixels)):
        inside = ir.FALSE
    else:
        for _, _, x in pixels:
            inside = ir.both(inside, columns.is_interior(x))
    if inside == ir.TRUE:
        _write_rows(convolution, pixels, put, max_unrolled)
    elif inside == ir.FALSE:
        _write_taps(convolution, pixels, put)
    else:
        with body.if_(inside):
            _write_rows(convolution, pixels, put, max_unrolled)
        with body.else_():
            body.note("at a side, tap by tap; outside the input it is the zero point")
            _write_taps(convolution, pixels, put)


def first_column(columns: Axis, x: ir.Expr) -> ir.Expr:
    """The column where a window begins that is between the sides of the input.

    Limits, which change nothing there, say so to whoever proves that a row of it ends in the row of the input.
    """
    column = columns.tap(x, 0)
    if columns.is_all_interior:
        return column
    return ir.clamp(column, 0, columns.size - 1 - (columns.kernel - 1) * columns.dilation)


def _has_rows(columns: Axis, num_pixels: int) -> bool:
    """Whether rows of some windows are runs."""
    first, last = columns.interior
    return first + num_pixels <= last and (columns.dilation == 1 or columns.kernel == 1)


def _write_rows(convolution: Convolution, pixels: Sequence[Pixel], put: Put, max_unrolled: int) -> None:
    body, (rows, columns) = convolution.template.body, (convolution.window.rows, convolution.window.columns)
    length = columns.kernel * convolution.in_channels
    firsts: list[ir.Expr] = []
    for i, (_, _, x) in enumerate(pixels):
        with _numbered(body, i, pixels):
            firsts.append(named(body, "first", first_column(columns, x)))

    def write(ky: ir.Expr | int) -> None:
        views: list[ir.Buffer] = []
        for i, ((n, y, _), first) in enumerate(zip(pixels, firsts, strict=True)):
            with _numbered(body, i, pixels):
                iy = named(body, "iy", rows.tap(y, ky))
                views.append(_view(convolution, (n, iy, first), rows.contains(iy, ky), length))
        put(views, (ir.const(ky) if isinstance(ky, int) else ky), length)

    if rows.kernel <= max_unrolled:
        for ky in range(rows.kernel):
            with body.numbered(ky):
                write(ky)
    else:
        with counted(body, "ky", rows.kernel) as ky:
            write(ky)


def _write_taps(convolution: Convolution, pixels: Sequence[Pixel], put: Put) -> None:
    body, window, channels = convolution.template.body, convolution.window, convolution.in_channels
    with window.loops(body) as (ky, kx):
        views: list[ir.Buffer] = []
        for i, pixel in enumerate(pixels):
            with _numbered(body, i, pixels):
                position = window.under(body, pixel, ky, kx)
                views.append(_view(convolution, position, window.contains(position, ky, kx), channels))
        put(views, ky * window.columns.kernel + kx, channels)


def _numbered(body: BodyBuilder, number: int, pixels: Sequence[Pixel]) -> AbstractContextManager[None]:
    """Names of one of several pixels have its number."""
    return body.numbered(number) if len(pixels) > 1 else nullcontext()


def _view(convolution: Convolution, position: Pixel, inside: ir.Expr, length: int) -> ir.Buffer:
    """Elements of the input from a position on, or zero points."""
    body, dtype = convolution.template.body, convolution.dtype
    source = region(convolution.input, *position, 0)
    if inside == ir.TRUE:
        return body.view("run", source, dtype, length)
    columns, channels = convolution.window.columns, convolution.in_channels
    most = channels * (columns.kernel if _has_rows(columns, 1) else 1)
    outside = region(convolution.zero_points(most), 0)
    return body.view("run", source, dtype, length, inside, outside)
