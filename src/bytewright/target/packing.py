"""How much of a memory its parts take when a linker places them one after the other, each at its alignment.

A part of N bytes whose address must be a multiple of A leaves a gap before it where the part before ends elsewhere. How
many bytes that costs depends on the order, so the best one counts: what does not fit in the best order fits in none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

_MOST_ODD_PARTS = 10  # of which every order is looked at


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes that lie together at a multiple of the alignment, a power of two, and what they are, for people."""

    size_bytes: int
    alignment: int = 1
    what: str = ""

    def __str__(self) -> str:
        """With the alignment where it leaves a gap behind."""
        aligned = f", aligned to {self.alignment}" if self.size_bytes % self.alignment else ""
        return f"{self.what}: {self.size_bytes} B{aligned}"


def packed_bytes(parts: Sequence[Part]) -> int:
    """The least end of the parts in a memory that begins at a multiple of every alignment.

    Parts whose size is a multiple of every alignment cost no gap wherever they are, so only the others' order counts.
    That is found by the least end of each subset; from `_MOST_ODD_PARTS` on the strictest alignment comes first.
    """
    whole_bytes, odd = _split(parts)
    return whole_bytes + (_least_ends(odd)[-1] if len(odd) <= _MOST_ODD_PARTS else _end(odd))


def room_bytes(parts: Sequence[Part], alignment: int, capacity_bytes: int) -> int:
    """The most bytes that one more part of this alignment can have; less than 0 if not even the others fit."""
    whole_bytes, odd = _split((*parts, Part(0, alignment)))
    capacity_bytes -= whole_bytes
    if packed_bytes(odd) > capacity_bytes:
        return capacity_bytes - packed_bytes(odd)
    if len(odd) > _MOST_ODD_PARTS:
        return capacity_bytes - _up(_end(odd), alignment)
    ends, starts = _least_ends(odd), _latest_starts(odd, capacity_bytes)
    everything = len(ends) - 1
    return max(starts[everything ^ before] - _up(ends[before], alignment) for before in range(len(ends)))


def _split(parts: Sequence[Part]) -> tuple[int, list[Part]]:
    """The bytes of parts that fit together without gaps, and the other parts, the strictest first."""
    strictest = reduce(max, (part.alignment for part in parts), 1)
    whole_bytes = sum(part.size_bytes for part in parts if part.size_bytes % strictest == 0)
    odd = [part for part in parts if part.size_bytes % strictest]
    return whole_bytes, sorted(odd, key=lambda part: -part.alignment)


def _end(parts: Sequence[Part]) -> int:
    return reduce(lambda end, part: _up(end, part.alignment) + part.size_bytes, parts, 0)


def _least_ends(parts: Sequence[Part]) -> list[int]:
    """For each set of parts, as bits: the least end of an order of them from 0."""
    ends = [0] * (1 << len(parts))
    for chosen in range(1, len(ends)):
        ends[chosen] = min(
            _up(ends[chosen ^ (1 << i)], part.alignment) + part.size_bytes
            for i, part in enumerate(parts)
            if chosen >> i & 1
        )
    return ends


def _latest_starts(parts: Sequence[Part], end: int) -> list[int]:
    """For each set of parts, as bits: the latest start of an order of them that is over at the end."""
    starts = [end] * (1 << len(parts))
    for chosen in range(1, len(starts)):
        starts[chosen] = max(
            (starts[chosen ^ (1 << i)] - part.size_bytes) // part.alignment * part.alignment
            for i, part in enumerate(parts)
            if chosen >> i & 1
        )
    return starts


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
