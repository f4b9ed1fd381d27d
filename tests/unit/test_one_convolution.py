"""docs/one-convolution.md names functions that exist, and that a compile calls in the order of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from support.digits_bundle import DIGITS

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "bytewright"
_ROW = re.compile(r"^\| .+ \| `([\w/]+\.py)` \| `([\w.]+)` \|$", re.MULTILINE)
# In a process of its own: what is computed once in a process was computed by other tests.
_WATCHED_COMPILE = """\
import sys
from pathlib import Path
from bytewright.compiler.pipeline import compile_model
from bytewright.target.registry import load_target

model, front = sys.argv[1:]
found = {}

def watch(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(front):
        found.setdefault((code.co_filename.removeprefix(front), code.co_qualname))

target = load_target("mps3-an547")
sys.setprofile(watch)
compile_model(Path(model), target)
sys.setprofile(None)
for file, name in found:
    print(file, name)
"""


def steps() -> list[tuple[str, str]]:
    """File and function of each row of the page."""
    return _ROW.findall((ROOT / "docs" / "one-convolution.md").read_text(encoding="utf-8"))


@cache
def first_calls() -> dict[tuple[str, str], int]:
    """Each function of the package that the compile calls, by file and name, with its place in the order of calls."""
    done = subprocess.run(
        [sys.executable, "-c", _WATCHED_COMPILE, str(DIGITS), f"{PACKAGE}/"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    calls = [line.split() for line in done.stdout.splitlines()]
    return {(file, name): number for number, (file, name) in enumerate(calls)}


def test_the_page_has_the_whole_way() -> None:
    rooms = [file.partition("/")[0] for file, _ in steps()]
    stages = [
        "frontends",
        "place",
        "lower",
        "scopes",
        "naming",
        "storage",
        "plan",
        "record",
        "codegen",
        "bundle",
    ]
    assert [room for room in dict.fromkeys(rooms) if room in stages] == stages


@pytest.mark.parametrize(("file", "function"), steps())
def test_the_compile_calls_each_function(file: str, function: str) -> None:
    assert (file, function) in first_calls(), sorted(name for own, name in first_calls() if own == file)


def test_functions_are_called_in_the_order_of_the_page() -> None:
    assert sorted(steps(), key=first_calls().__getitem__) == steps()
