"""What the memory protection unit of a board lets the harness and a run of the model do, as regions of v8-M.

In a run there is no map behind the regions: what the run may write is a list, and so is what it may read; an
address in neither faults. Regions of v8-M may not overlap and begin and end at multiples of 32 bytes, so the lists
are cut into disjoint pieces, and a granule that a byte to be written shares with others can be written as a whole.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

from bytewright.diagnostics import compile_error

GRANULE_BYTES = 32


class Rights(IntEnum):
    """The low bits of RBAR: AP and XN, for privileged and unprivileged code alike."""

    WRITE = 0b011
    EXECUTE = 0b110
    READ = 0b111


# Where two rights meet in a granule, the first of these holds.
_PRECEDENCE = (Rights.WRITE, Rights.EXECUTE, Rights.READ)


@dataclass(frozen=True, slots=True)
class ProtectedRegion:
    """One region: whole granules from `first` to before `end`."""

    first: int
    end: int
    access: Rights


def disjoint_regions(spans: Iterable[tuple[int, int, Rights]]) -> tuple[ProtectedRegion, ...]:
    """Disjoint regions, by address, for spans (first byte, one past the last, right) that may overlap and touch."""
    rounded = [
        (first & -GRANULE_BYTES, end + -end % GRANULE_BYTES, access)
        for first, end, access in spans
        if first < end
    ]
    cuts = sorted({edge for first, end, _ in rounded for edge in (first, end)})
    regions: list[ProtectedRegion] = []
    for first, end in pairwise(cuts):
        rights = {access for begin, stop, access in rounded if begin <= first and end <= stop}
        if not rights:
            continue
        access = min(rights, key=_PRECEDENCE.index)
        goes_on = bool(regions) and (regions[-1].end, regions[-1].access) == (first, access)
        regions.append(ProtectedRegion(regions.pop().first if goes_on else first, end, access))
    return tuple(regions)


def fitted_regions(
    spans: Iterable[tuple[int, int, Rights]], num_regions: int, what: str, help_text: str
) -> tuple[ProtectedRegion, ...]:
    """Regions that a unit has room for. If they are too many, what lies between two that are read may be read too.

    Args:
        spans: As `disjoint_regions` has them.
        num_regions: How many the unit has.
        what: What needs them, for the message.
        help_text: What makes them fewer.

    Raises:
        CompileError: BW204 if the unit has too few even so.
    """
    regions = list(disjoint_regions(spans))
    needed = len(regions)
    while len(regions) > num_regions:
        gaps = [
            (second.first - first.end, index)
            for index, (first, second) in enumerate(pairwise(regions))
            if first.access is second.access is Rights.READ
        ]
        if not gaps:
            message = f"{what} needs {needed} regions of memory protection, the board has {num_regions}"
            raise compile_error("BW204", message, help=help_text)
        _, index = min(gaps)
        regions[index : index + 2] = [
            ProtectedRegion(regions[index].first, regions[index + 1].end, Rights.READ)
        ]
    return tuple(regions)


def region_words(regions: Sequence[ProtectedRegion], num_regions: int) -> bytes:
    """RBAR and RLAR of every region of the unit, those that are not used switched off."""
    words = [(region.first | region.access, (region.end - GRANULE_BYTES) | 1) for region in regions]
    words += [(0, 0)] * (num_regions - len(words))
    return b"".join(struct.pack("<II", *pair) for pair in words)


def access_at(regions: Sequence[ProtectedRegion], address: int) -> Rights | None:
    """What the run may do at an address."""
    return next((region.access for region in regions if region.first <= address < region.end), None)
