"""The examples of docs/planner.md run, and what they assert holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bytewright.plan import solve as solve_module

DOCUMENT = Path(__file__).parents[3] / "docs" / "planner.md"
EXAMPLES = re.findall(
    r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_of_the_document_run(number, monkeypatch):
    monkeypatch.setattr(solve_module, "SOLVERS", dict(solve_module.SOLVERS))
    assert "assert" in EXAMPLES[number]
    exec(compile(EXAMPLES[number], f"{DOCUMENT.name}, example {number}", "exec"), {})


def test_every_file_of_the_planner_is_in_its_table():
    folder = Path(solve_module.__file__).parent
    text = DOCUMENT.read_text(encoding="utf-8")
    files = {path.name for path in folder.glob("*") if path.suffix in (".py", ".c")} - {"__init__.py"}
    assert {name for name in files if f"`{name}`" not in text} == set()
