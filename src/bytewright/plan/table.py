"""Buffers as CSV: `id,lower,upper,size`, optionally `alignment` and `offset` (a fixed one), and back.

Everything that is wrong with a file is found in one reading, each with its line and column.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

from bytewright.diagnostics import CompileError, Diagnostic, compile_error, first_of
from bytewright.plan.problem import LIMIT_BYTES, Buffer, is_power_of_two
from bytewright.plan.solution import Solution

REQUIRED = ("id", "lower", "upper", "size")
OPTIONAL = ("alignment", "offset")


@dataclass(frozen=True, slots=True)
class BufferTable:
    """A file's buffers, and what is needed to write it back with offsets."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    """Where a value stands, for messages."""

    path: Path
    line: int
    column: int
    text: str = ""

    def error(self, what: str) -> Diagnostic:
        return Diagnostic("BW602", what, where=f"{self.path}:{self.line}, column {self.column}")


def read_buffers(path: str | PathLike[str]) -> BufferTable:
    """Reads a buffers file.

    Raises:
        CompileError: BW601 if it cannot be read, BW602 for each thing that is wrong in it.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise compile_error("BW601", f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise compile_error("BW601", f"cannot read '{path}': it is not UTF-8 text") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[tuple[int, list[str]]] = []
    try:
        lines.extend((reader.line_num, row) for row in reader if row)
    except csv.Error as error:
        raise compile_error("BW602", str(error), where=f"{path}:{reader.line_num}") from error
    if not lines:
        raise compile_error("BW602", "the file is empty", help=_columns_help(), where=str(path))
    columns, rows = _read_header(path, lines[0]), lines[1:]
    buffers: list[Buffer] = []
    diagnostics = first_of(_faults_of_rows(path, columns, rows, buffers))
    if diagnostics:
        raise CompileError(diagnostics)
    return BufferTable(columns, tuple(tuple(row) for _, row in rows), tuple(buffers))


def write_buffers(table: BufferTable, solution: Solution) -> str:
    """The same file with a column `offset`, filled."""
    with_offset = table.columns if "offset" in table.columns else (*table.columns, "offset")
    at = with_offset.index("offset")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(with_offset)
    for row, buffer in zip(table.rows, table.buffers, strict=True):
        cells = [*row, ""] if len(with_offset) > len(row) else list(row)
        cells[at] = str(solution.placement_of[buffer.name].offset)
        writer.writerow(cells)
    return out.getvalue()


def _columns_help() -> str:
    return f"the first line names the columns: {','.join(REQUIRED)} and optionally {','.join(OPTIONAL)}"


def _read_header(path: Path, line: tuple[int, list[str]]) -> tuple[str, ...]:
    number, names = line
    columns = tuple(name.strip() for name in names)
    diagnostics: list[Diagnostic] = []
    for position, name in enumerate(columns):
        cell = _Cell(path, number, position + 1, name)
        if name not in REQUIRED and name not in OPTIONAL:
            diagnostics.append(cell.error(f"there is no column '{name}' in a buffers file"))
        elif name in columns[:position]:
            diagnostics.append(cell.error(f"column '{name}' appears twice"))
    for name in REQUIRED:
        if name not in columns:
            behind = _Cell(path, number, len(columns) + 1)
            diagnostics.append(behind.error(f"column '{name}' is missing"))
    if diagnostics:
        *shown, last = first_of(diagnostics)
        raise CompileError([*shown, replace(last, help=_columns_help())])
    return columns


def _faults_of_rows(
    path: Path, columns: tuple[str, ...], lines: Sequence[tuple[int, list[str]]], buffers: list[Buffer]
) -> Iterator[Diagnostic]:
    """What is wrong, line by line; the buffers of the other lines go to `buffers`."""
    line_of_id: dict[str, int] = {}
    for number, row in lines:
        diagnostics: list[Diagnostic] = []
        if len(row) != len(columns):
            text = f"the line has {len(row)} values, the first line names {len(columns)} columns"
            yield _Cell(path, number, min(len(row), len(columns)) + 1).error(text)
            continue
        cells = {
            name: _Cell(path, number, position, text.strip())
            for position, (name, text) in enumerate(zip(columns, row, strict=True), 1)
        }
        identity = cells["id"]
        if not identity.text:
            diagnostics.append(identity.error("the id is empty"))
        elif identity.text in line_of_id:
            first = line_of_id[identity.text]
            diagnostics.append(identity.error(f"id '{identity.text}' stands in line {first} already"))
        line_of_id.setdefault(identity.text, number)
        buffer = _read_buffer(cells, diagnostics)
        if buffer is not None:
            buffers.append(buffer)
        yield from diagnostics


def _read_buffer(cells: dict[str, _Cell], diagnostics: list[Diagnostic]) -> Buffer | None:
    """One line's buffer, or None if something in it is wrong, which is then in `diagnostics`."""
    before = len(diagnostics)

    def integer(name: str, least: int) -> int:
        cell = cells[name]
        digits = cell.text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            diagnostics.append(cell.error(f"'{name}' is '{cell.text}', not an integer"))
            return least
        if len(digits) > 19 or not least <= int(cell.text) < LIMIT_BYTES:
            wanted = f"{least} .. 2^62 - 1" if least >= 0 else "-2^62 + 1 .. 2^62 - 1"
            diagnostics.append(cell.error(f"'{name}' is {cell.text}, not in {wanted}"))
            return least
        return int(cell.text)

    lower, upper = integer("lower", 1 - LIMIT_BYTES), integer("upper", 1 - LIMIT_BYTES)
    size = integer("size", 0)
    alignment, offset = 1, None
    if "alignment" in cells and cells["alignment"].text:
        alignment = integer("alignment", 1)
        if not is_power_of_two(alignment):
            diagnostics.append(cells["alignment"].error(f"'alignment' is {alignment}, not a power of two"))
    if "offset" in cells and cells["offset"].text:
        offset = integer("offset", 0)
    if len(diagnostics) == before and upper <= lower:
        diagnostics.append(cells["upper"].error(f"'upper' is {upper}, not above 'lower', which is {lower}"))
    if len(diagnostics) > before:
        return None
    return Buffer(cells["id"].text, size, ((lower, upper),), alignment, offset)
