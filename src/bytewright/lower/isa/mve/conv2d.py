"""conv2d on MVE with weights of int8: pairs of pixels, each the dot products of one run with all output channels.

Under a pointwise window the run is the pixel itself. Under a larger one it is gathered first, row by row where the
window lies inside the input, else tap by tap: two instructions for 16 bytes, which each output channel reads again.
So the border is no case of its own, and a pixel is read before any of its pair is stored.
"""

from collections.abc import Callable
from contextlib import nullcontext

from bytewright import ir
from bytewright.lower.isa.mve.convolve import PIXELS
from bytewright.lower.isa.mve.gather import Gather
from bytewright.lower.isa.mve.pixels import Pixels, is_direct, pixels_at_once, pixels_decline, under
from bytewright.lower.isa.vector_unit import VectorUnit
from bytewright.lower.kernels.context import Template, counted, named
from bytewright.lower.kernels.convolution import convolution_of
from bytewright.ops.convolution import Conv2d


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why this is no convolution for the kernel below."""
    return pixels_decline(convolution_of(template, operation))


def write_conv2d(unit: VectorUnit, template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed by blocks of four channels.

    Args:
        unit: For epilogues that are no rescale.
        template: Of the kernel.
        operation: The convolution.
    """
    convolution = convolution_of(template, operation)
    body, columns = template.body, convolution.window.columns
    num_pixels = pixels_at_once(convolution)
    pixels = Pixels((convolution,), num_pixels, unit)
    with counted(body, "n", convolution.num) as n, template.kernel.rows(convolution.window.rows.out) as y:
        if is_direct(convolution):
            _write_row(pixels, (n, y), lambda x, i: under(convolution, n, y, x + i))
            return
        gather = Gather(convolution, num_pixels)
        with counted(body, "pair", ir.quotient(columns.out_extent, num_pixels - 1, num_pixels)) as pair:
            x = named(body, "x", pair * num_pixels)
            gather.write((n, y, x))
            runs = [gather.run(i) for i in range(num_pixels)]
            if not columns.may_leave(num_pixels):
                pixels.write((n, y, x), runs)
                return
            with body.if_(x + 1 < ir.extent_expr(columns.out_extent)):
                pixels.write((n, y, x), runs)
            with body.else_():
                pixels.write((n, y, x), runs[:1])


def _write_row(
    pixels: Pixels, row: tuple[ir.Expr, ir.Expr], run: Callable[[ir.Expr, int], ir.Region]
) -> None:
    """Pairs of pixels of a row, and the last one if their number is odd."""
    body, columns = pixels.body, pixels.convolution.window.columns
    pairs = ir.quotient(columns.out_extent, 0, PIXELS)
    if pairs:
        with counted(body, "pair", pairs) as pair:
            x = named(body, "x", pair * PIXELS)
            pixels.write((*row, x), [run(x, i) for i in range(PIXELS)])
    if columns.may_leave(PIXELS):
        first = ir.extent_expr(pairs) * PIXELS
        with (
            nullcontext(first)
            if columns.open_out is None
            else body.for_("x", first, ir.extent_expr(columns.out_extent)) as last
        ):
            pixels.write((*row, last), [run(last, 0)])
