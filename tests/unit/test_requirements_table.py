"""docs/requirements.md against the tests: a requirement holds exactly if tests that carry its id exist.

The third column of the table is computed from the names of the test functions in tests/requirements
(`test_s7_kernel_scratch_is_a_local_array` is a test of S7); `make update-golden` writes it anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "requirements.md"
NUM_REQUIREMENTS = {"S": 24, "P": 12, "U": 8, "D": 12, "C": 7, "L": 4, "K": 4}
IDS = tuple(f"{group}{number + 1}" for group, num in NUM_REQUIREMENTS.items() for number in range(num))
AHEAD = "ahead"
_ROW = re.compile(r"^\| ([A-Z]\d+) \| (.+) \| ([^|]*) \|$", re.MULTILINE)


def ids_of_tests(folder: Path) -> dict[str, list[str]]:
    """The ids that test functions carry, each with the functions' names in order."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = node.name if isinstance(node, ast.FunctionDef) else ""
            if match := re.match(r"test_([a-z]\d+)_", name):
                found.setdefault(match[1].upper(), []).append(name)
    return found


def with_status(document: str, tests: dict[str, list[str]]) -> str:
    """The document with its third column as the tests say."""

    def row(match: re.Match[str]) -> str:
        names = ", ".join(f"`{name}`" for name in tests.get(match[1], []))
        return f"| {match[1]} | {match[2]} | {names or AHEAD} |"

    return _ROW.sub(row, document)


def test_every_requirement_has_one_row() -> None:
    rows = [match[1] for match in _ROW.finditer(DOCUMENT.read_text(encoding="utf-8"))]
    assert rows == list(IDS)


def test_no_test_carries_an_id_that_does_not_exist() -> None:
    assert set(ids_of_tests(ROOT / "tests" / "requirements")) - set(IDS) == set()


def test_the_table_says_what_the_tests_say(update_golden: bool) -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    expected = with_status(document, ids_of_tests(ROOT / "tests" / "requirements"))
    if update_golden:
        DOCUMENT.write_text(expected, encoding="utf-8")
    else:
        assert document == expected, "write it anew with make update-golden"


def test_the_status_follows_the_names_of_the_functions(tmp_path: Path) -> None:
    source = (
        "def test_s1_holds(): ...\nclass TestMore:\n    def test_s1_also(self): ...\ndef test_other(): ...\n"
    )
    (tmp_path / "test_storage.py").write_text(source, encoding="utf-8")
    tests = ids_of_tests(tmp_path)
    assert tests == {"S1": ["test_s1_holds", "test_s1_also"]}
    assert with_status("| S1 | a | ahead |\n| S2 | b | `old` |\n", tests) == (
        "| S1 | a | `test_s1_holds`, `test_s1_also` |\n| S2 | b | ahead |\n"
    )
