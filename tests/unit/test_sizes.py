"""No room of the package grows unseen: `tests/sizes.txt` has the lines that each may have, and a change says so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "bytewright"
SIZES = ROOT / "tests" / "sizes.txt"
SOURCES = frozenset({".py", ".pyi", ".c", ".h", ".S", ".ld", ".toml"})


def rooms() -> tuple[str, ...]:
    """Those that docs/layout.md names: folders with a slash behind them, and files."""
    text = (ROOT / "docs" / "layout.md").read_text(encoding="utf-8").partition("Around the package")[0]
    return tuple(re.findall(r"^\| `([\w/.]+)` \|", text, re.MULTILINE))


def room_of(file: str, names: Iterable[str]) -> str:
    """The innermost room that a file is in; `/` for the few beside all rooms."""
    holding = [name for name in names if file == name or (name.endswith("/") and file.startswith(name))]
    return max(holding, key=len, default="/")


def lines_by_room() -> Mapping[str, int]:
    """Lines of sources, tests and data not among them."""
    names, found = rooms(), Counter[str]()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in SOURCES:
            file = path.relative_to(PACKAGE).as_posix()
            found[room_of(file, names)] += path.read_bytes().count(b"\n")
    return found


def admitted() -> Mapping[str, int]:
    rows = (line.split() for line in SIZES.read_text(encoding="utf-8").splitlines() if line[:1] != "#")
    return {room: int(lines) for lines, room in rows}


def too_large(lines: Mapping[str, int], most: Mapping[str, int]) -> list[str]:
    """The rows of the file as they would have to be for rooms that have grown."""
    return [f"{count:6} {room}" for room, count in sorted(lines.items()) if count > most.get(room, 0)]


def test_no_room_is_larger_than_its_row_says() -> None:
    assert too_large(lines_by_room(), admitted()) == [], "smaller, or these rows in tests/sizes.txt, and why"


def test_every_row_is_of_a_room() -> None:
    assert sorted(admitted()) == sorted({"/", *rooms()})


def test_a_room_that_grows_by_a_line_is_found() -> None:
    lines = dict(lines_by_room())
    most = dict(lines)
    lines["ir/"] += 1
    assert too_large(lines, most) == [f"{lines['ir/']:6} ir/"]


def test_a_file_counts_for_its_innermost_room() -> None:
    names = ("lower/", "lower/isa/", "model.py")
    files = ("lower/isa/mve/lanes.py", "lower/fuse.py", "model.py", "__init__.py")
    assert [room_of(file, names) for file in files] == ["lower/isa/", "lower/", "model.py", "/"]
