"""int8 conv2d as dot products, a block of output channels at a time.

In the interior the input under one row of the window lies in one piece, so each row is one dot product. At the
border the taps are visited one by one. The two are separate loops: compilers vectorise each, but not both in one.
Weights stay in the model's order.
"""

from collections.abc import Callable

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.kernels.accumulator import Folded, fold_zero_point
from bytewright.lower.kernels.context import Template, blocks, counted, named, note_block, repeated
from bytewright.lower.kernels.dense import Convolution, Pixel
from bytewright.lower.scalar import Scalar

I8, U8, I32 = ir.DType.I8, ir.DType.U8, ir.DType.I32
SHORT_DOT = 16

# Adds the products under one output pixel to the accumulators of a block of channels with the given weights.
Products = Callable[[Pixel, ir.Buffer, list[ir.Buffer]], None]


def folded_bias(convolution: Convolution, offset: int) -> Folded:
    """The bias of a dense convolution whose activations are read as `x + offset`."""
    flat = convolution.weights.reshape(convolution.out_channels, -1)
    template = convolution.template
    bias = template.constant(2).astype(np.int64)
    return fold_zero_point(
        flat, bias, convolution.zero_point, offset, template.anchor.where, "the accumulator"
    )


def write_dot(convolution: Convolution) -> None:
    """Writes the loops over the interior and over the border."""
    template, window = convolution.template, convolution.window
    body, style = template.body, template.style
    offset = 128 if style.unsigned_activations else 0
    folded = folded_bias(convolution, offset)
    row_length = window.columns.kernel * convolution.in_channels
    depth = window.rows.kernel * row_length
    packed = convolution.weights.reshape(convolution.out_channels, depth)
    weights = template.kernel.constant("weights", packed, I8)
    bias = template.kernel.constant("bias", folded.bias, I32)
    block = 1 if style.unsigned_activations and depth < SHORT_DOT else style.channel_block

    def row_products(pixel: Pixel, filters: ir.Buffer, accumulators: list[ir.Buffer]) -> None:
        n, y, x = pixel
        with counted(body, "ky", window.rows.kernel) as ky:
            first = region(convolution.input, n, window.rows.tap(y, ky), window.columns.tap(x, 0), 0)
            row = body.view("row", first, I8, row_length)
            with body.for_("k", 0, row_length) as k:
                index = ky * row_length + k
                multiply_add(template, load(row, k), filters, index, accumulators, offset)

    def tap_products(pixel: Pixel, filters: ir.Buffer, accumulators: list[ir.Buffer]) -> None:
        with (
            counted(body, "ky", window.rows.kernel) as ky,
            counted(body, "kx", window.columns.kernel) as kx,
        ):
            tap = convolution.tap(pixel, ky, kx)
            with counted(body, "k", convolution.in_channels) as k:
                index = (ky * window.columns.kernel + kx) * convolution.in_channels + k
                multiply_add(template, load(tap, k), filters, index, accumulators, offset)

    def pixel_channels(pixel: Pixel, products: Products) -> None:
        for first, repeats, size in blocks(convolution.out_channels, block):
            note_block(body, size, repeats)
            with repeated(body, "block", repeats) as index:
                channel = named(body, "channel", index * size + first)
                filters = body.view("filters", region(weights, channel, 0), I8, size * depth)
                accumulators = [body.scalar(f"acc{j}", I32, load(bias, channel + j)) for j in range(size)]
                products(pixel, filters, accumulators)
                store_block(convolution, pixel, channel, accumulators, folded)

    with counted(body, "n", convolution.num) as n:
        _write_interior_and_border(convolution, n, pixel_channels, row_products, tap_products)


def _write_interior_and_border(
    convolution: Convolution,
    n: ir.Expr,
    pixel_channels: Callable[[Pixel, Products], None],
    row_products: Products,
    tap_products: Products,
) -> None:
    template, window = convolution.template, convolution.window
    body = template.body
    rows, columns = window.rows.interior, window.columns.interior
    in_one_piece = window.columns.dilation == 1 or window.columns.kernel == 1
    has_interior = in_one_piece and rows[0] < rows[1] and columns[0] < columns[1]
    if has_interior:
        if not window.is_all_interior:
            body.note("where the window lies inside the input: one dot product a row of it")
        with (
            template.kernel.rows(convolution.out_height, *rows) as y,
            body.for_("x", *columns) as x,
        ):
            pixel_channels((n, y, x), row_products)
    if has_interior and window.is_all_interior:
        return
    body.note("the border, tap by tap; outside the input taps are the zero point" if has_interior else "")
    with (
        template.kernel.rows(convolution.out_height) as y,
        body.for_("x", 0, convolution.out_width) as x,
    ):
        if has_interior:
            with body.if_(convolution.is_border(y, x)):
                pixel_channels((n, y, x), tap_products)
        else:
            pixel_channels((n, y, x), tap_products)


def multiply_add(
    template: Template,
    activation: ir.Expr,
    filters: ir.Buffer,
    index: ir.Expr,
    accumulators: list[ir.Buffer],
    offset: int,
) -> None:
    """Multiplies one activation with the weights of each channel of the block.

    With an offset the activation is an unsigned byte, for which compilers know wider dot products.

    Args:
        template: The kernel.
        activation: One element of the input.
        filters: The block's weights, one channel after the other.
        index: The element's number in a channel's weights.
        accumulators: One for each channel.
        offset: 0 or 128.
    """
    body = template.body
    depth = filters_depth(filters, accumulators)
    widened = ir.cast(activation, I32)
    value = body.let("value", ir.cast(widened + offset, U8) if offset else widened)
    for j, accumulator in enumerate(accumulators):
        weight = ir.cast(load(filters, index + j * depth), I32)
        body.add_to(accumulator, (), ir.cast(value, I32) * weight)


def filters_depth(filters: ir.Buffer, accumulators: list[ir.Buffer]) -> int:
    """Weights of one channel."""
    return ir.num_elements(filters) // len(accumulators)


def store_block(
    convolution: Convolution, pixel: Pixel, channel: ir.Expr, accumulators: list[ir.Buffer], folded: Folded
) -> None:
    """Finishes the channels of a block, in order, and stores them."""
    for j, accumulator in enumerate(accumulators):
        value = Scalar(load(accumulator), folded.low, folded.high)
        with convolution.template.body.numbered(j):
            convolution.template.epilogue.store((*pixel, channel + j), value)
