"""int8 conv2d on the DSP extension: two pixels and two output channels at a time.

What lies under the window of a pair of pixels is widened once, to halves of words in scratch; then every pair of
channels is one dot product over it (`dot.py`). A row's last pixel goes alone where there is an odd number. All that a
pair of pixels reads is read before one of its elements is stored, so that the output may lie over the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.ir.builder import load, region
from bytewright.lower.isa.dsp.dot import dot, pack
from bytewright.lower.isa.dsp.interior import first_column, inside_together
from bytewright.lower.isa.dsp.requantise import Channels, channels_of
from bytewright.lower.isa.dsp.words import BYTES, copy_bytes, runs, widen
from bytewright.lower.kernels.accumulator import fold_zero_point
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.ops.convolution import Conv2d

I8, I32 = ir.DType.I8, ir.DType.I32
# Scratch for what lies under the windows of a pair of pixels, or of one.
MAX_PATCH_BYTES = 5 * 1024
# Groups of four elements that one instruction widens.
_GROUPS = 4


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why the kernel below does not take a convolution."""
    if template.type(0).dtype is not I8:
        return "its elements are not int8"
    weights = template.constant(1)
    depth = int(np.prod(weights.shape[1:]))
    if 2 * (depth + -depth % BYTES) > MAX_PATCH_BYTES:
        return (
            f"what lies under a window, {depth} elements, would need more than {MAX_PATCH_BYTES} B of scratch"
        )
    by_channel = weights.reshape(weights.shape[0], -1).astype(np.int64)
    if pack(by_channel) is None:
        return "weights of -128 beside negative ones"
    return _overflows(template, operation, by_channel)


def _overflows(template: Template, operation: Conv2d, weights: np.ndarray) -> str | None:
    """Why a sum of both channels could leave 32 bits."""
    bias = template.constant(2).astype(np.int64)
    where = template.anchor.where
    folded = fold_zero_point(weights, bias, operation.input_zero_point, 0, where).bias
    even = len(weights) % 2
    first, second = (np.pad(weights, ((0, even), (0, 0)))[i::2] for i in range(2))
    magnitude = np.abs(np.pad(folded, (0, even))[0::2]) + 128 * np.abs(first + 256 * second).sum(axis=1)
    alone = 128 * 256 * np.abs(second).sum(axis=1)
    if max(magnitude.max(), alone.max()) >= 2**31:
        return "sums of two channels at once could leave 32 bits"
    return None


def write_conv2d(template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed by `dot.pack`."""
    kernel = _Kernel(convolution_of(template, operation))
    convolution, body = kernel.convolution, template.body
    width = convolution.window.columns.out
    pairs = width // 2 if 2 * kernel.words * 4 <= MAX_PATCH_BYTES else 0
    with counted(body, "n", convolution.num) as n, template.kernel.rows(convolution.window.rows.out) as y:
        if pairs:
            body.note("two pixels at a time")
            with counted(body, "pair", pairs) as pair:
                first = named(body, "x", pair * 2)
                kernel.write(((n, y, first), (n, y, first + 1)))
        if 2 * pairs < width:
            with body.for_("x", 2 * pairs, width) if width - 2 * pairs > 1 else body.block() as x:
                kernel.write(((n, y, ir.const(2 * pairs) if x is None else x),))


@dataclass(slots=True)
class _Kernel:
    """The parts of one kernel."""

    convolution: Convolution
    weights: ir.Buffer
    channels: Channels

    def __init__(self, convolution: Convolution) -> None:
        packed = pack(convolution.weights)
        assert packed is not None
        self.convolution = convolution
        self.weights = convolution.template.kernel.constant("weights", packed, I32)
        self.channels = channels_of(convolution)

    @property
    def words(self) -> int:
        """Words that the elements under a window are, two in each."""
        return int(self.weights.shape[1])  # type: ignore[arg-type]

    def write(self, pixels: Sequence[Pixel]) -> None:
        """Everything about one pixel or two."""
        body, num = self.convolution.template.body, len(pixels)
        patch = self.convolution.template.kernel.scratch("patch", (num * self.words,), I32)
        if self.convolution.in_channels % BYTES:
            self._gather(pixels, patch)
        else:
            self._widen_taps(pixels, patch)
        self._multiply(pixels, patch)
        del body

    def _widen_taps(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where channels are multiples of four: straight from the input."""
        convolution = self.convolution
        body, window, channels = convolution.template.body, convolution.window, convolution.in_channels
        num = len(pixels)
        in_one_piece = window.columns.dilation == 1 or window.columns.kernel == 1
        length = window.columns.kernel * channels
        inside = inside_together(window, pixels) if in_one_piece else ir.FALSE

        def rows() -> None:
            with counted(body, "ky", window.rows.kernel) as ky:
                sources = [
                    body.view(
                        f"row{i}",
                        region(convolution.input, n, window.rows.tap(y, ky), first_column(window, x), 0),
                        I8,
                        length,
                    )
                    for i, (n, y, x) in enumerate(pixels)
                ]
                self._widen(sources, patch, ky * (length * num // 2), length)

        def taps() -> None:
            with window.loops(body) as (ky, kx):
                sources: list[ir.Buffer] = []
                for i, pixel in enumerate(pixels):
                    with body.numbered(i):
                        sources.append(convolution.tap_at(window.under(body, pixel, ky, kx), ky, kx))
                at = (ky * window.columns.kernel + kx) * (channels * num // 2)
                self._widen(sources, patch, at, channels)

        if inside == ir.TRUE:
            rows()
        elif inside == ir.FALSE:
            taps()
        else:
            with body.if_(inside):
                rows()
            with body.else_():
                taps()

    def _widen(self, sources: Sequence[ir.Buffer], patch: ir.Buffer, first: ir.Expr, length: int) -> None:
        """Elements of each source as words of the patch, from an index on."""
        body = self.convolution.template.body
        groups = runs(length // BYTES, _GROUPS)
        turns = length // BYTES // groups
        with counted(body, "run", turns) as run:
            at = region(patch, first + run * (2 * len(sources) * groups))
            where = [region(source, run * (BYTES * groups)) for source in sources]
            body.execute(widen(len(sources), groups), at, *where)

    def _gather(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where they are not: the bytes of each window are gathered first."""
        convolution = self.convolution
        body, depth = convolution.template.body, convolution.weights.shape[1]
        gathered: list[ir.Buffer] = []
        for i, pixel in enumerate(pixels):
            with body.numbered(i):
                window = convolution.template.kernel.scratch("window", (2 * self.words,), I8)
            gathered.append(window)
            self._gather_one(pixel, window)
            for k in range(depth, 2 * self.words):
                body.store(window, k, 0)
        self._widen(gathered, patch, ir.const(0), 2 * self.words)

    def _gather_one(self, pixel: Pixel, target: ir.Buffer) -> None:
        convolution = self.convolution
        body, window = convolution.template.body, convolution.window
        n, y, x = pixel
        length = window.columns.kernel * convolution.in_channels
        in_one_piece = window.columns.dilation == 1 or window.columns.kernel == 1
        inside = inside_together(window, (pixel,)) if in_one_piece else ir.FALSE

        def rows() -> None:
            with counted(body, "ky", window.rows.kernel) as ky:
                source = region(convolution.input, n, window.rows.tap(y, ky), first_column(window, x), 0)
                row = body.view("row", source, I8, length)
                size = BYTES
                for k in range(0, length, BYTES):
                    size = min(BYTES, length - k)
                    body.execute(copy_bytes(size), region(target, ky * length + k), region(row, k))

        def taps() -> None:
            with convolution.each_element(pixel) as (activation, index):
                body.store(target, index, activation)

        if inside == ir.TRUE:
            rows()
        elif inside == ir.FALSE:
            taps()
        else:
            with body.if_(inside):
                rows()
            with body.else_():
                body.note("at the border; outside the input it is the zero point")
                taps()

    def _multiply(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Every pair of channels: a dot product over the patch, then scale and store."""
        convolution = self.convolution
        body, num = convolution.template.body, len(pixels)
        channels = convolution.out_channels
        body.note("two output channels at a time: multiply and add, then scale and store each")
        with counted(body, "block", channels // 2) as block:
            self._write_block(pixels, patch, block, 2)
        if channels % 2:
            with body.block():
                self._write_block(pixels, patch, ir.const(channels // 2), 1)
        del num

    def _write_block(self, pixels: Sequence[Pixel], patch: ir.Buffer, block: ir.Expr, size: int) -> None:
        convolution = self.convolution
        body, num = convolution.template.body, len(pixels)
        channel = named(body, "channel", block * 2)
        initial = body.let("initial", self.channels.initial(channel))
        lows: list[ir.Buffer] = []
        boths: list[ir.Buffer] = []
        for i in range(num):
            lows.append(body.scalar(f"low{i}", I32, initial))
            boths.append(body.scalar(f"both{i}", I32, initial))
        sums = [s for pair in zip(lows, boths, strict=True) for s in pair]
        instruction = dot(num, 2 * self.words)
        body.execute(instruction, *sums, region(patch, 0), region(self.weights, block, 0))
        values: list[tuple[Pixel, ir.Expr, ir.Expr]] = [
            (pixel, channel, load(low)) for pixel, low in zip(pixels, lows, strict=True)
        ]
        if size == 2:
            second = body.let("second", self.channels.initial(channel + 1))
            for pixel, low, both in zip(pixels, lows, boths, strict=True):
                values.append((pixel, channel + 1, second + ((load(both) - load(low)) >> 8)))
        self._finish(values)

    def _finish(self, values: Sequence[tuple[Pixel, ir.Expr, ir.Expr]]) -> None:
        """Stores the elements of a block; where that reads other tensors, all are read before the first is stored."""
        epilogue, body = self.convolution.template.epilogue, self.convolution.template.body
        results: list[ir.Expr] = []
        for i, (pixel, channel, total) in enumerate(values):
            with body.numbered(i):
                value = self.channels.finished(total)
                if epilogue.reads_tensors:
                    results.append(body.let("result", epilogue.value((*pixel, channel), value)))
                else:
                    epilogue.store((*pixel, channel), value)
        for (pixel, channel, _), result in zip(values, results, strict=False):
            epilogue.store_value((*pixel, channel), result)
