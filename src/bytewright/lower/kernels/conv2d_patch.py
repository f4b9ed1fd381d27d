"""conv2d of integers over few input channels: the bytes under the window are gathered first.

The first convolution of a network reads three channels, or one, so rows under the window are too short for dot
products, and most windows of a small image touch the padding. The patch is as small as the window; what lies
outside the input is its zero point.
"""

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load
from bytewright.lower.kernels.context import EACH_PIXEL, Pixel, counted
from bytewright.lower.kernels.conv2d_dot import DotProducts
from bytewright.lower.kernels.convolution import Convolution

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# Compilers vectorise the loop over output channels from this number on.
MANY_OUTPUT_CHANNELS = 16


def write_patch(convolution: Convolution) -> None:
    """Writes the loop over pixels: gather, multiply, store."""
    template, window = convolution.template, convolution.window
    body = template.body
    in_pairs = convolution.takes_pairs and convolution.out_channels >= MANY_OUTPUT_CHANNELS
    depth = convolution.weights.shape[1]
    length = depth + depth % 2 if in_pairs else depth
    body.note(EACH_PIXEL)
    with (
        counted(body, "n", convolution.num) as n,
        template.kernel.rows(window.rows.out) as y,
        body.for_("x", 0, ir.extent_expr(window.columns.out_extent)) as x,
    ):
        patch = template.kernel.scratch("patch", (length,), convolution.dtype)
        body.note("gather what lies under the window; outside the input it is the zero point")
        with convolution.each_element((n, y, x)) as (activation, index):
            body.store(patch, index, activation)
        if length > depth:
            body.store(patch, depth, 0)
        multiply = _multiply_pairs if in_pairs else _multiply_blocks
        multiply(convolution, (n, y, x), patch)


def _multiply_pairs(convolution: Convolution, pixel: Pixel, patch: ir.Buffer) -> None:
    """Channel by channel over weights packed [K][OC]; two products are summed in 16 bits first."""
    body, kernel = convolution.template.body, convolution.template.kernel
    packed = np.pad(
        convolution.weights.T, ((0, ir.num_elements(patch) - convolution.weights.shape[1]), (0, 0))
    )
    weights = kernel.constant("weights", packed, I8)
    bias = convolution.bias()
    body.note("for each output channel: multiply and add in pairs, requantise, store")
    with body.for_("channel", 0, convolution.out_channels) as channel:
        total = body.scalar("acc", I32, bias.initial(channel))
        with body.for_("k", 0, packed.shape[0] // 2) as pair:
            first, second = (
                body.let(name, ir.cast(load(patch, k), I32) * ir.cast(load(weights, k, channel), I32))
                for name, k in (("first", pair * 2), ("second", pair * 2 + 1))
            )
            body.add_to(total, (), ir.cast(ir.cast(first + second, I16), I32))
        convolution.template.epilogue.store((*pixel, channel), bias.finished(load(total), channel))


def _multiply_blocks(convolution: Convolution, pixel: Pixel, patch: ir.Buffer) -> None:
    """Dot products of the patch with a block of output channels at a time."""
    body = convolution.template.body
    for block in DotProducts(convolution, convolution.template.style.channel_block).blocks(pixel):
        body.note("multiply and add")
        with body.for_("k", 0, convolution.weights.shape[1]) as k:
            block.multiply_add(load(patch, k), k)
