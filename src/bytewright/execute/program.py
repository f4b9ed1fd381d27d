"""What the harness's program says (harness/main.c): how it ended, and the facts of its report."""

from enum import IntEnum
from pathlib import Path

MEASURED_FILE = "measured.bin"  # an int64 for each run: nanoseconds on hosts, bytes of stack on boards


class Ending(IntEnum):
    """Exit statuses, as port.h has them."""

    FINE = 0
    MACHINE_FAILED = 1
    MODEL_FAILED = 2
    VIOLATED = 3
    FAULTED = 4


def read_report(folder: Path) -> str:
    """The text of report.txt; nothing if the program did not come so far."""
    path = folder / "report.txt"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def parse_report(text: str) -> dict[str, int]:
    """The lines "name number" of a report; a line that was cut off is dropped."""
    facts: dict[str, int] = {}
    for line in text.splitlines():
        name, _, number = line.partition(" ")
        if number.removeprefix("-").isdigit():
            facts[name] = int(number)
    return facts
