"""int8 conv2d over few input channels: the bytes under the window are gathered first.

The first convolution of a network reads three channels, or one, so rows under the window are too short for dot
products, and most windows of a small image touch the padding. The patch is as small as the window; what lies
outside the input is its zero point.
"""

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.kernels.context import blocks, counted, named, note_block, repeated
from bytewright.lower.kernels.conv2d_dot import folded_bias, multiply_add, store_block
from bytewright.lower.kernels.dense import Convolution, Pixel
from bytewright.lower.scalar import Scalar

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# Compilers vectorise the loop over output channels from this number on.
MANY_OUTPUT_CHANNELS = 16


def write_patch(convolution: Convolution) -> None:
    """Writes the loop over pixels: gather, multiply, store."""
    template = convolution.template
    body, style = template.body, template.style
    pairs = (
        style.paired_taps
        and convolution.out_channels >= MANY_OUTPUT_CHANNELS
        and int(convolution.weights.min()) > -128
    )
    depth = convolution.window.num_taps * convolution.in_channels
    length = depth + depth % 2 if pairs else depth
    with (
        counted(body, "n", convolution.num) as n,
        template.kernel.rows(convolution.out_height) as y,
        body.for_("x", 0, convolution.out_width) as x,
    ):
        patch = template.kernel.scratch("patch", (length,), I8)
        _gather(convolution, (n, y, x), patch)
        if length > depth:
            body.store(patch, depth, 0)
        multiply = _multiply_pairs if pairs else _multiply_blocks
        multiply(convolution, (n, y, x), patch, depth)


def _gather(convolution: Convolution, pixel: Pixel, patch: ir.Buffer) -> None:
    body, window = convolution.template.body, convolution.window
    body.note("gather what lies under the window; outside the input it is the zero point")
    with (
        counted(body, "ky", window.rows.kernel) as ky,
        counted(body, "kx", window.columns.kernel) as kx,
    ):
        tap = convolution.tap(pixel, ky, kx)
        first = (ky * window.columns.kernel + kx) * convolution.in_channels
        with counted(body, "k", convolution.in_channels) as k:
            body.store(patch, first + k, load(tap, k))


def _multiply_pairs(convolution: Convolution, pixel: Pixel, patch: ir.Buffer, depth: int) -> None:
    """Channel by channel over weights packed [K][OC]; two products are summed in 16 bits first.

    Exact, because weights are at least -127: |2 * 128 * 127| < 2^15.
    """
    body, kernel = convolution.template.body, convolution.template.kernel
    folded = folded_bias(convolution, 0)
    flat = convolution.weights.reshape(convolution.out_channels, depth)
    packed = np.zeros((depth + depth % 2, convolution.out_channels), np.int8)
    packed[:depth] = flat.T
    weights = kernel.constant("weights", packed, I8)
    bias = kernel.constant("bias", folded.bias, I32)
    body.note("for each output channel: multiply and add in pairs, requantise, store")
    with body.for_("channel", 0, convolution.out_channels) as channel:
        accumulator = body.scalar("acc", I32, load(bias, channel))
        with body.for_("k", 0, packed.shape[0] // 2) as pair:
            first, second = pair * 2, pair * 2 + 1
            products = [
                ir.cast(load(patch, k), I32) * ir.cast(load(weights, k, channel), I32)
                for k in (first, second)
            ]
            body.add_to(accumulator, (), ir.cast(ir.cast(products[0] + products[1], I16), I32))
        value = Scalar(load(accumulator), folded.low, folded.high)
        convolution.template.epilogue.store((*pixel, channel), value)


def _multiply_blocks(convolution: Convolution, pixel: Pixel, patch: ir.Buffer, depth: int) -> None:
    """Dot products of the patch with a block of output channels at a time."""
    template = convolution.template
    body, style = template.body, template.style
    offset = 128 if style.unsigned_activations else 0
    folded = folded_bias(convolution, offset)
    packed = convolution.weights.reshape(convolution.out_channels, depth)
    weights = template.kernel.constant("weights", packed, I8)
    bias = template.kernel.constant("bias", folded.bias, I32)
    for first, repeats, size in blocks(convolution.out_channels, style.channel_block):
        note_block(body, size, repeats)
        with repeated(body, "block", repeats) as index:
            channel = named(body, "channel", index * size + first)
            filters = body.view("filters", region(weights, channel, 0), I8, size * depth)
            accumulators = [body.scalar(f"acc{j}", I32, load(bias, channel + j)) for j in range(size)]
            body.note("multiply and add")
            with body.for_("k", 0, depth) as k:
                multiply_add(template, load(patch, k), filters, k, accumulators, offset)
            store_block(convolution, pixel, channel, accumulators, folded)
