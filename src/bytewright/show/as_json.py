"""A view as JSON: what has a key."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from bytewright.show.view import ABSENT, Body, Cell, Column, Facts, Table, View


def document_of(view: View) -> dict[str, Any]:
    """The view as an object of JSON."""
    document: dict[str, Any] = {}
    for section in view.sections:
        match section:
            case Facts():
                document |= _of_facts(section)
            case Table():
                document |= {body.key: _rows(section, body) for body in section.bodies if body.key}
            case _:
                pass  # a picture: its figures are in tables
    return document


def json_text(view: View) -> str:
    """The view as a text of JSON."""
    return json.dumps(document_of(view), indent=1)


def _of_facts(group: Facts) -> dict[str, Any]:
    said = [_plain(fact.data) for fact in group.facts if fact.data is not ABSENT]
    if group.key is not None:
        return {group.key: said}
    return {key: value for members in said for key, value in members.items()}


def _rows(table: Table, body: Body) -> Any:
    if table.by_first:
        return {row[0]: _members(table.columns[1:], row[1:]) for row in body.rows}
    return [_members(table.columns, row) for row in body.rows]


def _members(columns: Iterable[Column], row: Iterable[Cell]) -> dict[str, Any]:
    return {
        column.key: _plain(cell)
        for column, cell in zip(columns, row, strict=True)
        if column.key is not None and cell is not ABSENT
    }


def _plain(value: Cell) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, tuple) else value
