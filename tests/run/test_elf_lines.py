"""Lines of instructions, held against addr2line of binutils."""

from __future__ import annotations

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from bytewright.elf.image import loaded_bytes, read_image
from bytewright.elf.lines import instructions_of_file

pytestmark = pytest.mark.run

HEADER = "static inline int twice(int x)\n{\n    return 2 * x + (x >> 3);\n}\n"
SOURCE = """\
#include "twice.h"
volatile int seen;
static inline int inner(int x)
{
    seen = x;
    return twice(x) ^ seen;
}
static inline int middle(int x)
{
    int sum = 0;
    for (int turn = 0; turn < x; ++turn) {
        sum += inner(turn);
    }
    return sum;
}
__attribute__((used)) static int left_out(int x)
{
    return inner(x);
}
int outer(int x)
{
    if (x > 3) {
        return middle(x) + inner(1);
    }
    return inner(x);
}
"""
# As `addr2line -a -i` prints a place.
PLACE = re.compile(r"(?P<path>.+):(?P<line>\d+)(?: \(discriminator \d+\))?")


def build(folder: Path, compiler: str, dwarf: int) -> Path:
    sources = folder / "a folder"
    sources.mkdir()
    (sources / "twice.h").write_text(HEADER)
    (sources / "loop.c").write_text(SOURCE)
    (sources / "main.c").write_text(
        "int outer(int);\nint main(int count, char **words)\n{\n    (void)words;\n    return outer(count);\n}\n"
    )
    flags = ["-O2", "-g1", f"-gdwarf-{dwarf}", "-ffunction-sections", "-Wl,--gc-sections"]
    files = ["a folder/loop.c", "a folder/main.c"]
    subprocess.run([compiler, *flags, *files, "-o", "program"], cwd=folder, check=True, timeout=60)
    return folder / "program"


def reference(program: Path, addresses: list[int], file: str) -> dict[int, tuple[int, ...]]:
    """The lines of a file at each address, the innermost function's first."""
    command = ["addr2line", "-a", "-i", "-e", str(program), *map(hex, addresses)]
    text = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout
    found: dict[int, tuple[int, ...]] = {}
    for line in text.splitlines():
        place = PLACE.fullmatch(line)
        if line.startswith("0x"):
            found[address := int(line, 16)] = ()
        elif place is not None and Path(place["path"]).name == file and int(place["line"]):
            found[address] = (*found[address], int(place["line"]))
    return found


@pytest.mark.parametrize("dwarf", [4, 5])
def test_lines_are_those_of_addr2line(tmp_path: Path, dwarf: int) -> None:
    program = build(tmp_path, "gcc", dwarf)
    found = {each.first: each.lines for each in instructions_of_file(program, "loop.c")}
    assert found == reference(program, list(found), "loop.c")
    assert any(len(lines) > 2 for lines in found.values())


def test_lines_do_not_depend_on_how_they_are_written(tmp_path: Path) -> None:
    """Of what clang writes as DWARF 5, addr2line leaves out callers; of its DWARF 4 it does not."""
    versions: list[list[tuple[int, ...]]] = []
    for dwarf in (4, 5):
        folder = tmp_path / str(dwarf)
        folder.mkdir()
        program = build(folder, "clang", dwarf)
        instructions = instructions_of_file(program, "loop.c")
        versions.append([each.lines for each in instructions])
        if dwarf == 4:
            expected = reference(program, [each.first for each in instructions], "loop.c")
            assert {each.first: each.lines for each in instructions} == expected
    assert versions[0] == versions[1]


def test_instructions_are_those_of_the_functions_that_were_linked(tmp_path: Path) -> None:
    program = build(tmp_path, "gcc", 5)
    (outer,) = (symbol for symbol in read_image(program).symbols if symbol.name == "outer")
    found = instructions_of_file(program, "loop.c")
    assert found[0].first == outer.address
    assert found[-1].end == outer.address + outer.size_bytes
    assert all(before.end == after.first for before, after in pairwise(found))
    assert instructions_of_file(program, "elsewhere.c") == []


def test_the_bytes_of_an_object_are_those_that_size_prints(tmp_path: Path) -> None:
    text = 'int zero[100], data[7] = {1}; const char text[] = "abc"; int f(int x) { return x * data[x]; }\n'
    (tmp_path / "a.c").write_text(text)
    subprocess.run(["gcc", "-c", "-O2", "-g", "a.c"], cwd=tmp_path, check=True, timeout=60)
    command = ["size", "a.o"]
    printed = subprocess.run(command, cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True)
    code, data, _ = map(int, printed.stdout.splitlines()[1].split()[:3])
    assert loaded_bytes(tmp_path / "a.o") == code + data


def test_code_is_what_nm_says_is_code(tmp_path: Path) -> None:
    program = build(tmp_path, "gcc", 5)
    command = ["nm", "--defined-only", str(program)]
    printed = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout
    rows = [(int(address, 16), kind, name) for address, kind, name in map(str.split, printed.splitlines())]
    weak = {name for _, kind, name in rows if kind in "wW"}  # of which nm does not say where they are
    code = {(address, name) for address, kind, name in rows if kind in "tT"}
    found = {(symbol.address, symbol.name) for symbol in read_image(program).symbols if symbol.is_code}
    assert code == {(address, name) for address, name in found if name not in weak}
