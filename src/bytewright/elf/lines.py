"""Which lines of a C file the instructions of an image are of, from its debug information (DWARF 2 to 5).

A function that was inlined has lines of its own, and the place of the call in its caller.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.die import DIE
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram, LineState


@dataclass(frozen=True, slots=True)
class Instructions:
    """Instructions that follow each other and are of one place in the source.

    Attributes:
        first, end: Their addresses, the second one exclusive.
        lines: Of the file that was asked for: of the innermost function first, then where it was inlined.
    """

    first: int
    end: int
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Call:
    """A function that was inlined: the addresses of its instructions, and where it was called."""

    ranges: tuple[tuple[int, int], ...]
    depth: int
    file: str
    line: int


def instructions_of_file(path: Path, file: str) -> list[Instructions]:
    """The instructions of all functions of a C file, in the order of their addresses.

    Those of a function from elsewhere that was inlined are among them.

    Args:
        path: A linked image with debug information for the file.
        file: The name of the C file, without its folder.
    """
    from elftools.elf.elffile import ELFFile

    found: list[Instructions] = []
    with path.open("rb") as stream:
        image = ELFFile(stream)
        if not image.has_dwarf_info():
            return found
        debug = image.get_dwarf_info()
        for unit in debug.iter_CUs():
            program = debug.line_program_for_CU(unit)
            if program is None or file not in (names := _file_names(program)).values():
                continue
            calls = sorted(_calls(debug, unit, unit.get_top_DIE(), names), key=lambda call: -call.depth)
            for row, end in _rows(program, names, file):
                around = [call for call in calls if any(f <= row.address < e for f, e in call.ranges)]
                places = [(names.get(row.file), row.line), *((call.file, call.line) for call in around)]
                lines = tuple(line for name, line in places if name == file and line)
                found.append(Instructions(row.address, end, lines))
    return sorted(found, key=lambda each: each.first)


def _file_names(program: LineProgram) -> dict[int, str]:
    """By their numbers, the names of the files without folders. DWARF 5 counts from 0."""
    first = 0 if program["version"] >= 5 else 1
    return {
        number: os.path.basename(entry.name.decode(errors="replace"))
        for number, entry in enumerate(program["file_entry"], first)
    }


def _rows(program: LineProgram, names: dict[int, str], file: str) -> Iterator[tuple[LineState, int]]:
    """The rows of the line table, with where the next one begins: of sequences in which the file is.

    A sequence that the linker left out begins at 0.
    """
    rows: list[LineState] = []
    for entry in program.get_entries():
        if entry.state is None:
            continue
        rows.append(entry.state)
        if entry.state.end_sequence:
            if rows[0].address and any(names.get(row.file) == file for row in rows):
                yield from (
                    (row, after.address) for row, after in pairwise(rows) if row.address < after.address
                )
            rows = []


def _calls(
    debug: DWARFInfo, unit: CompileUnit, entry: DIE, names: dict[int, str], depth: int = 0
) -> Iterable[_Call]:
    """All functions that were inlined, with how deep each lies in the others."""
    attributes = entry.attributes
    if entry.tag == "DW_TAG_inlined_subroutine" and "DW_AT_call_line" in attributes:
        name = names.get(attributes["DW_AT_call_file"].value, "")
        yield _Call(tuple(_ranges(debug, unit, entry)), depth, name, attributes["DW_AT_call_line"].value)
    for child in entry.iter_children():
        yield from _calls(debug, unit, child, names, depth + 1)


def _ranges(debug: DWARFInfo, unit: CompileUnit, entry: DIE) -> Iterator[tuple[int, int]]:
    """The addresses of what an entry describes."""
    from elftools.dwarf.descriptions import describe_form_class
    from elftools.dwarf.ranges import BaseAddressEntry

    attributes = entry.attributes
    if "DW_AT_low_pc" in attributes and "DW_AT_high_pc" in attributes:
        first, end = attributes["DW_AT_low_pc"].value, attributes["DW_AT_high_pc"]
        yield first, end.value if describe_form_class(end.form) == "address" else first + end.value
    lists = debug.range_lists()
    if "DW_AT_ranges" not in attributes or lists is None:
        return
    low = unit.get_top_DIE().attributes.get("DW_AT_low_pc")
    base = 0 if low is None else low.value
    for item in lists.get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
        if isinstance(item, BaseAddressEntry):
            base = item.base_address
        else:
            start = 0 if item.is_absolute else base
            yield start + item.begin_offset, start + item.end_offset
