"""A table as comma-separated values (RFC 4180): for spreadsheets, and for programs that read nothing else.

Texts come from files of others, and a spreadsheet takes what begins like a formula for one. Such a text gets an
apostrophe in front, which spreadsheets read as "text follows"; numbers are left as they are.
"""

import csv
import io
from collections.abc import Sequence

from bytewright.show.view import ABSENT, Cell, Table

# What begins a formula; spreadsheets skip blanks and marks of direction before it.
_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")


def csv_text(table: Table, keys: Sequence[str]) -> str:
    """The first body's rows below a line of keys; an absent cell, or one that is None, is empty.

    Args:
        table: Any.
        keys: Of the columns that are written, in this order; those that the table has.
    """
    numbers = [
        (number, column.joint)
        for key in keys
        for number, column in enumerate(table.columns)
        if column.key == key
    ]
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([table.columns[number].key for number, _ in numbers])
    for row in table.bodies[0].rows:
        writer.writerow([_plain(row[number], joint) for number, joint in numbers])
    return stream.getvalue()


def _plain(cell: Cell, joint: str) -> object:
    if cell is None or cell is ABSENT:
        return ""
    if isinstance(cell, int | float):
        return cell
    text = joint.join(map(str, cell)) if isinstance(cell, tuple) else str(cell)
    return f"'{text}" if text.lstrip(" \u200e\u200f\ufeff").startswith(_FORMULA) else text
