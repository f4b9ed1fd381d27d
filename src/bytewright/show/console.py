"""The console that tables are printed on: as wide as a terminal, or without a limit where a program reads.

A table that is wrapped breaks its names, and a name in two pieces is found by no search.
"""

from rich.console import Console
from rich.table import Table

UNLIMITED_WIDTH = 1 << 16
_DRAWING_WIDTH = 80


class _Output(Console):
    """A console whose reader may go away, which is for the command to deal with as everywhere."""

    def on_broken_pipe(self) -> None:
        """Rich would end the process by itself."""
        raise BrokenPipeError


def standard_output() -> Console:
    """Standard output as it is now; a pipe or a file has `UNLIMITED_WIDTH`."""
    console = _Output(highlight=False)
    if not console.file.isatty():  # colours may be forced on a pipe, which is none the wider for it
        console.width = UNLIMITED_WIDTH
    return console


def print_grid(console: Console, grid: Table) -> None:
    """Prints a table without the blanks that fill its lines."""
    with console.capture() as drawn:
        console.print(grid)
    console.file.write("\n".join(line.rstrip(" ") for line in drawn.get().split("\n")))


def drawing_width(console: Console) -> int:
    """Characters in a line of a chart, which fills what there is."""
    return _DRAWING_WIDTH if console.width >= UNLIMITED_WIDTH else console.width
