"""A flatbuffer read with every access checked.

The accessors that the flatbuffers compiler generates trust their input: an absurd offset reads somewhere else,
and a vector's length is believed. Here each read is inside the file or raises `DamagedError`, and the sum of all
reads is limited, so that tables which share one huge vector a million times cannot use up time or memory.
Layout: https://flatbuffers.dev/internals/ (tables point back to a vtable of 16-bit field offsets).
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

FIRST_SLOT_OFFSET = 4
MAX_STRING_BYTES = 4096
_SHARING = 16
"""A file may refer to its bytes this often on average; writers share some strings and vectors."""
_FREE_BYTES = 1 << 16


class DamagedError(Exception):
    """The bytes are not a flatbuffer of the expected form; the message says where."""


@dataclass(slots=True)
class File:
    """The bytes, and how many more may be decoded."""

    content: bytes
    budget_bytes: int

    @staticmethod
    def of(content: bytes) -> File:
        """A file with a budget in proportion to its size."""
        return File(content, len(content) * _SHARING + _FREE_BYTES)

    def read(self, position: int, size_bytes: int) -> memoryview:
        """`size_bytes` bytes from `position` on, a view."""
        if position < 0 or size_bytes < 0 or position + size_bytes > len(self.content):
            end = position + size_bytes
            raise DamagedError(f"bytes {position}..{end} are needed, the file has {len(self.content)}")
        return memoryview(self.content)[position : position + size_bytes]

    @contextmanager
    def once_more(self) -> Generator[None, None, None]:
        """What is decoded inside is of another reading of the file, which has the budget that is left now."""
        left = self.budget_bytes
        try:
            yield
        finally:
            self.budget_bytes = left

    def charge(self, size_bytes: int) -> None:
        """Takes decoded bytes from the budget."""
        self.budget_bytes -= size_bytes
        if self.budget_bytes < 0:
            raise DamagedError("its parts refer to the same bytes over and over")

    def number(self, position: int, form: str) -> Any:
        """One scalar in `struct`'s notation, little-endian."""
        return struct.unpack("<" + form, self.read(position, struct.calcsize("<" + form)))[0]

    def root(self) -> Table:
        """The table that the file's first offset points to."""
        return Table.at(self, self.number(0, "I"))


@dataclass(frozen=True, slots=True)
class Table:
    """One table; slots count its schema fields from 0."""

    file: File
    position: int
    vtable: int
    num_slots: int

    @staticmethod
    def at(file: File, position: int) -> Table:
        """The table at an absolute position."""
        file.charge(8)
        vtable = position - file.number(position, "i")
        vtable_bytes = file.number(vtable, "H")
        if vtable_bytes < FIRST_SLOT_OFFSET or vtable_bytes % 2:
            raise DamagedError(f"the table at {position} has no valid vtable")
        file.read(vtable, vtable_bytes)
        return Table(file, position, vtable, (vtable_bytes - FIRST_SLOT_OFFSET) // 2)

    def _field(self, slot: int) -> int | None:
        """Absolute position of a field, or None where it has its default."""
        if slot >= self.num_slots:
            return None
        offset = self.file.number(self.vtable + FIRST_SLOT_OFFSET + 2 * slot, "H")
        return self.position + offset if offset else None

    def integer(self, slot: int, form: str = "i", default: int = 0) -> int:
        """A scalar integer field: `b`, `B`, `i`, `I`, `q`, `Q` as in `struct`."""
        position = self._field(slot)
        return default if position is None else self.file.number(position, form)

    def boolean(self, slot: int) -> bool:
        """A truth value field."""
        return self.integer(slot, "B") != 0

    def real(self, slot: int) -> float:
        """A float32 field."""
        position = self._field(slot)
        return 0.0 if position is None else self.file.number(position, "f")

    def _target(self, slot: int) -> int | None:
        """Where an offset field points."""
        position = self._field(slot)
        return None if position is None else position + self.file.number(position, "I")

    def table(self, slot: int) -> Table | None:
        """A table field."""
        target = self._target(slot)
        return None if target is None else Table.at(self.file, target)

    def _vector(self, slot: int, element_bytes: int) -> tuple[int, int]:
        """Position of the first element and number of elements; an absent vector is empty."""
        target = self._target(slot)
        if target is None:
            return 0, 0
        length = self.file.number(target, "I")
        self.file.read(target + 4, length * element_bytes)
        return target + 4, length

    def tables(self, slot: int) -> list[Table]:
        """A vector of tables."""
        start, length = self._vector(slot, 4)
        self.file.charge(4 * length)
        positions = [start + 4 * index for index in range(length)]
        return [Table.at(self.file, position + self.file.number(position, "I")) for position in positions]

    def numbers(self, slot: int, dtype: str) -> tuple[Any, ...]:
        """A vector of scalars by numpy type (`<i4`, `<i8`, `<f4`) as Python numbers."""
        size_bytes = np.dtype(dtype).itemsize
        start, length = self._vector(slot, size_bytes)
        self.file.charge(size_bytes * length)
        view = self.file.read(start, size_bytes * length)
        return tuple(np.frombuffer(view, dtype=dtype).tolist())

    def has(self, slot: int) -> bool:
        """Whether a vector, string or table is there, even if it is empty."""
        return self._target(slot) is not None

    def content(self, slot: int) -> memoryview:
        """A vector of bytes, as a view that copies nothing."""
        start, length = self._vector(slot, 1)
        return self.file.read(start, length)

    def string(self, slot: int) -> str:
        """A string; invalid UTF-8 is replaced, excessive length cut."""
        start, length = self._vector(slot, 1)
        taken = min(length, MAX_STRING_BYTES)
        self.file.charge(taken)
        return bytes(self.file.read(start, taken)).decode("utf-8", errors="replace")
