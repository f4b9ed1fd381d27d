"""C that says the same in another layout: with other white space and comments, or as another generator writes it."""

from __future__ import annotations

import random
import re

from pycparser.c_generator import CGenerator
from pycparser.c_parser import CParser

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\w+(?:\.\w*)?|->|\+\+|--|&&|\|\||<<|>>|[-+*/%<>=!&|]=|\S')
_HASH = re.compile(r"Plan [0-9a-f]{64}\.")
_SPACES = ("  ", "\t", "\n", "\n\n   ", " /* a note; with { */ ", " // and another (\n")
_STANDARD = (
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("bool", "size_t", "uintptr_t"),
)


def _parts(text: str) -> tuple[str, list[tuple[bool, str]]]:
    """The comment with the plan's hash, and each line of code: whether it is the preprocessor's, and its text."""
    found = _HASH.search(text)
    code = _COMMENT.sub("", text).replace("\\\n", " ")
    return "" if found is None else f"/* {found[0]} */\n", [
        (line.startswith("#"), line.strip()) for line in code.splitlines() if line.strip()
    ]


def scattered(text: str, seed: int = 0) -> str:
    """The text with white space and comments drawn anew between all that C tells apart."""
    draw = random.Random(seed)
    front, lines = _parts(text)
    pieces = [front.replace("Plan ", "Plan\n *   ")]
    for is_directive, line in lines:
        if is_directive:
            word, _, rest = line[1:].partition(" ")
            pieces.append(f"\n #  {word}   {rest}\n")
            continue
        for token in _TOKEN.findall(line):
            pieces += [token, draw.choice(_SPACES) if draw.random() < 0.3 else " "]
    return "".join(pieces)


def printed(text: str, types: tuple[str, ...]) -> str:
    """The text as pycparser's generator prints it: other breaks, other parentheses; `types` are those of headers."""
    front, lines = _parts(text)
    directives = "\n".join(line for is_directive, line in lines if is_directive)
    known = [f"typedef int {name};" for name in (*_STANDARD, *types)]
    code = "\n".join(line for is_directive, line in lines if not is_directive)
    tree = CParser().parse("\n".join([*known, code]))
    tree.ext = tree.ext[len(known) :]
    return f"{front}{directives}\n{CGenerator().visit(tree)}"
