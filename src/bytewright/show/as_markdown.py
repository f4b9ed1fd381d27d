"""A view as Markdown, for papers that are kept beside a program: facts as lists, and tables; no pictures.

Texts come from files of others: what Markdown or HTML would read in them is escaped.
"""

import re
from collections.abc import Iterator

from bytewright.show.view import Facts, Table, View

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown_text(view: View) -> str:
    """The view."""
    lines = [f"# {_escaped(view.title)}"] if view.title is not None else []
    for section in view.sections:
        match section:
            case Facts():
                lines += _facts(section)
            case Table() if section.is_shown:
                lines += _table(section)
            case _:
                pass
    return "\n".join(lines)


def _facts(group: Facts) -> Iterator[str]:
    shown = [fact for fact in group.facts if fact.lines]
    if not shown:
        return
    if group.title is not None:
        yield from ("", f"## {_escaped(group.title)}")
    yield ""
    for fact in shown:
        head = f"{_escaped(fact.head)}: " if fact.head else ""
        for index, line in enumerate(fact.lines):
            yield f"{'  ' if index else ''}- {'' if index else head}{_escaped(line)}"


def _table(table: Table) -> Iterator[str]:
    yield from ("", f"## {_escaped(table.title)}", "")
    yield f"| {' | '.join(_escaped(column.heading) for column in table.headed)} |"
    yield f"|{'|'.join('--:' if column.is_number else '---' for column in table.headed)}|"
    for body in table.bodies:
        for row in table.texts(body):
            yield f"| {' | '.join(map(_escaped, row))} |"
    if table.hidden is not None and table.num_hidden:
        yield from ("", _escaped(table.hidden.format(table.num_hidden)))


def _escaped(text: str | None) -> str:
    """The text in one line, with nothing in it that means something."""
    return _SPECIAL.sub(r"\\\1", " ".join((text or "").split()))
