"""FNV-1a, 64 bits (Fowler, Noll, Vo), of megabytes: the digest that a blob's header carries, and the C compares.

Byte by byte, `digest = (digest ^ byte) * PRIME mod 2**64`. The exclusive or changes the lowest byte alone, so with the
lowest byte of the digest before each byte known, the rest is a sum: `digest ^ byte = digest + ((low ^ byte) - low)`.
The lowest bytes depend on nothing but each other, and since the prime is odd, each bit of theirs is the exclusive or
of all that came before it and of what lower bits carry into it.
"""

import numpy as np
from numpy.typing import NDArray

OFFSET_BASIS = 0xCBF29CE484222325
PRIME = 0x100000001B3
_MASK = (1 << 64) - 1
_CHUNK_BYTES = 1 << 18


def fnv1a_64(data: bytes, digest: int = OFFSET_BASIS) -> int:
    """The digest of some bytes, or of these after others that gave `digest`."""
    powers = np.multiply.accumulate(np.full(min(len(data), _CHUNK_BYTES), PRIME, np.uint64))
    for begin in range(0, len(data), _CHUNK_BYTES):
        chunk = np.frombuffer(data, np.uint8, min(_CHUNK_BYTES, len(data) - begin), begin)
        low = _low_bytes(chunk, digest & 0xFF)
        changes = ((low ^ chunk).astype(np.int64) - low).astype(np.uint64)
        own = powers[: len(chunk)]
        total = digest * int(own[-1]) + int((changes * own[::-1]).sum(dtype=np.uint64))
        digest = total & _MASK
    return digest


def _low_bytes(chunk: NDArray[np.uint8], first: int) -> NDArray[np.uint8]:
    """The lowest byte of the digest before each byte of a chunk; before the first it is `first`."""
    low = np.zeros(len(chunk), np.uint8)
    low[0] = first
    factor = np.uint8(PRIME & 0xFF)
    for bit in range(8):
        # Of each product, what carries into this bit is known.
        below = (low ^ chunk) & np.uint8((1 << bit) - 1)
        turned = ((below * factor) ^ chunk) >> np.uint8(bit) & np.uint8(1)
        turned[1:] = turned[:-1].copy()
        turned[0] = first >> bit & 1
        low &= np.uint8(~(1 << bit) & 0xFF)
        low |= np.bitwise_xor.accumulate(turned) << np.uint8(bit)
    return low
