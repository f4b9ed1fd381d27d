"""docs/python.md: its examples, in order, in one session, with the results that it shows."""

import doctest
import inspect
import re
from pathlib import Path
from typing import get_type_hints

import pytest

import bytewright
from bytewright.options import DECLARATIONS, Arguments

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
OPTIONS = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_examples_give_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    session = "\n".join(re.findall(r"```pycon\n(.*?)```", DOCUMENT, re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(session, {}, "docs/python.md", "docs/python.md", 0)
    assert len(examples.examples) > 10
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.DocTestRunner(optionflags=flags).run(examples, out=report.append)
    assert result.failed == 0, "".join(report)


def test_every_argument_is_documented() -> None:
    """Here, or as the option of the command line that it is."""
    for name in inspect.signature(bytewright.compile).parameters:
        assert name in ("model", "options") or f"`{name}`" in DOCUMENT, name
    for name in get_type_hints(Arguments):
        assert f"`{name}`" in DOCUMENT or re.search(rf"^\| `--{name.replace('_', '-')}[ `]", OPTIONS, re.M), (
            name
        )


def test_the_arguments_are_the_options() -> None:
    assert sorted(get_type_hints(Arguments)) == sorted(declaration.name for declaration in DECLARATIONS)
