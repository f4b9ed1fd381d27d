"""What a command says, as frozen values. Whoever makes a view knows no format, and a writer knows nothing but views.

A column, a fact or a group has a heading or lines for people, a key or data for programs, or both. What has no key is
for people alone, what has no heading is for programs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeAlias, TypeVar, cast

from bytewright.base.frozen_mapping import FrozenMapping

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | FrozenMapping[str, Value] | None"
"""What JSON can say, and nobody can change."""
_Record = TypeVar("_Record")


class Absent(Enum):
    """What stands in a cell that its row does not have."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
Cell: TypeAlias = "Value | Absent"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        heading: None for programs alone.
        key: None for people alone.
        is_number: Numbers are aligned to the right.
        joint: What stands between the members of a cell that has several.
    """

    heading: str | None
    key: str | None = None
    is_number: bool = False
    joint: str = " + "


@dataclass(frozen=True, slots=True)
class Body:
    """Rows of a table that are a list of their own for programs; None for people alone."""

    key: str | None
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells. People are shown no table without rows.

    Attributes:
        title: None for programs alone.
        bodies: The last of several is set apart, as a total is.
        none: What people read where a cell is None.
        by_first: Programs are given an object of rows by their first cells, in place of a list.
        most_rows: How many people are shown; None for all.
        hidden: What people read below, of how many rows are not shown (`{}`).
    """

    title: str | None
    columns: tuple[Column, ...]
    bodies: tuple[Body, ...]
    none: str = "none"
    by_first: bool = False
    most_rows: int | None = None
    hidden: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether there is anything in it for people."""
        return self.title is not None and any(body.rows for body in self.bodies)

    @property
    def headed(self) -> tuple[Column, ...]:
        """The columns for people."""
        return tuple(column for column in self.columns if column.heading is not None)

    @property
    def num_hidden(self) -> int:
        """Rows that people are not shown."""
        return sum(len(body.rows) - len(body.rows[: self.most_rows]) for body in self.bodies)

    def texts(self, body: Body) -> list[list[str]]:
        """The cells of a body's rows that people are shown."""
        columns = [(index, c) for index, c in enumerate(self.columns) if c.heading is not None]
        rows = body.rows[: self.most_rows]
        return [[_text(row[index], column.joint, self.none) for index, column in columns] for row in rows]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is so.

    Attributes:
        lines: For people, the sentence first and what belongs to it below; none for programs alone.
        head: A word before the first line.
        data: Members of the document, or of a group that has a key one of its values; `ABSENT` for people alone.
    """

    lines: tuple[str, ...] = ()
    head: str = ""
    data: Cell = ABSENT


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts below each other.

    Attributes:
        key: Of the list that programs are given; None where the facts are members of the document.
        indent: Characters before a line.
        hanging: More of them before what belongs to a fact.
        head_width: Characters of a head.
    """

    facts: tuple[Fact, ...]
    title: str | None = None
    key: str | None = None
    indent: int = 0
    hanging: int = 0
    head_width: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle in a chart: bytes that are taken during some steps.

    Attributes:
        first, last: The steps, the last one included.
        begin, end: The bytes, the end not included.
        kind: What it is; blocks of a kind look alike.
        lines: What else is known of it: where it lies and when, then the rest.
    """

    name: str
    first: int
    last: int
    begin: int
    end: int
    kind: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """Bytes of one memory over steps.

    Attributes:
        series: The bytes of each step.
        limit: The most that there may be; None for no limit.
        marked: Steps that people are shown apart, and `mark`, the word for them.
        blocks: What the bytes are made of.
    """

    name: str
    title: str
    series: tuple[int, ...]
    limit: int | None
    mark: str = ""
    marked: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()

    @property
    def peak(self) -> int:
        """The most bytes of any step."""
        return max(self.series, default=0)


@dataclass(frozen=True, slots=True)
class Track:
    """Steps of one device, and those of them that only copy."""

    name: str
    steps: tuple[int, ...]
    copies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """Who carries out which step."""

    num_steps: int
    tracks: tuple[Track, ...]


Section: TypeAlias = Table | Facts | Chart | Lanes


@dataclass(frozen=True, slots=True)
class View:
    """What a command says.

    Attributes:
        title: The line above all; None where the tables say enough.
        is_listing: Whether tables are a listing of figures in columns, with nothing drawn around them.
    """

    title: str | None
    sections: tuple[Section, ...]
    is_listing: bool = False


@dataclass(frozen=True, slots=True)
class Field(Generic[_Record]):
    """A column, and how its cells are found in the records that are the rows."""

    heading: str | None
    key: str | None
    cell: Callable[[_Record], object]
    is_number: bool = False
    joint: str = " + "

    @property
    def column(self) -> Column:
        """Without the way to find cells."""
        return Column(self.heading, self.key, self.is_number, self.joint)


def body_of(key: str | None, records: Iterable[_Record], fields: Sequence[Field[_Record]]) -> Body:
    """A row for each record."""
    return Body(key, tuple(tuple(_cell(field.cell(record)) for field in fields) for record in records))


def table_of(
    title: str | None,
    key: str | None,
    records: Iterable[_Record],
    *fields: Field[_Record],
    none: str = "none",
    by_first: bool = False,
    most_rows: int | None = None,
    hidden: str | None = None,
) -> Table:
    """A table of records, one a row; what is said of tables holds for the rest."""
    columns = tuple(field.column for field in fields)
    return Table(title, columns, (body_of(key, records, fields),), none, by_first, most_rows, hidden)


def keys(names: Iterable[str], member: Callable[[Any, str], object] = getattr) -> tuple[Field[Any], ...]:
    """Columns for programs alone, by the names of members."""
    return tuple(Field(None, name, lambda record, name=name: member(record, name)) for name in names)


def data(members: Mapping[str, object]) -> Fact:
    """Members of the document that people are not shown."""
    return Fact(data=freeze(members))


def freeze(tree: object) -> Value:
    """A tree as JSON has it, which nobody can change."""
    if isinstance(tree, Mapping):
        members = cast("Mapping[str, object]", tree)
        return FrozenMapping({name: freeze(value) for name, value in members.items()})
    if isinstance(tree, list | tuple):
        return tuple(freeze(value) for value in cast("Iterable[object]", tree))
    return cast("Value", tree)


def _cell(value: object) -> Cell:
    return value if isinstance(value, Absent) else freeze(value)


def _text(cell: Cell, joint: str, none: str) -> str:
    match cell:
        case None:
            return none
        case Absent.ABSENT:
            return ""
        case tuple():
            return joint.join(str(value) for value in cell)
        case _:
            return str(cell)
