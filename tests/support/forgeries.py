"""Ways to change a bundle's texts as a forger would: one statement, directive or line at a time, and its digest."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from support.digits_bundle import write_document

_HIDDEN = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])|(?<![\w.])\d+(?=u\b)|0x[0-9A-Fa-f]+")
_OTHER = {"==": "!=", "!=": "==", "<": "<=", ">": ">=", "&&": "||", "||": "&&", " + ": " - ", "<=": "<"}
_OPERATOR = re.compile(r"(?<![<>=!-])(?:==|!=|&&|\|\||<=|<|>)(?![<>=])| \+ ")


@dataclass(frozen=True, slots=True)
class Forgery:
    """One change of a text.

    Attributes:
        path: Of the file in the bundle.
        what: What was done, and to what.
        text: What the file says then.
    """

    path: str
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A statement, declaration or directive, from the first character to the one behind the last."""

    begin: int
    end: int
    depth: int


def forgeries(path: str, text: str, inserted: Sequence[str] = ()) -> Iterator[Forgery]:
    """Every change: each unit left out, twice, behind the next one, with another number or operator, or behind another.

    Args:
        path: Of the file.
        text: What it says.
        inserted: Statements that are put before each statement of a function.
    """
    is_c = path.endswith((".c", ".h"))
    units = _units_of_c(text) if is_c else _lines(text)
    following = {unit.begin: other for unit, other in pairwise(units) if other.depth == unit.depth}
    for unit in units:
        own = text[unit.begin : unit.end]
        front, back = text[: unit.begin], text[unit.end :]
        named = " ".join(own.split())[:60]
        yield Forgery(path, f"without '{named}'", front + back)
        yield Forgery(path, f"twice '{named}'", f"{front}{own}\n{own}{back}")
        other = following.get(unit.begin)
        if other is not None and other.begin >= unit.end:
            between, theirs = text[unit.end : other.begin], text[other.begin : other.end]
            if theirs != own:
                yield Forgery(path, f"swapped '{named}'", front + theirs + between + own + text[other.end :])
        inner = min((other.begin for other in units if unit.begin < other.begin < unit.end), default=unit.end)
        outer = text[unit.begin : inner]  # what is inside has its own turn
        shown = _HIDDEN.sub(lambda text: " " * len(text[0]), outer) if is_c else outer
        for found in _NUMBER.finditer(shown):
            more = str(int(found[0], 0) + 1)
            yield Forgery(path, f"{found[0]} is {more} in '{named}'", front + _put(own, found, more) + back)
        for found in _OPERATOR.finditer(shown) if is_c else ():
            other_one = _OTHER[found[0]]
            yield Forgery(
                path, f"{found[0]} is {other_one} in '{named}'", front + _put(own, found, other_one) + back
            )
        for statement in inserted if unit.depth and not own.lstrip().startswith("#") else ():
            yield Forgery(path, f"'{statement}' before '{named}'", f"{front}{statement}\n{own}{back}")


def forge(bundle: Path, forgery: Forgery) -> None:
    """Writes the text into the bundle, and its digest."""
    (bundle / forgery.path).write_text(forgery.text, encoding="utf-8")
    document = json.loads((bundle / "plan.json").read_text(encoding="utf-8"))
    document["files"][forgery.path] = hashlib.sha256(forgery.text.encode()).hexdigest()
    write_document(bundle, document, rehash=False)


def _put(text: str, found: re.Match[str], other: str) -> str:
    return text[: found.start()] + other + text[found.end() :]


def _lines(text: str) -> list[_Unit]:
    """Lines that say something."""
    found: list[_Unit] = []
    position = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and not line.lstrip().startswith(("#", "/*", "*")):
            found.append(_Unit(position, position + len(line), 0))
        position += len(line)
    return found


def _units_of_c(text: str) -> list[_Unit]:
    """Statements and declarations, those in blocks as well, and directives, in the order in which they begin."""
    blank = _HIDDEN.sub(lambda found: " " * len(found[0]), text)
    found = [_Unit(line.start(), line.end(), 0) for line in _DIRECTIVE.finditer(blank)]
    blank = _DIRECTIVE.sub(lambda line: " " * len(line[0]), blank)
    begins, parens = [-1], 0
    for position, character in enumerate(blank):
        if begins[-1] < 0 and not character.isspace() and character != "}":
            begins[-1] = position
        parens += (character in "([") - (character in ")]")
        depth = len(begins) - 1
        if character == "{" and not parens:
            begins.append(-1)
        elif character == "}" and not parens and depth:
            begins.pop()
            if re.match(r"\s*\w*;", blank[position + 1 :]):
                continue  # a value, or a structure
            if begins[-1] >= 0:
                found.append(_Unit(begins[-1], position + 1, depth - 1))
            begins[-1] = -1
        elif character == ";" and not parens and begins[-1] >= 0:
            found.append(_Unit(begins[-1], position + 1, depth))
            begins[-1] = -1
    return sorted(found, key=lambda unit: (unit.begin, -unit.end))
