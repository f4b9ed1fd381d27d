"""Who runs when, drawn with characters: a line for each device over the steps of a run."""

from bytewright.show.view import Lanes, Track


def track_lines(lanes: Lanes, width: int = 78, ascii_only: bool = False) -> list[str]:
    """The tracks as text, an axis of steps above them.

    Args:
        lanes: What is to be drawn.
        width: Characters in a line, at most (but never so few that nothing can be drawn): a column is one step, or
            as many as it takes.
        ascii_only: For outputs that know no other characters.
    """
    works, copies = ("#", "c") if ascii_only else ("█", "▒")
    label = max(len(name) for name in ("step", *(track.name for track in lanes.tracks)))
    each = max(1, -(-lanes.num_steps // max(width - label - 1, 8)))
    columns = [range(first, min(first + each, lanes.num_steps)) for first in range(0, lanes.num_steps, each)]

    def cell(track: Track, column: range) -> str:
        own = [step for step in column if step in own_steps[track.name]]
        if not own:
            return " "
        return copies if all(step in own_copies[track.name] for step in own) else works

    own_steps = {track.name: frozenset(track.steps) for track in lanes.tracks}
    own_copies = {track.name: frozenset(track.copies) for track in lanes.tracks}
    lines = [f"{'step':<{label}} {_axis([column.start for column in columns])}"]
    for track in lanes.tracks:
        cells = "".join(cell(track, column) for column in columns)
        lines.append(f"{track.name:<{label}} {cells}".rstrip())
    if any(track.copies for track in lanes.tracks):
        lines.append(f"{'':<{label}} {works} runs, {copies} copies")
    return lines


def _axis(first_steps: list[int]) -> str:
    """The first step of a column above it, where it does not touch the number before."""
    text = ""
    for column, step in enumerate(first_steps):
        if column % 5 == 0 and (not text or column > len(text)):
            text = text.ljust(column) + str(step)
    return text
