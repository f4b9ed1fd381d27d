"""All output channels of one pixel or two on the DSP extension, of convolutions whose windows are alike.

What lies under the windows becomes halves of words in scratch, once; then every pair of channels is one dot product
over it (`dot.py`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load
from bytewright.lower.isa.dsp.pairing import PAIRINGS
from bytewright.lower.isa.dsp.pairs import Pairs, are_held, reaches_of
from bytewright.lower.isa.dsp.requantise import channels_of
from bytewright.lower.isa.dsp.words import BYTES, copy_run, widen_runs
from bytewright.lower.isa.operand_types import SUMS_OF_32_BITS, types_decline
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import ZERO, Convolution
from bytewright.lower.kernels.source import write_runs

I8, I16, I32, I64 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.I64
# Types of activations, weights and sums.
_TAKEN = {*SUMS_OF_32_BITS, (I16, I8, I64)}
# Scratch for what lies under the windows of a pair of pixels, or of one, as halves; gathered windows come to it.
MAX_PATCH_BYTES = 5 * 1024


def pixels_decline(template: Template, depth: int) -> str | None:
    """Why convolutions of these operands, of so many elements under a window, are none for the class below."""
    of_types = types_decline(template, _TAKEN)
    if of_types is not None:
        return of_types
    if 2 * (depth + -depth % BYTES) > MAX_PATCH_BYTES:
        return (
            f"what lies under a window, {depth} elements, would need more than {MAX_PATCH_BYTES} B of scratch"
        )
    weights = template.constant(1)
    if PAIRINGS[template.type(0).dtype].packed(weights.reshape(weights.shape[0], -1)) is None:
        return "weights of -128 beside negative ones"
    return None


def _parts(convolutions: Sequence[Convolution]) -> tuple[int, ...]:
    """Elements of the parts into which windows are divided so that no sum of them leaves 32 bits; none if one has all.

    A whole sum takes in the bias. Parts, of multiples of 4 elements, are summed up on their own.
    """
    convolution, *_ = convolutions
    pairing, is_wide = PAIRINGS[convolution.dtype], convolution.sums_dtype is I64
    odd = convolution.out_channels % 2
    bias = np.concatenate([np.pad(each.folded().bias, (0, odd)) for each in convolutions])
    num_zeros = -convolution.weights.shape[1] % BYTES
    weights = np.concatenate(
        [np.pad(each.weights.astype(np.int64), ((0, odd), (0, num_zeros))) for each in convolutions]
    )
    if not is_wide and are_held(pairing, weights, bias):
        return ()
    reaches = reaches_of(pairing, weights)
    num_groups = reaches[0].shape[1]
    for size in range(num_groups, 0, -1):
        starts = range(0, num_groups, size)
        if max(np.add.reduceat(each, starts, axis=1).max() for each in reaches) < 2**31:
            return tuple(BYTES * min(size, num_groups - start) for start in starts)
    raise InternalError("four products of two channels leave 32 bits")


# A sum, with where it goes: the pixel and the channel.
Sum = tuple[Pixel, ir.Expr, ir.Expr]


class Pixels:
    """All output channels of pixels beside one another.

    Args:
        convolutions: They differ in weights alone; `write` is told which one it is by its number.
    """

    def __init__(self, convolutions: Sequence[Convolution]) -> None:
        self.convolution = convolution = convolutions[0]
        self.pairing = pairing = PAIRINGS[convolution.dtype]
        self.body = convolution.template.body
        self.words = -(-convolution.weights.shape[1] // BYTES) * 2
        """Words that the elements under a window are, two in each; none if it has no tap, and sums are biases."""
        self.blocks = -(-convolution.out_channels // 2)
        self.channels = channels_of(convolutions)
        if self.words:
            packed = [words for each in convolutions if (words := pairing.packed(each.weights)) is not None]
            assert len(packed) == len(convolutions)
            weights = convolution.template.kernel.constant("weights", np.concatenate(packed), I32)
            pitch = 2 * self.words if self.are_apart else 0
            self.pairs = Pairs(self.body, pairing, weights, self.channels.initial, pitch)
            self.parts = _parts(convolutions)

    def each(self, n: ir.Expr, y: ir.Expr, begin: int, end: ir.Extent) -> Iterator[list[Pixel]]:
        """Loops over pixels of a row of windows: two at once, and a last one alone, or each if windows are large."""
        pairs = ir.quotient(end, -begin, 2) if 2 * self.words * 4 <= MAX_PATCH_BYTES else 0
        if pairs:
            self.body.note("two pixels at a time")
            with counted(self.body, "pair", pairs) as pair:
                first = named(self.body, "x", pair * 2 + begin)
                yield [(n, y, first), (n, y, first + 1)]
        rest = ir.extent_expr(pairs) * 2 + begin
        if isinstance(end, int) and isinstance(rest, ir.Const) and end - rest.value < 2:
            if rest.value < end:
                with self.body.block():
                    yield [(n, y, rest)]
            return
        with self.body.for_("x", rest, ir.extent_expr(end)) as x:
            yield [(n, y, x)]

    @property
    def are_apart(self) -> bool:
        """Whether the elements of a pixel lie after those of another in the patch, as they are; else words take turns.

        That is where runs may begin in the middle of a word.
        """
        return self.pairing.element is I16 and bool(self.convolution.in_channels % BYTES)

    def read(self, pixels: Sequence[Pixel]) -> ir.Buffer | None:
        """Reads all that lies under the windows of one pixel or two, if they have taps."""
        if not self.words:
            return None
        num = len(pixels)
        kernel = self.convolution.template.kernel
        if self.are_apart:
            patch = kernel.scratch("patch", (num * 2 * self.words,), self.pairing.element, BYTES)
            for i, pixel in enumerate(pixels):
                with kernel.body.numbered(i):
                    self._gather_one(pixel, patch, i * 2 * self.words)
        else:
            patch = kernel.scratch("patch", (num * self.words,), I32)
            if self.convolution.in_channels % BYTES:
                self._gather(pixels, patch)
            else:
                self._widen_taps(pixels, patch)
        return patch

    def _widen_taps(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where channels are multiples of four: straight from the input."""

        def widen_run(views: Sequence[ir.Buffer], number: ir.Expr, length: int) -> None:
            widen_runs(
                self.body, self.pairing.element, views, (patch, number * (length * len(pixels) // 2)), length
            )

        write_runs(self.convolution, pixels, widen_run)

    def _gather(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where they are not: the elements of each window are gathered first."""
        template, size = self.convolution.template, 2 * self.words
        gathered: list[ir.Buffer] = []
        for i, pixel in enumerate(pixels):
            with template.body.numbered(i):
                window = template.kernel.scratch("window", (size,), self.pairing.element)
                self._gather_one(pixel, window)
            gathered.append(window)
        widen_runs(self.body, self.pairing.element, gathered, (patch, ir.const(0)), size)

    def _gather_one(self, pixel: Pixel, window: ir.Buffer, begin: int = 0) -> None:
        """Copies all elements under a window to a place of a run of them, and zeros after them up to groups of four."""
        body = self.body

        def put(views: Sequence[ir.Buffer], number: ir.Expr, length: int) -> None:
            (run,) = views
            copy_run(body, self.pairing.element, run, (window, begin + number * length), length)

        write_runs(self.convolution, (pixel,), put)
        for k in range(self.convolution.weights.shape[1], 2 * self.words):
            body.store(window, begin + k, 0)

    def write(self, places: Sequence[Pixel], patch: ir.Buffer | None, number: ir.Expr = ZERO) -> None:
        """Computes all channels of a convolution of pixels that were read, and stores them at places of the output."""
        body, channels = self.body, self.convolution.out_channels
        body.note("two output channels at a time: multiply and add, then scale and store each")
        with counted(body, "block", channels // 2) as block:
            self._write_block(places, patch, number, block, 2)
        if channels % 2:
            with body.block():
                self._write_block(places, patch, number, ir.const(channels // 2), 1)

    def _write_block(
        self, places: Sequence[Pixel], patch: ir.Buffer | None, number: ir.Expr, block: ir.Expr, size: int
    ) -> None:
        channel = named(self.body, "channel", block * 2)
        own = number * self.blocks + block
        if patch is None:
            sums = [
                [self.body.let("initial", self.channels.initial(own * 2 + i))] * len(places)
                for i in range(size)
            ]
        elif self.parts:
            sums = self._sums_of_parts(len(places), patch, own, size)
        else:
            sums = self.pairs.sums(len(places), patch, own, size)
        values: list[Sum] = [
            (place, channel + i, total)
            for i, totals in enumerate(sums)
            for place, total in zip(places, totals, strict=True)
        ]
        self._finish(values)

    def _sums_of_parts(self, num: int, patch: ir.Buffer, block: ir.Expr, size: int) -> list[list[ir.Expr]]:
        """The same, of parts of the window, whose sums of both channels are taken apart one by one."""
        body, wide = self.body, self.convolution.sums_dtype
        totals = [
            [body.scalar(f"total{p}_{i}", wide, self.channels.initial(block * 2 + i)) for p in range(num)]
            for i in range(size)
        ]
        first = 0
        for depth in self.parts:
            with body.block():
                sums = self.pairs.multiplied(num, patch, block, (ir.const(0), ir.const(0)), first, depth)
                for i, own_totals in enumerate(totals):
                    for total, own in zip(own_totals, sums, strict=True):
                        added = self.pairing.second(own) if i else load(own[0])
                        body.add_to(total, (), ir.cast(added, wide))
            first += depth
        return [[load(total) for total in each] for each in totals]

    def _finish(self, values: Sequence[Sum]) -> None:
        """Stores the elements of a block."""
        places = [(*pixel, channel) for pixel, channel, _ in values]
        self.convolution.template.epilogue.store_each(places, lambda i: self.channels.finished(values[i][2]))
