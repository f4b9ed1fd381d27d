"""conv2d by lanes: a block of output channels is accumulated side by side, tap by tap.

Sums of floats may not be reordered, so for float32 compilers vectorise over output channels instead of over the
sum; each sum runs in the reference's order, and the bias comes last. For int8 it serves convolutions with so few
output channels that dot products would leave vector units idle. Weights are packed [K][OC].
"""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import Pixel, accumulated, channel_blocks, counted, named, pixels
from bytewright.lower.kernels.convolution import Convolution

INTEGER_LANES = 16


def write_lanes(convolution: Convolution) -> None:
    """Writes the loop over pixels and blocks of channels."""
    template = convolution.template
    body, kernel = template.body, template.kernel
    bias = convolution.bias()
    weights = kernel.constant("weights", convolution.weights.T, convolution.weights_dtype)
    lanes = template.style.float_lanes if bias.is_float else INTEGER_LANES
    visited = _by_taps if bias.is_float else _by_rows
    per_group = convolution.out_channels // convolution.groups
    with pixels(template) as pixel, counted(body, "group", convolution.groups) as group:
        for block, size in channel_blocks(body, per_group, lanes, accumulated):
            first = group * per_group + block
            sums = kernel.scratch("sums", (size,), bias.values.dtype)
            with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                body.store(sums, lane, bias.initial(first + lane))
            with visited(convolution, pixel, group) as (activation, index):
                factors = ir.DType.I32 if sums.dtype.is_integer else sums.dtype
                value = body.let("value", ir.cast(activation, factors))
                with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                    weight = ir.cast(load(weights, index, first + lane), factors)
                    body.add_to(sums, lane, ir.cast(value * weight, sums.dtype))
            with body.for_("lane", 0, size, ir.LoopKind.VECTORISED) as lane:
                value = bias.finished(load(sums, lane), first + lane)
                template.epilogue.store((*pixel, first + lane), value)


def _by_taps(
    convolution: Convolution, pixel: Pixel, group: ir.Expr
) -> AbstractContextManager[tuple[ir.Expr, ir.Expr]]:
    """Elements under the window, tap by tap; a tap outside the input is a view of zeros."""
    return convolution.each_element(pixel, group)


@contextmanager
def _by_rows(
    convolution: Convolution, pixel: Pixel, group: ir.Expr
) -> Generator[tuple[ir.Expr, ir.Expr], None, None]:
    """Elements under the window, row by row, columns (not dilated) and channels as one axis; outside, zero points.

    All channels are of one group.
    """
    del group
    body, window, depth = convolution.template.body, convolution.window, convolution.in_channels
    n, y, x = pixel
    merged = window.columns.of_elements(depth)
    with counted(body, "ky", window.rows.kernel) as ky:
        iy = named(body, "iy", window.rows.tap(y, ky))
        with counted(body, "k", merged.kernel) as k:
            ix = named(body, "ix", merged.tap(x, k))
            inside = merged.contains(ix, k, window.rows.contains(iy, ky))
            rows = convolution.template.input_as(0, (convolution.num, window.rows.extent, merged.extent))
            outside = ir.const(convolution.zero_point, rows.dtype)
            yield ir.select(inside, load(rows, n, iy, ix), outside), ky * merged.kernel + k
