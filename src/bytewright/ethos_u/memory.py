"""The regions that a stream runs on, and the NPU's own shared buffer: reading and writing arrays in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bytewright.ethos_u.accesses import element_offsets
from bytewright.ethos_u.operations import SHRAM, FeatureMap, Span
from bytewright.target.isa.accelerator import Accelerator

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
TABLES_BYTES = 2048
TABLE_BYTES = 256


@dataclass(slots=True)
class Memory:
    """Arrays of bytes by region; all that a stream touches has been found to lie within them, and to be known."""

    regions: Mapping[int, Bytes]
    shram: Bytes

    def copy(self, source: int, first: int, destination: int, to: int, size_bytes: int) -> None:
        """Copies bytes between regions, or to the lookup tables."""
        data = self.regions[source][first : first + size_bytes].copy()
        if destination != SHRAM:
            self.regions[destination][to : to + size_bytes] = data
            return
        self.shram[to : to + size_bytes] = data

    def span(self, span: Span) -> bytes:
        """The bytes of a span."""
        return self.regions[span.region][span.first : span.first + span.size_bytes].tobytes()

    def load(self, array: FeatureMap) -> Integers:
        """A feature map as an array of height, width and depth, its zero point not yet taken away."""
        offsets = element_offsets(array)
        size = array.element.size_bytes
        data = self.regions[array.region][offsets[..., None] + np.arange(size)]
        return data.view(array.element.value)[..., 0].astype(np.int64)

    def store(self, array: FeatureMap, values: Integers) -> None:
        """Writes a feature map, whose values are in the range of its type."""
        offsets = element_offsets(array)
        size = array.element.size_bytes
        data = (
            np.ascontiguousarray(values.astype(array.element.value))
            .view(np.uint8)
            .reshape(*values.shape, size)
        )
        self.regions[array.region][offsets[..., None] + np.arange(size)] = data

    def table(self, slot: int, entry_bytes: int, accelerator: Accelerator) -> Integers:
        """A lookup table of 256 entries of one, or four bytes."""
        first = accelerator.core_shram_bytes - TABLES_BYTES + slot * TABLE_BYTES
        data = self.shram[first : first + 256 * entry_bytes]
        return data.view(np.int8 if entry_bytes == 1 else np.int32).astype(np.int64)
