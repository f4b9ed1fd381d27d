"""Dot products on MVE: one or two pixels by four output channels at a time, sixteen bytes of a pixel a step.

`vmladava.s8` adds sixteen products to an even general register, of which there are eight: so a block is two pixels
and four channels, 14 instructions for 128 products. Of activations of 16 bits, `vmladava.s16` adds eight, and weights
are widened as they are loaded. Elements are read in chunks at fixed places. Where the depth is no multiple of a chunk,
the last one begins earlier, and what it shares with the one before meets weights of zero: so nothing outside the input
is read, and there is no tail.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.lower.isa.mve.assembly import moved
from bytewright.lower.kernels.layout import End, Layout

CHANNELS = 4  # of a block
SUMS = ("r0", "r2", "r4", "r6", "r8", "r10", "r12", "lr")
LEAST_DEPTH = 4
# From more chunks on they are a loop: unrolled, a block of 192 bytes is 700 B of code.
MAX_UNROLLED_CHUNKS = 12
_REACH = 127  # of a load's offset, in elements
_LOADS = {16: "vldrb.u8", 8: "vldrb.s16", 4: "vldrb.s32"}
_LOADS_OF_HALVES = {8: "vldrh.u16", 4: "vldrh.s32"}
_LANES = {16: "s8", 8: "s16", 4: "s32"}


@dataclass(frozen=True, slots=True)
class Chunks:
    """How the elements of a dot product are read.

    Attributes:
        depth: Elements, at least 4.
        element: Type of activations: I8 or I16. Weights are I8.
    """

    depth: int
    element: ir.DType = ir.DType.I8

    @property
    def width(self) -> int:
        """Elements a chunk: 16 bytes of activations, or 8 or 4 elements that are widened as they are loaded."""
        most = 16 // self.element.size_bytes
        return next(width for width in (16, 8, 4) if width <= min(self.depth, most))

    @property
    def noun(self) -> str:
        """What the elements are called."""
        return "bytes" if self.element.size_bytes == 1 else "elements of 16 bits"

    @property
    def suffix(self) -> str:
        """What ends the names of instructions on other elements than bytes."""
        return "" if self.element.size_bytes == 1 else f"_{self.element.value}"

    @property
    def load(self) -> str:
        """The instruction that loads activations."""
        return (_LOADS if self.element.size_bytes == 1 else _LOADS_OF_HALVES)[self.width]

    @property
    def widens(self) -> bool:
        """Whether a load widens, whose address must be in a low register."""
        return self.width < 16

    @property
    def num_whole(self) -> int:
        """Chunks one after another."""
        return self.depth // self.width

    @property
    def is_ragged(self) -> bool:
        """Whether one more chunk, which ends with the last element, shares elements with the one before it."""
        return self.depth % self.width != 0

    @property
    def offsets(self) -> list[int]:
        """The first element of each chunk."""
        whole = [i * self.width for i in range(self.num_whole)]
        return [*whole, self.depth - self.width] if self.is_ragged else whole

    @property
    def is_loop(self) -> bool:
        """Whether the chunks are a loop."""
        return len(self.offsets) > MAX_UNROLLED_CHUNKS

    @property
    def block_bytes(self) -> int:
        """Bytes of the packed weights of a block of channels."""
        return len(self.offsets) * CHANNELS * self.width


def num_blocks(num_channels: int) -> int:
    """Blocks of four channels, of which the last may have fewer."""
    return -(-num_channels // CHANNELS)


def packed_weights(weights: NDArray[np.generic], element: ir.DType = ir.DType.I8) -> NDArray[np.generic]:
    """Weights [OC, K] in the order in which one pointer reads them, [blocks, chunks, 4, width], flat.

    Elements that a ragged chunk reads again, and channels that fill up the last block, are zero.
    """
    width = Chunks(weights.shape[1], element).width
    return Layout(lanes=CHANNELS, group=width, elements=End.OVERLAP).pack(weights)


def dot_lines(chunks: Chunks, pixels: list[str], weights: str, counter: str) -> list[str]:
    """Machine instructions that leave the sums of a block in `SUMS`, those of the first pixel first.

    They use q0 to q3. Pointers to pixels are afterwards what they were; that to weights is behind those of the block.

    Args:
        chunks: How elements are read.
        pixels: Registers that point to the one or two pixels; low ones where chunks are narrow.
        weights: The register that points to the weights, likewise.
        counter: A register to count with, where the chunks are a loop.
    """
    writer = _Dot(chunks, pixels, weights)
    return writer.loop(counter) if chunks.is_loop else writer.unrolled()


@dataclass(frozen=True, slots=True)
class _Dot:
    chunks: Chunks
    pixels: list[str]
    weights: str

    def unrolled(self) -> list[str]:
        """Every chunk by an offset; pointers move on where offsets do not reach."""
        lines: list[str] = []
        base, size = 0, self.chunks.element.size_bytes
        for number, first in enumerate(self.chunks.offsets):
            if first - base > _REACH:
                lines += self._moved(first - base)
                base = first
            lines += self._chunk(f", #{(first - base) * size}]", is_first=number == 0)
        return lines + self._moved(-base)

    def loop(self, counter: str) -> list[str]:
        """The first chunk starts the sums, some bring the rest to a multiple of a turn, and turns follow."""
        size = self.chunks.element.size_bytes
        behind = f"], #{self.chunks.width * size}"
        rest = self.chunks.num_whole - 1
        turn = max(range(4, 10), key=lambda size: (-(rest % size), size))
        lines = self._chunk(behind, is_first=True)
        for _ in range(rest % turn):
            lines += self._chunk(behind)
        lines += [f"movw {counter}, #{rest // turn}", "2:"]
        for _ in range(turn):
            lines += self._chunk(behind)
        lines += [f"subs {counter}, #1", "bne 2b"]
        end = self.chunks.num_whole * self.chunks.width
        if self.chunks.is_ragged:
            lines += self._chunk(f", #{(self.chunks.offsets[-1] - end) * size}]")
        return lines + self._moved(-end)

    def _moved(self, distance: int) -> list[str]:
        """Pointers to pixels so many elements further."""
        size = self.chunks.element.size_bytes
        return [line for pixel in self.pixels for line in moved(pixel, distance * size)]

    def _chunk(self, address: str, *, is_first: bool = False) -> list[str]:
        """One chunk of each pixel by that of each channel; loads stand before products that do not need them."""
        width, num = self.chunks.width, len(self.pixels)
        load, lanes = self.chunks.load, _LANES[width]
        multiply = "vmladav" if is_first else "vmladava"
        filters = [
            f"{_LOADS[width]} q{2 + channel % 2}, [{self.weights}], #{width}" for channel in range(CHANNELS)
        ]
        lines = [f"{load} q0, [{self.pixels[0]}{address}", filters[0]]
        lines += [f"{load} q1, [{self.pixels[1]}{address}"] if num == 2 else []
        for channel in range(CHANNELS):
            products = [
                f"{multiply}.{lanes} {SUMS[pixel * CHANNELS + channel]}, q{pixel}, q{2 + channel % 2}"
                for pixel in range(num)
            ]
            following = filters[channel + 1 : channel + 2]
            lines += [products[0], *following, *products[1:]]
        return lines


def collect_lines(num_pixels: int) -> list[str]:
    """Moves the sums of each pixel to the lanes of q0, q1."""
    lines: list[str] = []
    for pixel in range(num_pixels):
        first, second, third, fourth = SUMS[pixel * CHANNELS : (pixel + 1) * CHANNELS]
        lines += [
            f"vmov q{pixel}[2], q{pixel}[0], {first}, {third}",
            f"vmov q{pixel}[3], q{pixel}[1], {second}, {fourth}",
        ]
    return lines
