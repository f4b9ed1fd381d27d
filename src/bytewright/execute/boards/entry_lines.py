"""Which instructions of an image belong to which step: from the C of the entry and the lines that they are of.

The entry has its steps behind a macro that stands for nothing, so the image that is measured is that of a plain run:
debug information (`-g1`) changes no instruction. Which step runs is told by the last instruction at a line of one.
Functions beside those of the run, such as the one that hands a job over, belong to whichever step calls them.
"""

import re
from enum import IntEnum
from pathlib import Path

from bytewright.elf.lines import instructions_of_file
from bytewright.execute.description import Bundle
from bytewright.execute.tools import is_clang
from bytewright.record.names import by_entry
from bytewright.record.plan import Plan

PIECES_FILE = "steps.txt"
# A compiler may make one call of those at the ends of two arms of a branch, where no line can tell them apart.
_APART_BY_GCC = ("-fno-crossjumping", "-fno-tree-tail-merge")
_APART_BY_CLANG = tuple(
    word
    for flag in ("-enable-tail-merge=false", "-sink-common-insts=false", "-disable-ifcvt-diamond")
    for word in ("-mllvm", flag)
)


class Where(IntEnum):
    """What an instruction belongs to that is at no line of a step; counter.c knows the numbers."""

    IN_NO_STEP = -1
    WHEREVER_ITS_CALLER_IS = -2


def flags_of_entry(plan: Plan, compiler: str | None) -> tuple[str, ...]:
    """A compiler's flags for the entry's file alone; without link-time optimisation, or calls would be inlined."""
    apart = _APART_BY_CLANG if compiler is not None and is_clang(compiler) else _APART_BY_GCC
    return ("-g1", "-fno-lto", *(apart if plan.branches else ()))


def write_pieces(folder: Path, bundle: Bundle) -> None:
    """Writes the table for the counter beside image.elf."""
    source = bundle.directory / bundle.names.entry_source
    steps = steps_of_lines(source.read_text(encoding="utf-8"), bundle)
    keeps = int(Where.WHEREVER_ITS_CALLER_IS)
    rows: list[str] = []
    for each in instructions_of_file(folder / "image.elf", source.name):
        # Of a function that was inlined, the innermost caller that is at a line of a step.
        found = next((steps[line] for line in each.lines if steps[line] != keeps), keeps)
        rows.append(f"{each.first} {each.end} {found}\n")
    (folder / PIECES_FILE).write_text("".join(rows), encoding="utf-8")


def steps_of_lines(text: str, bundle: Bundle) -> list[int]:
    """For each line of the entry's file, the first one at index 1, the step that it is of, or a `Where`."""
    names, num_steps = bundle.names, len(bundle.plan.steps)
    views = (each for _, each in by_entry(bundle.plan, names))
    own = [name for each in views for name in (*each.functions.values(), *each.step_functions)]
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
