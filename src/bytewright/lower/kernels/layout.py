"""The order in which kernels read weights, as data, and the one function that packs them."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bytewright import ir


class End(Enum):
    """What fills the last tile of an axis whose extent is no multiple of it."""

    ZEROS = "zeros"
    OVERLAP = "overlap"
    """The tile ends where the axis ends. Elements that it shares with the tile before it are zero."""
    REPEAT = "repeat"
    """The same, and elements that it shares are there again."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Weights as one pointer reads them: [block][run][step][vector][lane][element], or [element][lane] at the end.

    Attributes:
        lanes: Output channels of a vector.
        vectors: Vectors of a block; the last block may have fewer.
        group: Elements of a lane in a step.
        channels: What fills the last vector.
        elements: What fills the last step of a run.
        by_element: Whether elements come before lanes.
    """

    lanes: int
    vectors: int = 1
    group: int = 1
    channels: End = End.ZEROS
    elements: End = End.ZEROS
    by_element: bool = False

    def pack(self, weights: ir.Array, runs: int = 1) -> NDArray[np.generic]:
        """Weights [OC, K] in this order, flat; K elements are so many runs, which are divided into steps each."""
        num_channels = weights.shape[0]
        by_run = weights.reshape(num_channels, runs, -1)
        by_step = _divided(by_run, 2, self.group, self.elements)
        by_vector = _divided(by_step, 0, self.lanes, self.channels)
        ordered = by_vector.transpose(2, 3, 0, *((4, 1) if self.by_element else (1, 4)))
        count = by_vector.shape[0]
        blocks = [ordered[:, :, first : first + self.vectors] for first in range(0, count, self.vectors)]
        return np.concatenate([block.reshape(-1) for block in blocks])


def _divided(values: ir.Array, axis: int, size: int, end: End) -> ir.Array:
    """An axis as two, of tiles and of the `size` elements of each."""
    extent = values.shape[axis]
    first = (extent - 1) // size * size  # of the last tile
    index = np.arange(first + size)
    if end is not End.ZEROS:
        index[first:] = range(extent - size, extent)
    is_read = index < extent
    if end is End.OVERLAP:
        is_read &= (index >= first) | (np.arange(first + size) < first)
    taken = np.take(values, np.minimum(index, extent - 1), axis)
    mask = is_read.reshape(*(-1 if each == axis else 1 for each in range(values.ndim)))
    tiles = np.where(mask, taken, values.dtype.type(0))
    return tiles.reshape(*values.shape[:axis], -1, size, *values.shape[axis + 1 :])
