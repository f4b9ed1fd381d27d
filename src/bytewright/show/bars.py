"""Bytes over steps, drawn with characters: one bar of live bytes for each step, or each few steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from bytewright.show.view import Chart

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ROWS = 8
_WIDEST_BAR = 6
# A capacity further above the peak than this would flatten the bars, so the axis is broken for it.
_LARGEST_SCALE = 1.5


@dataclass(frozen=True, slots=True)
class _Glyphs:
    """What bars and lines are made of."""

    parts: str  # from an empty cell to a full one
    capacity: str
    axis: str
    corner: str
    broken: str


_UNICODE = _Glyphs(_EIGHTHS, "┄", "─", "└", "⋮")
_ASCII = _Glyphs(" .:#", "-", "-", "+", ":")


def bars(chart: Chart, width: int = 78, ascii_only: bool = False) -> list[str]:
    """The chart of one memory.

    Args:
        chart: What is to be drawn.
        width: Characters in a line, at most (but never so few that nothing can be drawn).
        ascii_only: For outputs that know no other characters.

    Returns:
        Lines: the title, the capacity's line, the bars, an axis of steps, and marks under those of each band.
    """
    glyphs = _ASCII if ascii_only else _UNICODE
    capacity, live_bytes, peak = chart.limit, chart.series, chart.peak
    words = ["step", *(band.name for band in chart.bands)]
    labels_width = max(*(len(str(value)) + 1 for value in (peak, capacity or 0)), *map(len, words))
    steps_each = max(1, -(-len(live_bytes) // max(width - labels_width - 2, 8)))
    columns = [max(live_bytes[step : step + steps_each]) for step in range(0, len(live_bytes), steps_each)]
    bar = max(1, min(_WIDEST_BAR, (width - labels_width - 2) // max(len(columns), 1)))
    is_scaled = capacity is not None and capacity <= peak * _LARGEST_SCALE
    top = max(capacity, peak) if capacity is not None and is_scaled else peak

    def row(label: str, body: str) -> str:
        return f"{label:>{labels_width}} {body}".rstrip()

    lines = [chart.title]
    limit = "" if capacity is None else row(str(capacity), glyphs.capacity * (len(columns) * bar + 1))
    if capacity is not None and capacity >= peak:
        lines.append(limit)
        if not is_scaled:
            lines.append(row("", glyphs.broken))
    for level in range(_ROWS, 0, -1):
        if capacity is not None and capacity < peak and level == _level_of(capacity, top):
            lines.append(limit)  # what is above it has no room
        cells = "".join(_cell(live, top, level, glyphs.parts) * bar for live in columns)
        label = str(peak) if level == _level_of(peak, top) else ""
        lines.append(row(label, f"│{cells}" if not ascii_only else f"|{cells}"))
    lines.append(row("0", glyphs.corner + glyphs.axis * (len(columns) * bar)))
    lines.append(row("step", " " + _ticks(range(0, len(live_bytes), steps_each), bar)))
    for band in chart.bands:
        firsts = range(0, len(live_bytes), steps_each)
        marks = "".join(
            (band.sign if band.touches(step, step + steps_each) else " ") * bar for step in firsts
        )
        lines.append(row(band.name, " " + marks))
    return lines


def _level_of(value: int, top: int) -> int:
    """The row, counted from 1 at the bottom, that the end of a bar lies in."""
    return max(1, -(-value * _ROWS // max(top, 1)))


def _cell(value: int, top: int, level: int, parts: str) -> str:
    """The part of a bar in one row; what is not nothing shows, however little it is."""
    full = len(parts) - 1
    filled = -(-value * _ROWS * full // max(top, 1)) - (level - 1) * full
    return parts[max(0, min(full, filled))]


def _ticks(first_steps: Iterable[int], bar: int) -> str:
    """The first step of each bar below the axis, as many as do not touch each other."""
    text = ""
    for index, step in enumerate(first_steps):
        position = index * bar
        if position >= len(text) + (1 if text else 0):
            text = text.ljust(position) + str(step)
    return text
