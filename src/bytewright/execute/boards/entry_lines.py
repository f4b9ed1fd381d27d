"""Which instructions of an image belong to which step: from the C of the entry and the lines that they are of.

The entry has its steps behind a macro that stands for nothing, so the image that is measured is that of a plain run:
debug information (`-g1`) changes no instruction. Which step runs is told by the last instruction at a line of one.
Functions beside those of the run, such as the one that hands a job over, belong to whichever step calls them.
"""

import re
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

from bytewright.execute.description import Bundle
from bytewright.execute.tools import compile_c, find_cross_tool
from bytewright.record.names import RUN_ROW
from bytewright.record.plan import Plan
from bytewright.target.isa.isa import Isa

PIECES_FILE = "steps.txt"
# A compiler may make one call of those at the ends of two arms of a branch, where no line can tell them apart.
_APART = ("-fno-crossjumping", "-fno-tree-tail-merge")
_FRAME = re.compile(r"^(?P<path>.+):(?P<line>\d+)(?: \(discriminator \d+\))?$")
_ROW = re.compile(r"^(?P<file>\S.*?)\s+(?P<line>\d+|-)\s+(?P<address>0x[0-9a-f]+|0)\b")


class Where(IntEnum):
    """What an instruction belongs to that is at no line of a step; counter.c knows the numbers."""

    IN_NO_STEP = -1
    WHEREVER_ITS_CALLER_IS = -2


def flags_of_entry(plan: Plan) -> tuple[str, ...]:
    """Compiler flags for the entry's file alone; without link-time optimisation, or calls would be inlined."""
    return ("-g1", "-fno-lto", *(_APART if plan.branches else ()))


def write_pieces(folder: Path, bundle: Bundle, isa: Isa) -> None:
    """Writes the table for the counter beside image.elf.

    Raises:
        CompileError: BW501 or BW502 for objdump or addr2line.
    """
    source = bundle.directory / bundle.names.entry_source
    steps = steps_of_lines(source.read_text(encoding="utf-8"), bundle)
    objdump, addr2line = find_cross_tool(isa, "objdump"), find_cross_tool(isa, "addr2line")
    command = [objdump, "--dwarf=decodedline", "--wide", "image.elf"]
    intervals = intervals_of(compile_c(command, directory=folder, what=objdump), source.name)
    (folder / "addresses.txt").write_text(
        "".join(f"{first:#x}\n" for first, _ in intervals), encoding="utf-8"
    )
    command = [addr2line, "-a", "-i", "-e", "image.elf", "@addresses.txt"]
    lines = lines_of_addresses(compile_c(command, directory=folder, what=addr2line), source.name)
    keeps = int(Where.WHEREVER_ITS_CALLER_IS)
    # Of a function that was inlined, the innermost caller that is at a line of a step.
    found = [[steps[line] for line in lines.get(first, ()) if steps[line] != keeps] for first, _ in intervals]
    rows = [
        f"{first} {end} {of[0] if of else keeps}\n" for (first, end), of in zip(intervals, found, strict=True)
    ]
    (folder / PIECES_FILE).write_text("".join(rows), encoding="utf-8")


def steps_of_lines(text: str, bundle: Bundle) -> list[int]:
    """For each line of the entry's file, the first one at index 1, the step that it is of, or a `Where`."""
    names, num_steps = bundle.names, len(bundle.plan.steps)
    own = (names.run, names.steps, names.begin, names.push_rows, names.finish, RUN_ROW)
    head = re.compile(rf"^\w[^;=]*\b(?:{'|'.join(dict.fromkeys(own))})\(")
    macro = re.compile(rf"^\s+{re.escape(names.step)}\((\d+)\b")
    found, where = [int(Where.WHEREVER_ITS_CALLER_IS)], int(Where.WHEREVER_ITS_CALLER_IS)
    for line in text.splitlines():
        if head.match(line):
            where = Where.IN_NO_STEP
        elif match := macro.match(line):
            number = int(match[1])
            where = number if number < num_steps else Where.IN_NO_STEP
        elif line.startswith("}"):  # what ends a function belongs to none of its steps
            found.append(min(where, Where.IN_NO_STEP))
            where = Where.WHEREVER_ITS_CALLER_IS
            continue
        found.append(where)
    return found


def intervals_of(table: str, file: str) -> list[tuple[int, int]]:
    """Where the instructions of a file are that are of one line each: from an address to before another, in order.

    Args:
        table: What objdump prints of the line table.
        file: The name of the file, without its folder.
    """
    intervals: list[tuple[int, int]] = []
    rows: list[tuple[str, int]] = []
    for text in table.splitlines():
        if match := _ROW.match(text):
            rows.append((match["file"], int(match["address"], 16)))
            if match["line"] == "-":  # the end of a run; one that the linker left out begins at 0
                if rows[0][1] != 0 and any(name == file for name, _ in rows):
                    addresses = [address for _, address in rows]
                    intervals += [(first, end) for first, end in pairwise(addresses) if first < end]
                rows = []
    return sorted(intervals)


def lines_of_addresses(frames: str, file: str) -> dict[int, list[int]]:
    """The lines of a file that an instruction is of, that of an inlined function before that of its caller.

    Args:
        frames: What addr2line prints with -a and -i.
        file: The name of the file, without its folder.
    """
    found: dict[int, list[int]] = {}
    lines: list[int] = []
    for text in frames.splitlines():
        if text.startswith("0x"):
            lines = found.setdefault(int(text, 16), [])
        elif (match := _FRAME.match(text)) and Path(match["path"]).name == file:
            lines.append(int(match["line"]))
    return found
