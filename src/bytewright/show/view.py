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
from bytewright.base.visible import in_one_line

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
    """A rectangle in a chart: an amount that is taken for some time.

    Attributes:
        name: Of what takes it.
        first, until: When, in units of the chart's axis; `until` is not included.
        begin, end: From which amount to which, such as addresses; `end` is not included.
        kind: What it is; blocks of a kind look alike.
        summary: Where it lies and when, in a line.
        known: What else is known of it, each with a word before it.
        is_at_peak: Whether it is there when most is.
    """

    name: str
    first: float
    until: float
    begin: int
    end: int
    kind: str
    summary: str = ""
    known: tuple[tuple[str, str], ...] = ()
    is_at_peak: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """Times that are marked: spans of the axis, half-open, and the character that marks them in text."""

    name: str
    spans: tuple[tuple[int, int], ...]
    sign: str = "="

    def touches(self, first: int, until: int) -> bool:
        """Whether any of it lies in a span."""
        return any(first < own_until and own_first < until for own_first, own_until in self.spans)


@dataclass(frozen=True, slots=True)
class Chart:
    """Amounts over time: blocks, one step after the other.

    Attributes:
        name: Of the memory, or of what is counted.
        title: What people read above it.
        series: The amount of each step; empty where time is not in steps.
        limit: The most that there may be; None for no limit.
        bands: Times that people are shown apart.
        blocks: What the amounts are made of.
        levels: Amounts that a picture marks, with a word for each.
        extent: The ends of the axis; None for that of the series.
        axis: What the axis counts.
        unit: Of the amounts.
        scale: An amount that a picture has room for, to be compared with another one.
        kinds: Kinds of blocks in an order that other charts share, so that a kind looks alike in all of them.
        remark: What is to say below it.
        is_low: Whether a picture of it takes less room.
        is_picture: Whether only pictures have it, because a table says the same.
    """

    name: str
    title: str
    series: tuple[int, ...]
    limit: int | None = None
    bands: tuple[Band, ...] = ()
    blocks: tuple[Block, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    extent: tuple[int, int] | None = None
    axis: str = "step"
    unit: str = "B"
    scale: int = 0
    kinds: tuple[str, ...] = ()
    remark: str = ""
    is_low: bool = False
    is_picture: bool = False

    @property
    def peak(self) -> int:
        """The most of any step."""
        return max(self.series, default=0)

    @property
    def ends(self) -> tuple[int, int]:
        """The ends of the axis."""
        return self.extent or (0, len(self.series))

    @property
    def numbers(self) -> dict[str, int]:
        """A number for each kind."""
        return _numbered(*self.kinds, *(block.kind for block in self.blocks))

    @property
    def present(self) -> frozenset[str]:
        """The kinds of its blocks."""
        return frozenset(block.kind for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How far something is filled, and with what: a kind and an amount for each part; None for no limit."""

    name: str
    parts: tuple[tuple[str, int], ...]
    limit: int | None

    @property
    def total(self) -> int:
        """All parts."""
        return sum(amount for _, amount in self.parts)

    def text(self, unit: str) -> str:
        """The amounts in a line."""
        parts = ", ".join(f"{kind} {amount} {unit}" for kind, amount in self.parts)
        if self.limit is None:
            return f"{self.name}: {parts}, no limit"
        left = self.limit - self.total
        rest = f"{left} {unit} free" if left >= 0 else f"{-left} {unit} too many"
        return f"{self.name}: {parts}, {rest} of {self.limit} {unit}"


@dataclass(frozen=True, slots=True)
class Gauges:
    """Bars below each other, for pictures alone: a table says the same."""

    title: str
    gauges: tuple[Gauge, ...]
    unit: str = "B"

    @property
    def numbers(self) -> dict[str, int]:
        """A number for each kind."""
        return _numbered(*(kind for gauge in self.gauges for kind, _ in gauge.parts))

    @property
    def present(self) -> frozenset[str]:
        """The kinds of their parts."""
        return frozenset(self.numbers)


def _numbered(*kinds: str) -> dict[str, int]:
    return {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}


@dataclass(frozen=True, slots=True)
class Beside:
    """Charts of the same thing in two bundles, for pictures alone; None where one has none."""

    old: Chart | None
    new: Chart | None


@dataclass(frozen=True, slots=True)
class Point:
    """Two amounts of one thing; whether it is the best of its group in that nothing beats it in both."""

    name: str
    across: int
    up: int
    group: str
    is_best: bool


@dataclass(frozen=True, slots=True)
class Points:
    """Two amounts of many things, with the words for them; for pictures alone."""

    title: str
    across: str
    up: str
    points: tuple[Point, ...]


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


Section: TypeAlias = Table | Facts | Chart | Lanes | Gauges | Beside | Points


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
            return joint.join(in_one_line(str(value)) for value in cell)
        case _:
            return in_one_line(str(cell))
