"""conv2d of int8 and int16 on the DSP extension: two pixels and two output channels at a time.

A row's last pixel goes alone where there is an odd number. All that a pair of pixels reads is read before one of its
elements is stored, so that the output may lie over the input.
"""

from math import prod

from bytewright.lower.isa.dsp.pixels import Pixels, pixels_decline
from bytewright.lower.kernels.context import Template, counted
from bytewright.lower.kernels.convolution import convolution_of
from bytewright.ops.convolution import Conv2d


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why the kernel below does not take a convolution."""
    del operation
    return pixels_decline(template, prod(template.constant(1).shape[1:]))


def write_conv2d(template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed by pairs of channels."""
    pixels = Pixels([convolution_of(template, operation)])
    window = pixels.convolution.window
    with counted(template.body, "n", pixels.convolution.num) as n, template.kernel.rows(window.rows.out) as y:
        for some in pixels.each(n, y, 0, window.columns.out_extent):
            pixels.write(some, pixels.read(some))
