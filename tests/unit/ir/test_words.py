"""The words of IR text are in one table: printer and parser have no others, and docs/ir.md has them all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bytewright.ir.text.words import Word

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted((ROOT / "src" / "bytewright" / "ir" / "text").glob("*.py"))
_ALONE = re.compile(r"[^\w']*([a-z_]+)[^\w']*")


def spelled(source: str) -> Iterator[str]:
    """Words of the table that a text spells itself, in literals of nothing else but marks."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = _ALONE.fullmatch(node.value)
            if found is not None and found[1] in {word.value for word in Word}:
                yield f"{node.lineno}: {node.value!r}"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name != "words.py"], ids=lambda path: path.name
)
def test_printer_and_parser_spell_no_word_themselves(path: Path) -> None:
    assert list(spelled(path.read_text(encoding="utf-8"))) == []


def test_the_rule_finds_a_word_in_what_is_printed_and_in_what_is_read() -> None:
    source = "x = f'allocate {buffer}'\nreader.accept('align=')\n"
    assert list(spelled(source)) == ["1: 'allocate '", "2: 'align='"]


@pytest.mark.parametrize("word", Word)
def test_the_document_has_every_word(word: Word) -> None:
    text = (ROOT / "docs" / "ir.md").read_text(encoding="utf-8")
    assert re.search(rf"(?<![\w-]){word}(?![\w-])", text)
