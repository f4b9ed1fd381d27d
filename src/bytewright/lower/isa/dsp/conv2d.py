"""conv2d of int8 and int16 on the DSP extension: two pixels and two output channels at a time.

What lies under the window of a pair of pixels becomes halves of words in scratch, once; then every pair of channels is
one dot product over it (`dot.py`). A row's last pixel goes alone where there is an odd number. All that a
pair of pixels reads is read before one of its elements is stored, so that the output may lie over the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.builder import load, region
from bytewright.lower.isa.dsp.dot import dot
from bytewright.lower.isa.dsp.pairing import PAIRINGS, Pairing
from bytewright.lower.isa.dsp.requantise import Channels, channels_of
from bytewright.lower.isa.dsp.words import BYTES, copy_elements, runs, widen
from bytewright.lower.isa.operand_types import SUMS_OF_32_BITS, types_decline
from bytewright.lower.kernels.context import Pixel, Template, counted, named
from bytewright.lower.kernels.convolution import Convolution, convolution_of
from bytewright.lower.kernels.source import write_runs
from bytewright.ops.convolution import Conv2d

I8, I16, I32, I64 = ir.DType.I8, ir.DType.I16, ir.DType.I32, ir.DType.I64
# Types of activations, weights and sums.
_TAKEN = {*SUMS_OF_32_BITS, (I16, I8, I64)}
# Scratch for what lies under the windows of a pair of pixels, or of one, as halves; gathered windows come to it.
MAX_PATCH_BYTES = 5 * 1024
# Groups of four elements that one instruction widens.
_GROUPS = 4
_COPIED = 16  # elements that one instruction copies


def conv2d_declines(template: Template, operation: Conv2d) -> str | None:
    """Why the kernel below does not take a convolution."""
    del operation
    of_types = types_decline(template, _TAKEN)
    if of_types is not None:
        return of_types
    weights = template.constant(1)
    depth = int(np.prod(weights.shape[1:]))
    if 2 * (depth + -depth % BYTES) > MAX_PATCH_BYTES:
        return (
            f"what lies under a window, {depth} elements, would need more than {MAX_PATCH_BYTES} B of scratch"
        )
    if PAIRINGS[template.type(0).dtype].packed(weights.reshape(weights.shape[0], -1)) is None:
        return "weights of -128 beside negative ones"
    return None


def _parts(convolution: Convolution) -> tuple[int, ...]:
    """Elements of the parts into which a window is divided so that no sum of them leaves 32 bits; none if one has all.

    A whole sum takes in the bias. Parts, of multiples of 4 elements, are summed up on their own.
    """
    pairing, is_wide = PAIRINGS[convolution.dtype], convolution.sums_dtype is I64
    if pairing.is_apart and not is_wide:
        return ()  # sums are those of the channels, which are proved to fit their type
    bias = convolution.folded().bias
    weights = convolution.weights.astype(np.int64)
    weights = np.pad(weights, ((0, len(weights) % 2), (0, -weights.shape[1] % BYTES)))
    # Of each group of four: how far the second sum goes, and what is made of it.
    most = -convolution.dtype.bounds[0]
    reaches = [
        most * np.abs(each).reshape(len(each), -1, BYTES).sum(axis=2)
        for each in pairing.factors(weights[0::2], weights[1::2])
    ]
    initial = np.abs(np.pad(bias, (0, len(bias) % 2))[0::2])
    both, alone = (each.sum(axis=1) for each in reaches)
    if not is_wide and max((initial + both).max(), alone.max()) < 2**31:
        return ()
    num_groups = reaches[0].shape[1]
    for size in range(num_groups, 0, -1):
        starts = range(0, num_groups, size)
        if max(np.add.reduceat(each, starts, axis=1).max() for each in reaches) < 2**31:
            return tuple(BYTES * min(size, num_groups - start) for start in starts)
    raise InternalError("four products of two channels leave 32 bits")


def write_conv2d(template: Template, operation: Conv2d) -> None:
    """Writes the kernel. x: [N, H, W, IC]; weights: [OC, KH, KW, IC], packed by pairs of channels."""
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


# A sum, with where it goes: the pixel and the channel.
Sum = tuple[Pixel, ir.Expr, ir.Expr]


@dataclass(slots=True)
class _Kernel:
    """The parts of one kernel."""

    convolution: Convolution
    pairing: Pairing
    weights: ir.Buffer
    channels: Channels
    parts: tuple[int, ...]

    def __init__(self, convolution: Convolution) -> None:
        self.pairing = PAIRINGS[convolution.dtype]
        packed = self.pairing.packed(convolution.weights)
        assert packed is not None
        self.convolution = convolution
        self.weights = convolution.template.kernel.constant("weights", packed, I32)
        self.channels = channels_of(convolution)
        self.parts = _parts(convolution)

    @property
    def are_apart(self) -> bool:
        """Whether the elements of a pixel lie after those of another in the patch, as they are; else words take turns.

        That is where runs may begin in the middle of a word.
        """
        return self.pairing.element is I16 and bool(self.convolution.in_channels % BYTES)

    @property
    def words(self) -> int:
        """Words that the elements under a window are, two in each."""
        return int(self.weights.shape[1])  # type: ignore[arg-type]

    def write(self, pixels: Sequence[Pixel]) -> None:
        """Everything about one pixel or two."""
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
        self._multiply(pixels, patch)

    def _widen_taps(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where channels are multiples of four: straight from the input."""

        def widen_run(views: Sequence[ir.Buffer], number: ir.Expr, length: int) -> None:
            self._widen(views, patch, number * (length * len(pixels) // 2), length)

        write_runs(self.convolution, pixels, widen_run)

    def _widen(self, sources: Sequence[ir.Buffer], patch: ir.Buffer, first: ir.Expr, length: int) -> None:
        """Elements of each source as words of the patch, from an index on."""
        body = self.convolution.template.body
        groups = runs(length // BYTES, _GROUPS)
        turns = length // BYTES // groups
        with counted(body, "run", turns) as run:
            at = region(patch, first + run * (2 * len(sources) * groups))
            where = [region(source, run * (BYTES * groups)) for source in sources]
            body.execute(widen(len(sources), groups, self.pairing.element), at, *where)

    def _gather(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Where they are not: the elements of each window are gathered first."""
        template, size = self.convolution.template, 2 * self.words
        gathered: list[ir.Buffer] = []
        for i, pixel in enumerate(pixels):
            with template.body.numbered(i):
                window = template.kernel.scratch("window", (size,), self.pairing.element)
                self._gather_one(pixel, window)
            gathered.append(window)
        self._widen(gathered, patch, ir.const(0), size)

    def _gather_one(self, pixel: Pixel, window: ir.Buffer, begin: int = 0) -> None:
        """Copies all elements under a window to a place of a run of them, and zeros after them up to groups of four."""
        body, element = self.convolution.template.body, self.pairing.element

        def put(views: Sequence[ir.Buffer], number: ir.Expr, length: int) -> None:
            (run,) = views
            whole, rest = divmod(length, _COPIED)
            if whole:
                with counted(body, "chunk", whole) as chunk:
                    target = region(window, begin + number * length + chunk * _COPIED)
                    body.execute(copy_elements(_COPIED, element), target, region(run, chunk * _COPIED))
            if rest:
                done = whole * _COPIED
                target = region(window, begin + number * length + done)
                body.execute(copy_elements(rest, element), target, region(run, done))

        write_runs(self.convolution, (pixel,), put)
        for k in range(self.convolution.weights.shape[1], 2 * self.words):
            body.store(window, begin + k, 0)

    def _multiply(self, pixels: Sequence[Pixel], patch: ir.Buffer) -> None:
        """Every pair of channels: a dot product over the patch, then scale and store."""
        convolution = self.convolution
        body, channels = convolution.template.body, convolution.out_channels
        body.note("two output channels at a time: multiply and add, then scale and store each")
        with counted(body, "block", channels // 2) as block:
            self._write_block(pixels, patch, block, 2)
        if channels % 2:
            with body.block():
                self._write_block(pixels, patch, ir.const(channels // 2), 1)

    def _write_block(self, pixels: Sequence[Pixel], patch: ir.Buffer, block: ir.Expr, size: int) -> None:
        channel = named(self.convolution.template.body, "channel", block * 2)
        write = self._sums_of_parts if self.parts else self._whole_sums
        values = write(pixels, patch, block, channel, size)
        self._finish(values)

    def _whole_sums(
        self, pixels: Sequence[Pixel], patch: ir.Buffer, block: ir.Expr, channel: ir.Expr, size: int
    ) -> list[Sum]:
        """The sums of one channel or two, and where they go."""
        body, pairing = self.convolution.template.body, self.pairing
        initial = body.let("initial", self.channels.initial(channel))

        def second() -> ir.Expr:
            return body.let("second", self.channels.initial(channel + 1))

        is_apart = pairing.is_apart and size == 2
        sums = self._multiplied(len(pixels), patch, block, (initial, second() if is_apart else initial))
        values: list[Sum] = [(pixel, channel, load(own[0])) for pixel, own in zip(pixels, sums, strict=True)]
        if size == 2:
            missing = ir.const(0) if is_apart else second()
            for pixel, own in zip(pixels, sums, strict=True):
                values.append((pixel, channel + 1, missing + pairing.second(own)))
        return values

    def _sums_of_parts(
        self, pixels: Sequence[Pixel], patch: ir.Buffer, block: ir.Expr, channel: ir.Expr, size: int
    ) -> list[Sum]:
        """The same, of parts of the window, whose sums of both channels are taken apart one by one."""
        body, num, wide = self.convolution.template.body, len(pixels), self.convolution.sums_dtype
        totals = [
            (pixel, channel + i, body.scalar(f"total{p}_{i}", wide, self.channels.initial(channel + i)))
            for i in range(size)
            for p, pixel in enumerate(pixels)
        ]
        first = 0
        for depth in self.parts:
            with body.block():
                sums = self._multiplied(num, patch, block, (ir.const(0), ir.const(0)), first, depth)
                for (_, _, total), own in zip(totals, sums, strict=False):
                    body.add_to(total, (), ir.cast(load(own[0]), wide))
                for (_, _, total), own in zip(totals[num:], sums, strict=False):
                    body.add_to(total, (), ir.cast(self.pairing.second(own), wide))
            first += depth
        return [(pixel, at, load(total)) for pixel, at, total in totals]

    def _multiplied(
        self,
        num_pixels: int,
        patch: ir.Buffer,
        block: ir.Expr,
        initial: tuple[ir.Expr, ir.Expr],
        first: int = 0,
        depth: int | None = None,
    ) -> list[tuple[ir.Buffer, ir.Buffer]]:
        """Both sums of each pixel, from what they start from, over so many elements of the window."""
        body, pairing = self.convolution.template.body, self.pairing
        firsts, seconds = (
            [body.scalar(f"{name}{p}", I32, start) for p in range(num_pixels)]
            for name, start in zip(pairing.sums, initial, strict=True)
        )
        sums = list(zip(firsts, seconds, strict=True))
        size = 2 * self.words
        elements = region(patch, first) if self.are_apart else region(patch, first // 2 * num_pixels)
        pitch = size if self.are_apart else 0
        instruction = dot(num_pixels, size if depth is None else depth, pairing.element, pitch)
        flat = [each for pair in sums for each in pair]
        body.execute(instruction, *flat, elements, region(self.weights, block, first // 2))
        return sums

    def _finish(self, values: Sequence[Sum]) -> None:
        """Stores the elements of a block."""
        places = [(*pixel, channel) for pixel, channel, _ in values]
        self.convolution.template.epilogue.store_each(places, lambda i: self.channels.finished(values[i][2]))
