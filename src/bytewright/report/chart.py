"""Memory over time, drawn with characters: one bar of live bytes for each step, or each few steps."""

from collections.abc import Iterable
from dataclasses import dataclass

from bytewright.report.memory import PoolHistory, step_ranges

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


def chart(use: PoolHistory, width: int = 78, ascii_only: bool = False) -> list[str]:
    """The chart of one pool.

    Args:
        use: What is to be drawn.
        width: Characters in a line, at most (but never so few that nothing can be drawn).
        ascii_only: For outputs that know no other characters.

    Returns:
        Lines: the pool's figures, the capacity's line, the bars, an axis of steps, marks under the peak, and under the
        steps that run together row by row.
    """
    glyphs = _ASCII if ascii_only else _UNICODE
    capacity = use.pool.capacity_bytes
    labels_width = max(len(str(value)) for value in (use.peak_bytes, capacity or 0)) + 1
    live_bytes = use.live_bytes
    steps_each = max(1, -(-len(live_bytes) // max(width - labels_width - 2, 8)))
    columns = [max(live_bytes[step : step + steps_each]) for step in range(0, len(live_bytes), steps_each)]
    bar = max(1, min(_WIDEST_BAR, (width - labels_width - 2) // max(len(columns), 1)))
    is_scaled = capacity is not None and use.peak_bytes <= capacity <= use.peak_bytes * _LARGEST_SCALE
    top = capacity if capacity is not None and is_scaled else use.peak_bytes

    def row(label: str, body: str) -> str:
        return f"{label:>{labels_width}} {body}".rstrip()

    lines = [_title(use)]
    if capacity is not None:
        lines.append(row(str(capacity), glyphs.capacity * (len(columns) * bar + 1)))
        if not is_scaled:
            lines.append(row("", glyphs.broken))
    for level in range(_ROWS, 0, -1):
        cells = "".join(_cell(live, top, level, glyphs.parts) * bar for live in columns)
        label = str(use.peak_bytes) if level == _level_of(use.peak_bytes, top) else ""
        lines.append(row(label, f"│{cells}" if not ascii_only else f"|{cells}"))
    lines.append(row("0", glyphs.corner + glyphs.axis * (len(columns) * bar)))
    lines.append(row("step", " " + _ticks(range(0, len(live_bytes), steps_each), bar)))
    marks = "".join(("^" if live == use.peak_bytes else " ") * bar for live in columns)
    lines.append(row("peak", " " + marks))
    if use.by_rows:
        spans = [range(step, step + steps_each) for step in range(0, len(live_bytes), steps_each)]
        fused = "".join(("=" if any(step in use.by_rows for step in span) else " ") * bar for span in spans)
        lines.append(row("rows", " " + fused))
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


def _title(use: PoolHistory) -> str:
    pool = use.pool
    steps = step_ranges(use.peak_steps)
    capacity = "no limit" if pool.capacity_bytes is None else f"capacity {pool.capacity_bytes} B"
    plural = "s" if len(use.peak_steps) > 1 else ""
    return (
        f"{pool.name}: {use.peak_bytes} B alive at the peak (step{plural} {steps}), "
        f"{pool.used_bytes} B used, {capacity}"
    )
