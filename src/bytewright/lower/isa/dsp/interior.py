"""Windows that lie inside the input altogether: there a row under one is a run of bytes."""

from collections.abc import Sequence

from bytewright import ir
from bytewright.lower.kernels.context import Pixel
from bytewright.lower.kernels.window import Window


def inside_together(window: Window, pixels: Sequence[Pixel]) -> ir.Expr:
    """Whether the windows of all these pixels, neighbours in a row, lie inside the input."""
    first, last = window.columns.interior
    if first + len(pixels) > last:
        return ir.FALSE
    condition = window.rows.is_interior(pixels[0][1])
    for _, _, x in pixels:
        condition = ir.both(condition, window.columns.is_interior(x))
    return condition


def first_column(window: Window, x: ir.Expr) -> ir.Expr:
    """The column where a window begins that lies inside the input.

    Limits, which change nothing there, say so to whoever proves that a row of it ends in the row of the input.
    """
    columns = window.columns
    column = columns.tap(x, 0)
    if columns.is_all_interior:
        return column
    return ir.clamp(column, 0, columns.size - 1 - (columns.kernel - 1) * columns.dilation)
