"""Constants that files store in another type than the graph has: float16, int4 and uint8, converted when read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytewright import ir


@dataclass(frozen=True, slots=True)
class Stored:
    """An element type that files have and the graph has not.

    Attributes:
        dtype: What the values are in the graph; it has all of them.
        growth: Bytes that a byte of the file becomes.
        stored_bytes: Of so many elements.
        widen: The elements of bytes, in their order; where those of the last byte are more than are wanted, too many.
    """

    dtype: ir.DType
    growth: int
    stored_bytes: Callable[[int], int]
    widen: Callable[[memoryview], NDArray[Any]]


def _widened_halves(content: memoryview) -> NDArray[np.float32]:
    """float16 values as float32; exact."""
    return np.frombuffer(content, "<f2").astype("<f4")


def _unpacked_nibbles(content: memoryview) -> NDArray[np.int8]:
    """Two's complement numbers of 4 bits as int8: the lower half of each byte is the first."""
    both = np.frombuffer(content, np.int8)
    return np.stack(((both << 4) >> 4, both >> 4), axis=-1).reshape(-1)


def _recentred(content: memoryview) -> NDArray[np.int8]:
    """uint8 values 128 less: the upper bit is the other one."""
    return (np.frombuffer(content, np.uint8) ^ 0x80).view(np.int8)


STORED = {
    "FLOAT16": Stored(ir.DType.F32, 2, lambda count: 2 * count, _widened_halves),
    "INT4": Stored(ir.DType.I8, 2, lambda count: (count + 1) // 2, _unpacked_nibbles),
    "UINT8": Stored(ir.DType.I8, 1, lambda count: count, _recentred),
}
"""By the schema's name; an operator that takes them says so in its row of the table."""
