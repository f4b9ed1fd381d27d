"""A view as text, for terminals and pipes: what has a heading."""

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from bytewright.base.visible import in_one_line
from bytewright.show.bars import bars
from bytewright.show.console import drawing_width, print_grid
from bytewright.show.tracks import track_lines
from bytewright.show.view import Chart, Facts, Lanes, Section, Table, View

_GAP = "  "


def print_view(view: View, console: Console) -> None:
    """Prints a view."""
    if view.title is not None:
        _print_line(console, view.title, "bold")
    for section in view.sections:
        print_section(section, console, view.is_listing)


def print_section(section: Section, console: Console, is_listing: bool = False) -> None:
    """Prints a part of a view."""
    match section:
        case Facts():
            _print_facts(section, console)
        case Table() if section.is_shown:
            _print_table(section, console, is_listing)
        case Chart() if not section.is_picture:
            _print_lines(console, ["", *bars(section, drawing_width(console), console.options.ascii_only)])
        case Lanes():
            drawn = track_lines(section, drawing_width(console), console.options.ascii_only)
            _print_lines(console, ["", *drawn])
        case _:
            pass


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        _print_line(console, line)


def _print_line(console: Console, line: str, style: str = "") -> None:
    """Of a line nothing is taken for markup or an order, and none is broken."""
    console.print(Text(in_one_line(line), style), soft_wrap=True)


def _print_facts(group: Facts, console: Console) -> None:
    if group.title is not None:
        _print_line(console, group.title)
    for fact in group.facts:
        for index, line in enumerate(fact.lines):
            head = f"{'' if index else fact.head:<{group.head_width}}" if group.head_width else ""
            hanging = group.hanging if index else 0
            _print_line(console, f"{' ' * (group.indent + hanging)}{head}{line}".rstrip())


def _print_table(table: Table, console: Console, is_listing: bool) -> None:
    if is_listing:
        _print_lines(console, ["", *_listing(table), ""])
        return
    grid = Grid(box=box.SIMPLE_HEAD, title=table.title, title_justify="left", title_style="bold")
    for column in table.headed:
        justify = "right" if column.is_number else "left"
        grid.add_column(Text(column.heading or ""), justify=justify, overflow="fold")
    for body in table.bodies:
        for row in table.texts(body):
            grid.add_row(*map(Text, row))
    print_grid(console, grid)
    if table.num_hidden and table.hidden is not None:
        _print_line(console, table.hidden.format(table.num_hidden))


def _listing(table: Table) -> Iterator[str]:
    """Columns that are as wide as they have to be, with a line above the last body."""
    bodies = [table.texts(body) for body in table.bodies]
    bodies[0].insert(0, [column.heading or "" for column in table.headed])
    widths = [max(map(len, cells)) for cells in zip(*(row for rows in bodies for row in rows), strict=True)]
    for rows in bodies:
        if len(bodies) > 1 and rows is bodies[-1]:
            yield "-" * (sum(widths) + len(_GAP) * (len(widths) - 1))
        for row in rows:
            cells = (
                cell.rjust(width) if column.is_number else cell.ljust(width)
                for cell, width, column in zip(row, widths, table.headed, strict=True)
            )
            yield _GAP.join(cells).rstrip()
