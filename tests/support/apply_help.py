"""Follows the help lines of errors mechanically: the rule of docs/errors.md, and nothing else.

Options of a help line are added to those of the command that failed. What the error points at goes, and so does what
the line says to leave out; an option for the same pool or pattern makes room; a list of pools makes room as a whole. A
line for the target file is written into it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

LISTS = ("--workspace", "--parameters")
KEYED = ("--resize", "--provider", "--pin")
FLAGS = ("--use-backend-alloc-workspace",)
NO_OPTION = "no option helps: "
WITHOUT = "leave out "
IN_TARGET_FILE = "in the target file: "

Option = tuple[str, str | None]
_LINE = re.compile(
    r"(?:\[\[(?P<role>\w+)\]\] (?P<pool>\S+) |\[(?P<table>[^\[\]]+)\] )?"
    r"(?P<key>\S+) = (?P<value>\[[^\]]*\]|\S+?)(?:, (?=\[)|$)"
)


def help_lines(text: str) -> list[str]:
    """Every help line of an error text, each once, without the word."""
    lines = [line.removeprefix("help: ") for line in text.splitlines() if line.startswith("help: ")]
    return list(dict.fromkeys(lines))


def pointed_at(text: str) -> list[str]:
    """The options that the errors point at, as words."""
    places = [line.removeprefix("  --> ") for line in text.splitlines() if line.startswith("  --> --")]
    return [word for place in places for word in shlex.split(place)]


def with_help(arguments: Iterable[str], text: str) -> list[str]:
    """The options of a command that failed, as its error text says that they should be."""
    lines = help_lines(text)
    assert lines, "no help"
    given = parsed(arguments)
    if lines[0].startswith(WITHOUT):
        gone, _, rest = lines[0].removeprefix(WITHOUT).partition(", and add ")
        given = [option for option in given if option not in parsed(shlex.split(gone))]
        lines = [rest] if rest else []
    assert all(line.startswith("--") for line in lines), f"no list of options: {lines}"
    advised = [option for line in lines for option in parsed(shlex.split(line))]
    gone = {_key(option) for option in (*advised, *parsed(pointed_at(text)))}
    kept = [option for option in given if _key(option) not in gone]
    return [word for name, value in (*kept, *advised) for word in (name, *([] if value is None else [value]))]


def parsed(arguments: Iterable[str]) -> list[Option]:
    """Words as options with their values."""
    words = list(arguments)
    options: list[Option] = []
    while words:
        name = words.pop(0)
        assert name.startswith("--"), f"{name!r} is not an option"
        is_flag = name.replace("--no-", "--") in FLAGS
        options.append((name, None if is_flag or not words or words[0].startswith("--") else words.pop(0)))
    return options


def _key(option: Option) -> tuple[str, str]:
    """Options of one key take each other's place."""
    name, value = option
    if name in KEYED and value is not None:
        return name, value.rpartition("=")[0]
    return name.replace("--no-", "--"), ""


def with_target_lines(content: str, text: str) -> str:
    """A target file, changed as an error text says."""
    (line,) = help_lines(text)
    assert line.startswith(IN_TARGET_FILE), f"nothing for the target file: {line!r}"
    rest = line.removeprefix(IN_TARGET_FILE)
    edits = list(_LINE.finditer(rest))
    assert "".join(edit[0] for edit in edits) == rest, f"not of the form [table] key = value: {rest!r}"
    for edit in edits:
        content = _edited(content, edit)
    return content


def _edited(content: str, edit: re.Match[str]) -> str:
    """The file with one key of one table set, in place of the line that it has or as a new one."""
    lines = content.splitlines()
    begin = 0
    if edit["table"] is not None:
        begin = lines.index(f"[{edit['table']}]") + 1
    elif edit["role"] is not None:
        heads = [index for index, line in enumerate(lines) if line == f"[[{edit['role']}]]"]
        begin = next(i for i in heads if f'name = "{edit["pool"]}"' in lines[i : _end(lines, i + 1)]) + 1
    key, value = edit["key"], edit["value"]
    own = [i for i in range(begin, _end(lines, begin)) if lines[i].partition("=")[0].strip() == key]
    lines[own[0] if own else begin : own[0] + 1 if own else begin] = [f"{key} = {value}"]
    return "\n".join(lines) + "\n"


def _end(lines: list[str], begin: int) -> int:
    return next((i for i in range(begin, len(lines)) if lines[i].startswith("[")), len(lines))
