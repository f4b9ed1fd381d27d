"""Which bytes of which region an operation reads and writes, and from that what a stream needs of its memory.

The bytes of a feature map are given as one hull a tile. A pixel of a blocked array counts with all its 16 channels, as
the NPU moves whole blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bytewright.ethos_u.faults import unsupported
from bytewright.ethos_u.operations import (
    SHRAM,
    UNARY,
    Convolution,
    DmaCopy,
    Elementwise,
    FeatureMap,
    Operation,
    Pooling,
    Span,
)

Flags = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
BLOCK_CHANNELS = 16
BASE_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes `first` to `last` of a region, both included, read or written by operation number `operation`."""

    operation: int
    region: int
    first: int
    last: int
    writes: bool


@dataclass(frozen=True, slots=True)
class RegionUse:
    """All that a stream does with one region.

    Attributes:
        region: The base pointer's number.
        first, last: The hull of what is touched, both included.
        reads, writes: Whether any byte of it is read, or written.
        alignment: What its base must be a multiple of.
    """

    region: int
    first: int
    last: int
    reads: bool
    writes: bool
    alignment: int = BASE_ALIGNMENT

    @property
    def needed_bytes(self) -> int:
        """Bytes from the base to the end of what is touched."""
        return self.last + 1


@dataclass(frozen=True, slots=True)
class Tile:
    """A part of a feature map that lies evenly: rows [top, bottom), columns [left, right) from a base address."""

    base: int
    top: int
    bottom: int
    left: int
    right: int


def tiles(array: FeatureMap) -> Iterator[Tile]:
    """The tiles of a feature map that have elements."""
    middle = min(array.left_width, array.width)
    columns = ((0, middle, array.left_height, 0), (middle, array.width, array.right_height, 1))
    for left, right, first_height, column in columns:
        split = min(first_height, array.height)
        for top, bottom, row in ((0, split, 0), (split, array.height, 2)):
            if left < right and top < bottom:
                yield Tile(array.bases[column + row], top, bottom, left, right)


def pixel_stride(array: FeatureMap) -> int:
    """Bytes from a pixel to the one on its right."""
    return BLOCK_CHANNELS * array.element.size_bytes if array.blocked else array.stride_x


@lru_cache(maxsize=256)
def element_offsets(array: FeatureMap) -> Integers:
    """Where in its region each element begins: height, width, depth."""
    result = np.empty((array.height, array.width, array.depth), np.int64)
    channel = np.arange(array.depth, dtype=np.int64)
    size = array.element.size_bytes
    along_channels = channel * size
    if array.blocked:
        along_channels = channel // BLOCK_CHANNELS * array.stride_c + channel % BLOCK_CHANNELS * size
    for tile in tiles(array):
        rows = np.arange(tile.bottom - tile.top, dtype=np.int64)[:, None, None] * array.stride_y
        columns = np.arange(tile.right - tile.left, dtype=np.int64)[None, :, None] * pixel_stride(array)
        result[tile.top : tile.bottom, tile.left : tile.right] = tile.base + rows + columns + along_channels
    return result


def written_bytes(operations: Sequence[Operation], region: int, size_bytes: int) -> Flags:
    """For each byte of a region of that size whether any operation writes it; all accesses lie within it."""
    written = np.zeros(size_bytes, np.bool_)
    for operation in operations:
        if not isinstance(operation, DmaCopy):
            if operation.ofm.region == region:
                size = np.arange(operation.ofm.element.size_bytes)
                written[element_offsets(operation.ofm)[..., None] + size] = True
        elif operation.destination_region == region:
            for row in range(operation.num_rows):
                first = operation.destination + row * operation.destination_step
                written[first : first + operation.row_bytes] = True
    return written


def accesses(operations: Sequence[Operation]) -> tuple[Access, ...]:
    """All accesses of a stream to memory outside of the NPU, in order; where it may be, the hull of a tile."""
    return tuple(
        access for number, operation in enumerate(operations) for access in _accesses(number, operation)
    )


def region_uses(found: Iterable[Access]) -> tuple[RegionUse, ...]:
    """What is done with each region that is touched, by number."""
    uses: dict[int, RegionUse] = {}
    for access in found:
        old = uses.get(access.region)
        first, last = access.first, access.last
        reads, writes = not access.writes, access.writes
        if old is not None:
            first, last = min(first, old.first), max(last, old.last)
            reads, writes = reads or old.reads, writes or old.writes
        uses[access.region] = RegionUse(access.region, first, last, reads, writes)
    return tuple(uses[region] for region in sorted(uses))


def _accesses(number: int, operation: Operation) -> Iterator[Access]:
    match operation:
        case DmaCopy():
            extra = (operation.num_rows - 1) * operation.source_step + operation.row_bytes - 1
            yield from _outside(
                number, operation.source_region, operation.source, operation.source + extra, False
            )
            extra = (operation.num_rows - 1) * operation.destination_step + operation.row_bytes - 1
            first = operation.destination
            yield from _outside(number, operation.destination_region, first, first + extra, True)
        case Convolution():
            yield from _array(number, operation.ifm, False)
            for span in (*operation.weights, *operation.scales):
                yield from _span(number, span)
            yield from _array(number, operation.ofm, True)
        case Pooling():
            yield from _array(number, operation.ifm, False)
            yield from _array(number, operation.ofm, True)
        case Elementwise():
            yield from _array(number, operation.ifm, False)
            if operation.ifm2 is not None and operation.mode not in UNARY:
                yield from _array(number, operation.ifm2, False)
            yield from _array(number, operation.ofm, True)


def _outside(number: int, region: int, first: int, last: int, writes: bool) -> Iterator[Access]:
    if region != SHRAM:
        yield Access(number, region, first, last, writes)


def _span(number: int, span: Span) -> Iterator[Access]:
    if span.size_bytes:
        yield Access(number, span.region, span.first, span.first + span.size_bytes - 1, False)


def _array(number: int, array: FeatureMap, writes: bool) -> Iterator[Access]:
    size_bytes = array.element.size_bytes
    channels = (0, array.depth * size_bytes - 1)
    if array.blocked:
        last_block = (array.depth - 1) // BLOCK_CHANNELS * array.stride_c
        channels = (min(0, last_block), max(0, last_block) + BLOCK_CHANNELS * size_bytes - 1)
    num_channels = -(-array.depth // BLOCK_CHANNELS) * BLOCK_CHANNELS if array.blocked else array.depth
    for tile in tiles(array):
        down = (tile.bottom - tile.top - 1) * array.stride_y
        along = (tile.right - tile.left - 1) * pixel_stride(array)
        first = tile.base + min(0, down) + min(0, along) + channels[0]
        last = tile.base + max(0, down) + max(0, along) + channels[1]
        if (tile.bottom - tile.top) * (tile.right - tile.left) * num_channels * size_bytes > last + 1 - first:
            raise unsupported(
                f"operation {number} of the stream has a feature map whose elements overlap each other"
            )
        yield Access(number, array.region, first, last, writes)
