"""depthwise_conv2d of int8 and int16 on the DSP extension: four channels of a pixel at a time, by pairs of taps.

Where the window lies inside the input, rows of taps are read from it. At the border what lies under the window is
copied to scratch first, zero points for what is outside, so that both are the same code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.ir.expr import equal
from bytewright.lower.isa.dsp.requantise import channels_of
from bytewright.lower.isa.dsp.taps import MAX_OFFSET, one_row, two_rows
from bytewright.lower.isa.dsp.words import BYTES, copy_elements, runs
from bytewright.lower.isa.operand_types import OF_NINE_BITS, SUMS_OF_32_BITS, types_decline
from bytewright.lower.kernels.context import Pixel, Template, counted, named, pixels
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.lower.kernels.source import first_column
from bytewright.ops.convolution import DepthwiseConv2d
from bytewright.options import Optimize

I8, I16, I32 = ir.DType.I8, ir.DType.I16, ir.DType.I32
# Scratch for what lies under a window at the border.
MAX_WINDOW_BYTES = 5 * 1024
_MAX_ROW = 9
_COPIED = 16


def depthwise_declines(template: Template, operation: DepthwiseConv2d) -> str | None:
    """Why the kernel below does not take a depthwise convolution."""
    of_types = types_decline(template, {*SUMS_OF_32_BITS, OF_NINE_BITS})
    if of_types is not None:
        return of_types
    channels, size = template.type(0).fixed_shape[-1], template.type(0).dtype.size_bytes
    if template.result_type.fixed_shape[-1] != channels or channels % BYTES:
        return f"it does not have one filter for each of a multiple of {BYTES} channels"
    num_rows, num_columns = operation.kernel(template.constant(1).shape)
    if operation.dilation[1] != 1 and num_columns > 1:
        return "its taps are dilated along rows"
    if num_columns > _MAX_ROW or ((num_columns - 1) * channels + BYTES) * size > MAX_OFFSET:
        return "a row of taps is too long for the offsets of loads"
    if num_rows * num_columns * channels * size > MAX_WINDOW_BYTES:
        return f"what lies under a window would need more than {MAX_WINDOW_BYTES} B of scratch"
    return None


def write_depthwise(template: Template, operation: DepthwiseConv2d) -> None:
    """Writes the kernel. x: [N, H, W, C]; weights: [KH, KW, C, 1], packed by `_pack`."""
    convolution = convolution_of(template, operation)
    is_wide = template.kernel.optimize is Optimize.SPEED or convolution.weights_dtype is I16
    bits = 16 if is_wide else 8
    weights = template.kernel.constant("weights", _pack(convolution, bits), I32)
    kernel = _Kernel(convolution, weights, bits)
    channels = channels_of([convolution])
    body = template.body
    with pixels(template) as pixel:
        rows = kernel.rows(pixel)
        body.note("four channels at a time: all taps, then scale and store each")
        with counted(body, "block", convolution.in_channels // BYTES) as block:
            channel = named(body, "channel", block * BYTES)
            sums = [body.scalar(f"sum{c}", I32, channels.initial(channel + c)) for c in range(BYTES)]
            kernel.multiply(rows, sums, block)
            places = [(*pixel, channel + c) for c in range(BYTES)]
            template.epilogue.store_each(places, lambda c, sums=sums: channels.finished(load(sums[c])))


def _pack(convolution: Convolution, bits: int) -> np.ndarray:
    """Weights as words, i32[C / 4, words], in the order of the rows of taps; [C, KH * KW] before."""
    columns = convolution.window.columns.kernel
    rows = range(convolution.window.rows.kernel)
    taps = [[row * columns + x for x in range(columns)] for row in rows]
    pairs = [
        pair for row in rows[: len(rows) // 2 * 2 : 2] for pair in zip(taps[row], taps[row + 1], strict=True)
    ]
    single: list[int] = []
    if len(rows) % 2:
        last = taps[-1]
        pairs += zip(last[:-1:2], last[1::2], strict=True)
        single = last[columns // 2 * 2 :]
    fields = [field for pair in pairs for field in _of_pair(*pair, bits)]
    fields += [(channel, tap) for tap in single for channel in ((0, 2, 1, 3) if bits == 16 else range(BYTES))]
    channels, order = np.array(fields).T
    by_block = convolution.weights.reshape(-1, BYTES, convolution.weights.shape[1])
    return by_block[:, channels, order].astype(f"<i{bits // 8}", order="C").view("<i4")


def _of_pair(first: int, second: int, bits: int) -> list[tuple[int, int]]:
    """The weights of two taps in their order, each a channel of the four and a tap: words of one channel, or of two."""
    num = 32 // bits // 2
    return [
        (channel + i, tap) for channel in range(0, BYTES, num) for tap in (first, second) for i in range(num)
    ]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The parts of one kernel; weights are stored in so many bits each."""

    convolution: Convolution
    weights: ir.Buffer
    bits: int

    @property
    def taps(self) -> range:
        """Rows of the window."""
        return range(self.convolution.window.rows.kernel)

    def rows(self, pixel: Pixel) -> list[ir.Buffer]:
        """Views of the rows of taps of a pixel: of the input, or of a copy in scratch."""
        convolution = self.convolution
        body, window = convolution.template.body, convolution.window
        length = window.columns.kernel * convolution.in_channels
        n, y, x = pixel
        inside = window.is_interior(pixel)
        column = named(body, "ix", first_column(window.columns, x))
        inputs = [region(convolution.input, n, window.rows.tap(y, ky), column, 0) for ky in self.taps]
        if inside == ir.TRUE:
            return [
                body.view(f"row{ky}", source, convolution.dtype, length)
                for ky, source in zip(self.taps, inputs, strict=True)
            ]
        copy = convolution.template.kernel.scratch("window", (window.rows.kernel, length), convolution.dtype)
        if inside != ir.FALSE:
            inside = body.let("inside", inside)
        with body.block() if inside == ir.FALSE else body.if_(equal(ir.cast(inside, I32), 0)):
            body.note("at the border: what lies under the window, outside the input the zero point")
            self._copy(pixel, copy)
        return [
            body.view(f"row{ky}", source, convolution.dtype, length, inside, region(copy, ky, 0))
            for ky, source in zip(self.taps, inputs, strict=True)
        ]

    def _copy(self, pixel: Pixel, copy: ir.Buffer) -> None:
        convolution = self.convolution
        body, channels = convolution.template.body, convolution.in_channels
        size = runs(channels, _COPIED)
        with convolution.window.loops(body) as (ky, kx):
            tap = convolution.tap_at(convolution.window.under(body, pixel, ky, kx), ky, kx)
            with counted(body, "run", channels // size) as run:
                body.execute(
                    copy_elements(size, convolution.dtype),
                    region(copy, ky, kx * channels + run * size),
                    region(tap, run * size),
                )

    def multiply(self, rows: Sequence[ir.Buffer], sums: Sequence[ir.Buffer], block: ir.Expr) -> None:
        """Adds all taps of four channels to their sums."""
        body, channels = self.convolution.template.body, self.convolution.in_channels
        columns, channel, first = self.convolution.window.columns.kernel, block * BYTES, 0
        element = self.convolution.dtype
        for ky in range(0, len(rows) - 1, 2):
            body.execute(
                two_rows(columns, channels, self.bits, element),
                *sums,
                *(region(row, channel) for row in rows[ky : ky + 2]),
                region(self.weights, block, first),
            )
            first += self.bits // 4 * columns
        if len(rows) % 2:
            where = region(rows[-1], channel), region(self.weights, block, first)
            body.execute(one_row(columns, channels, self.bits, element), *sums, *where)
