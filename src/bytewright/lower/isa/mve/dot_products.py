"""Dot products on MVE: one or two pixels by four output channels at a time, sixteen bytes of a pixel a step.

`vmladava.s8` adds sixteen products to an even general register, of which there are eight: so a block is two pixels
and four channels, 14 instructions for 128 products. Of activations of 16 bits, `vmladava.s16` adds eight, and weights
are widened as they are loaded. Elements are read in chunks at fixed places. Where the depth is no multiple of a chunk,
the last one begins earlier, and what it shares with the one before meets weights of zero: so nothing outside the input
is read, and there is no tail.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.lower.isa.mve.assembly import Assembly, Registers
from bytewright.lower.kernels.layout import End, Layout

CHANNELS = 4  # of a block
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
    def pointer(self) -> str:
        """The C type of a pointer to activations."""
        return f"int{8 * self.element.size_bytes}_t *"

    @property
    def load(self) -> str:
        """The instruction that loads activations."""
        return (_LOADS if self.element.size_bytes == 1 else _LOADS_OF_HALVES)[self.width]

    @property
    def is_narrow(self) -> bool:
        """Whether loads widen weights, or activations too: their addresses must be in low registers."""
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


def write_dots(assembly: Assembly, chunks: Chunks, pixels: Sequence[str], weights: str) -> list[list[str]]:
    """Writes the dot products of a block; gives the registers of its sums, four of each pixel.

    Pointers to pixels are afterwards what they were; that to weights is behind those of the block.

    Args:
        assembly: The statement.
        chunks: How elements are read.
        pixels: Registers that point to the one or two pixels; low ones where chunks are narrow.
        weights: The register that points to the weights, likewise.
    """
    sums = [assembly.take_all(f"sums of pixel {i}", CHANNELS, Registers.EVEN) for i in range(len(pixels))]
    values = assembly.take_all("pixel", len(pixels), Registers.VECTOR)
    filters = assembly.take_all("weights", 2, Registers.VECTOR)
    writer = _Dots(assembly, chunks, pixels, weights, sums, values, filters)
    if chunks.is_loop:
        writer.write_loop()
    else:
        writer.write_unrolled()
    assembly.free(*values, *filters)
    return sums


@dataclass(frozen=True, slots=True)
class _Dots:
    assembly: Assembly
    chunks: Chunks
    pixels: Sequence[str]
    weights: str
    sums: list[list[str]]
    values: list[str]
    filters: list[str]

    def write_unrolled(self) -> None:
        """Every chunk by an offset; pointers move on where offsets do not reach."""
        base, size = 0, self.chunks.element.size_bytes
        for number, first in enumerate(self.chunks.offsets):
            if first - base > _REACH:
                self._move(first - base)
                base = first
            self._write_chunk(f", #{(first - base) * size}]", is_first=number == 0)
        self._move(-base)

    def write_loop(self) -> None:
        """The first chunk starts the sums, some bring the rest to a multiple of a turn, and turns follow."""
        size = self.chunks.element.size_bytes
        behind = f"], #{self.chunks.width * size}"
        rest = self.chunks.num_whole - 1
        turn = max(range(4, 10), key=lambda chunks: (-(rest % chunks), chunks))
        self._write_chunk(behind, is_first=True)
        for _ in range(rest % turn):
            self._write_chunk(behind)
        counter = self.assembly.take("turns of chunks", Registers.GENERAL)
        self.assembly.line(f"movw {counter}, #{rest // turn}", "2:")
        for _ in range(turn):
            self._write_chunk(behind)
        self.assembly.line(f"subs {counter}, #1", "bne 2b")
        self.assembly.free(counter)
        end = self.chunks.num_whole * self.chunks.width
        if self.chunks.is_ragged:
            self._write_chunk(f", #{(self.chunks.offsets[-1] - end) * size}]")
        self._move(-end)

    def _move(self, distance: int) -> None:
        for pixel in self.pixels:
            self.assembly.move(pixel, distance * self.chunks.element.size_bytes)

    def _write_chunk(self, address: str, *, is_first: bool = False) -> None:
        """One chunk of each pixel by that of each channel; loads stand before products that do not need them."""
        width, line = self.chunks.width, self.assembly.line
        lanes = _LANES[width]
        multiply = "vmladav" if is_first else "vmladava"
        filters = [self.filters[channel % 2] for channel in range(CHANNELS)]
        loads = [f"{_LOADS[width]} {each}, [{self.weights}], #{width}" for each in filters]
        values = [
            f"{self.chunks.load} {q}, [{pixel}{address}"
            for q, pixel in zip(self.values, self.pixels, strict=True)
        ]
        line(values[0], loads[0], *values[1:])
        for channel in range(CHANNELS):
            products = [
                f"{multiply}.{lanes} {own[channel]}, {value}, {filters[channel]}"
                for own, value in zip(self.sums, self.values, strict=True)
            ]
            line(products[0], *loads[channel + 1 : channel + 2], *products[1:])


def collect(assembly: Assembly, sums: Sequence[Sequence[str]]) -> list[str]:
    """Moves the sums of each pixel to the lanes of a vector, and frees their registers."""
    vectors = assembly.take_all("totals", len(sums), Registers.VECTOR)
    for vector, (first, second, third, fourth) in zip(vectors, sums, strict=True):
        assembly.line(
            f"vmov {vector}[2], {vector}[0], {first}, {third}",
            f"vmov {vector}[3], {vector}[1], {second}, {fourth}",
        )
        assembly.free(first, second, third, fourth)
    return vectors
