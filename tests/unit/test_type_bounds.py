"""The range of an element type stands in `DType.bounds` and in `ops/arithmetic`, and nowhere else in the sources.

A number such as 127 that means the end of int8 makes a kernel or a converter one of int8 alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "bytewright"
# Parts that know what tensors hold.
PARTS = ("frontends", "graph", "ir", "kernels", "lower", "ops")
ENDS = {-32768, -128, 127, 255, 32767}
# The arithmetic itself, and records of instructions, whose texts and operands are those of a machine.
FREE = ("ops/arithmetic/", "lower/isa/", "kernels/isa/")
# Numbers that end no type, by file.
OTHERS = {
    "graph/bound/read_functions.py": {255},  # inputs that a function may have
}


def ends_of_types(source: str) -> Iterator[tuple[int, int]]:
    """Lines and numbers of a text that are ends of types; digits in strings are none."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))) if -number in ENDS:
                yield node.lineno, -number
            case ast.Constant(value=int(number)) if number in ENDS:
                yield node.lineno, number
            case _:
                pass


def files() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] in PARTS
        and not path.relative_to(PACKAGE).as_posix().startswith(FREE)
    ]


def test_no_file_has_the_range_of_a_type() -> None:
    faults = [
        f"{path.relative_to(PACKAGE)}:{line}: {number}"
        for path in files()
        for line, number in ends_of_types(path.read_text(encoding="utf-8"))
        if number not in OTHERS.get(path.relative_to(PACKAGE).as_posix(), ())
    ]
    assert faults == []


@pytest.mark.parametrize("source", ["x = -128", "f(0, 127)", "y = x & 255", "z = 32767"])
def test_the_rule_finds_what_it_forbids(source: str) -> None:
    assert list(ends_of_types(source))


@pytest.mark.parametrize("source", ["x = '127'", "x = 1 << 7", "x = 12.7", "x = 128"])
def test_the_rule_lets_others_be(source: str) -> None:
    assert not list(ends_of_types(source))
