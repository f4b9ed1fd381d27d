"""Sections that a linker script has to place for a bundle: those whose memory is a known region of the script.

A vendor's script knows nothing of them, and a linker puts what no script places wherever it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bytewright.record.buffers import PlannedPool
from bytewright.record.names import names_of
from bytewright.record.plan import Plan
from bytewright.target.model import Loader, Memory, Role


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """An array in a section.

    Attributes:
        pool: That it is behind.
        size_bytes: The least that it has.
        has_bytes: Whether the image brings its content.
        is_generated: Whether the C declares it.
    """

    pool: PlannedPool
    size_bytes: int
    has_bytes: bool
    is_generated: bool


@dataclass(frozen=True, slots=True)
class PlacedSection:
    """A section.

    Attributes:
        memory: Where it lies; its region is known.
        load_memory: What keeps its bytes until start-up code copies them; None if they are where they are read.
        arrays: What is in it.
    """

    name: str
    memory: Memory
    load_memory: Memory | None
    arrays: tuple[PlacedArray, ...]

    @property
    def has_bytes(self) -> bool:
        """Whether the image brings any."""
        return any(array.has_bytes for array in self.arrays)

    @property
    def alignment(self) -> int:
        """Of its address."""
        return max(array.pool.alignment for array in self.arrays)

    @property
    def size_bytes(self) -> int:
        """The least that it has if all arrays are in it."""
        return sum(array.size_bytes for array in self.arrays)


def placed_sections(plan: Plan) -> tuple[PlacedSection, ...]:
    """The sections, those with bytes first; none where no region is known."""
    arrays: dict[str, list[PlacedArray]] = {}
    places: dict[str, tuple[Memory, Memory | None]] = {}
    for section, memory, loaded_from, array in _arrays(plan):
        if (
            section is None
            or memory.region is None
            or (loaded_from is not None and loaded_from.region is None)
        ):
            continue
        arrays.setdefault(section, []).append(array)
        places.setdefault(section, (memory, loaded_from))
    found = (PlacedSection(name, *places[name], tuple(own)) for name, own in arrays.items())
    return tuple(sorted(found, key=lambda section: not section.has_bytes))


def include_line(plan: Plan, directory: Path | None = None) -> str:
    """What the linker script needs: `INCLUDE kws_sections.ld` and where; empty where no section has to be placed."""
    if not placed_sections(plan):
        return ""
    folder = "the bundle's folder" if directory is None else f"-L {directory}"
    return f"in SECTIONS of the linker script: INCLUDE {names_of(plan).sections_file}   (found with {folder})"


def _arrays(plan: Plan) -> Iterator[tuple[str | None, Memory, Memory | None, PlacedArray]]:
    memory_of = plan.hardware.memory
    for pool in plan.workspaces:
        array = PlacedArray(pool, pool.used_bytes, has_bytes=False, is_generated=not pool.is_caller)
        yield pool.section, memory_of(pool.memory), None, array
    for pool in plan.used_pools(Role.PARAMETERS):
        kept = None if pool.load_memory is None else memory_of(pool.load_memory)
        is_generated = not pool.is_caller
        if pool.load is Loader.COPY:
            array = PlacedArray(pool, pool.used_bytes, has_bytes=False, is_generated=is_generated)
            yield pool.section, memory_of(pool.memory), None, array
            if kept is not None and is_generated:
                array = PlacedArray(pool, pool.used_bytes, has_bytes=True, is_generated=True)
                yield kept.section, kept, None, array
        elif is_generated:
            array = PlacedArray(pool, pool.used_bytes, has_bytes=True, is_generated=True)
            yield pool.section, memory_of(pool.memory), kept, array
