"""Weights and scales of a convolution, from the streams in a region.

The weight stream is entropy coded; Vela's `mlw_codec` decodes it to a row of numbers in the order in which the NPU
takes them, with zeros where a block is not full. That order follows from the convolution and the accelerator and is
undone here: blocks of output channels, blocks of 32 input channels (16 where the part of a kernel comes first), pieces
of the kernel of 8 x 8 taps, and within them the unit's own 8 x 8 channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from bytewright.ethos_u.decoder import WeightDecoder
from bytewright.ethos_u.faults import damaged
from bytewright.ethos_u.operations import Convolution, Element
from bytewright.target.isa.accelerator import Accelerator

PIECE = 8
SCALE_BYTES = 10
Integers = npt.NDArray[np.int64]
_DECODER = WeightDecoder()


@dataclass(frozen=True, slots=True)
class Scales:
    """The scale of each output channel.

    Attributes:
        bias: What is added to its sum.
        multiplier: Of the factor multiplier * 2^-shift that comes after.
        shift: Of the same.
    """

    bias: Integers
    multiplier: Integers
    shift: Integers


@dataclass(frozen=True, slots=True)
class _Order:
    """All that the order of one core's weights depends on; `height` and `width` count taps."""

    ofm_depth: int
    ifm_depth: int
    height: int
    width: int
    piece_height: int
    piece_width: int
    block_depth: int
    unit_ofm: int
    unit_ifm: int
    depthwise: bool
    part_kernel_first: bool
    narrow: bool


def read_weights(operation: Convolution, streams: tuple[bytes, ...], accelerator: Accelerator) -> Integers:
    """The weights of all cores, as an array of rows, columns, input channels and output channels.

    Raises:
        CompileError: BW740 where a stream is damaged or holds fewer weights than the convolution has; BW501 without
            the decoder.
    """
    window = operation.window
    height, width = (window.height - 1) // window.dilation_y + 1, (window.width - 1) // window.dilation_x + 1
    ifm_depth = 1 if operation.depthwise else operation.ifm.depth
    weights = np.zeros((height, width, ifm_depth, operation.ofm.depth), np.int64)
    for core, stream in enumerate(streams):
        depth = len(range(core, operation.ofm.depth, accelerator.num_cores))
        if not depth:
            continue
        order = _Order(
            depth,
            ifm_depth,
            height,
            width,
            PIECE // window.dilation_y,
            PIECE // window.dilation_x,
            (operation.block_depth + accelerator.num_cores - 1 - core) // accelerator.num_cores,
            accelerator.ofm_depth,
            accelerator.ifm_depth,
            operation.depthwise,
            window.part_kernel_first,
            operation.ifm.element in {Element.U8, Element.I8},
        )
        weights[..., core :: accelerator.num_cores] = _decode(stream, order)
    return weights


def read_scales(operation: Convolution, streams: tuple[bytes, ...]) -> Scales:
    """The scales of all cores.

    Raises:
        CompileError: BW740 where a stream holds fewer scales than its core has channels.
    """
    depth, num_cores = operation.ofm.depth, len(streams)
    bias, multiplier, shift = (np.zeros(depth, np.int64) for _ in range(3))
    for core, stream in enumerate(streams):
        channels = slice(core, depth, num_cores)
        count = len(range(core, depth, num_cores))
        if len(stream) < count * SCALE_BYTES:
            raise damaged(
                f"a scale stream of {len(stream)} bytes is for {count} channels of {SCALE_BYTES} bytes each"
            )
        rows = (
            np.frombuffer(stream, np.uint8, count * SCALE_BYTES).reshape(count, SCALE_BYTES).astype(np.int64)
        )
        low = _little_endian(rows[:, 0:5])
        bias[channels] = np.where(low >= 1 << 39, low - (1 << 40), low)
        multiplier[channels] = _little_endian(rows[:, 5:9])
        shift[channels] = rows[:, 9] & 0x3F
    return Scales(bias, multiplier, shift)


def _little_endian(columns: Integers) -> Integers:
    return (columns << (8 * np.arange(columns.shape[1], dtype=np.int64))).sum(axis=1)


@lru_cache(maxsize=256)
def _decode(stream: bytes, order: _Order) -> Integers:
    values = _DECODER.decode(stream).astype(np.int64) if stream else np.zeros(0, np.int64)
    num_weights = order.height * order.width * order.ifm_depth * order.ofm_depth
    # Only then is it certain that the order of all of them is no table out of proportion.
    positions = _positions(order) if num_weights <= values.size else None
    if positions is None or values.size < positions.size:
        raise damaged(
            f"a weight stream of {len(stream)} bytes holds {values.size} weights; {num_weights} are used"
        )
    weights = np.zeros(num_weights, np.int64)
    used = positions >= 0
    weights[positions[used]] = values[: positions.size][used]
    return weights.reshape(order.height, order.width, order.ifm_depth, order.ofm_depth)


@lru_cache(maxsize=256)
def _positions(order: _Order) -> Integers:
    """For each weight of the stream its place in the array, -1 for one that only fills a block."""
    ifm_block = 16 if order.part_kernel_first or not order.narrow else 32
    pieces: list[Integers] = []
    for ofm_first in range(0, order.ofm_depth, order.block_depth):
        ofm_channels = min(order.block_depth, order.ofm_depth - ofm_first)
        for ifm_first in range(0, order.ifm_depth, ifm_block):
            ifm_channels = min(ifm_block, order.ifm_depth - ifm_first)
            if order.depthwise:
                ifm_channels = order.unit_ifm
            elif not order.part_kernel_first:
                ifm_channels = ifm_block
            for row in range(0, order.height, order.piece_height):
                for column in range(0, order.width, order.piece_width):
                    pieces.append(
                        _piece(order, ofm_first, ofm_channels, ifm_first, ifm_channels, row, column)
                    )
    return np.concatenate(pieces)


def _piece(
    order: _Order, ofm_first: int, ofm_channels: int, ifm_first: int, ifm_channels: int, row: int, column: int
) -> Integers:
    """One block of output channels by one block of input channels by one piece of the kernel."""
    height, width = min(order.piece_height, order.height - row), min(order.piece_width, order.width - column)
    taps = height * width
    if order.part_kernel_first:
        taps += -taps % (4 if order.narrow else 2)
    elif order.depthwise:
        taps += -taps % 4
    tap = np.arange(taps)
    ofm_unit = np.arange(0, ofm_channels, order.unit_ofm)
    ifm_unit = np.arange(0, ifm_channels, order.unit_ifm)
    ofm_inner = np.arange(order.unit_ofm)
    ifm_inner = np.arange(1 if order.depthwise else order.unit_ifm)
    # The axes stand in the order of the stream: the taps come before the inner units of input channels or after them.
    axes = (ifm_unit, ofm_unit, tap) if order.part_kernel_first else (ofm_unit, tap, ifm_unit)
    grid = np.meshgrid(*axes, ofm_inner, ifm_inner, indexing="ij")
    ifm_outer, ofm_outer, number = (
        (grid[0], grid[1], grid[2]) if order.part_kernel_first else (grid[2], grid[0], grid[1])
    )
    ofm = ofm_first + ofm_outer + grid[3]
    ifm = ifm_first + ifm_outer + grid[4]
    y, x = row + number // width, column + number % width
    position = ((y * order.width + x) * order.ifm_depth + ifm) * order.ofm_depth + ofm
    valid = (number < height * width) & (ifm < order.ifm_depth) & (ofm < order.ofm_depth)
    return np.where(valid, position, -1).ravel()
