"""A view as Markdown, for pull requests and pages of a repository: tables are tables, drawings are in code blocks."""

import re
from collections.abc import Iterable, Iterator

from bytewright.base.visible import visible
from bytewright.show.bars import bars
from bytewright.show.tracks import track_lines
from bytewright.show.view import Chart, Facts, Lanes, Section, Table, View

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&])")


def markdown_text(view: View) -> str:
    """The view as a text of GitHub's Markdown."""
    heading = [] if view.title is None else [f"## {_plain(view.title)}"]
    parts = [*heading, *("\n".join(_section(section)) for section in view.sections)]
    return "\n\n".join(part for part in parts if part)


def _plain(text: str) -> str:
    """A text in one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))


def _section(section: Section) -> Iterator[str]:
    match section:
        case Facts():
            yield from _facts(section)
        case Table() if section.is_shown:
            yield from _table(section)
        case Chart() if not section.is_picture:
            yield from _drawing(bars(section))
        case Lanes():
            yield from _drawing(track_lines(section))
        case _:
            pass


def _facts(group: Facts) -> Iterator[str]:
    if group.title is not None:
        yield f"**{_plain(group.title)}**\n"
    for fact in group.facts:
        for index, line in enumerate(fact.lines):
            head = f"{_plain(fact.head)}: " if fact.head and not index else ""
            yield f"{'  ' if index else ''}- {head}{_plain(line)}"


def _table(table: Table) -> Iterator[str]:
    yield f"**{_plain(table.title or '')}**\n"
    yield _row(column.heading or "" for column in table.headed)
    yield "|" + "|".join("---:" if column.is_number else "---" for column in table.headed) + "|"
    for body in table.bodies:
        yield from map(_row, table.texts(body))
    if table.num_hidden and table.hidden is not None:
        yield f"\n{_plain(table.hidden.format(table.num_hidden))}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _drawing(lines: Iterable[str]) -> Iterator[str]:
    """A code block; it is indented, so that no line of it can end it."""
    yield from (f"    {' '.join(line.splitlines())}".rstrip() for line in lines)
