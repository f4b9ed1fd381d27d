"""A plan as a picture: SVG with time across and addresses upwards, one rectangle for each life of a buffer."""

from html import escape

from bytewright.plan.problem import Buffer, Problem
from bytewright.plan.solution import PoolUse, Solution

WIDTH, HEIGHT, MARGIN, GAP = 960, 480, 56, 72
NUM_HUES = 12


def draw(problem: Problem, solution: Solution) -> str:
    """The SVG document; pools stand below one another, used ones only."""
    uses = [use for use in solution.pools if use.top_bytes > 0]
    first = min((buffer.first_tick for buffer in problem.buffers), default=0)
    last = max((buffer.last_tick for buffer in problem.buffers), default=1)
    total_height = 2 * MARGIN + max(len(uses), 1) * (HEIGHT + GAP) - GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * MARGIN} {total_height}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for position, use in enumerate(uses):
        top = MARGIN + position * (HEIGHT + GAP)
        lines += _draw_pool(problem, solution, use, top, (first, last))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _draw_pool(
    problem: Problem, solution: Solution, use: PoolUse, top: int, time: tuple[int, int]
) -> list[str]:
    bottom = top + HEIGHT
    lines = [
        f'<text x="{MARGIN}" y="{top - 8}">{escape(use.pool)}: {use.top_bytes} B used, '
        f"lower bound {use.lower_bound_bytes} B</text>",
        f'<rect x="{MARGIN}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="#f4f4f4" stroke="#888"/>',
        f'<text x="{MARGIN}" y="{bottom + 16}">{time[0]}</text>',
        f'<text x="{MARGIN + WIDTH}" y="{bottom + 16}" text-anchor="end">{time[1]}</text>',
        f'<text x="{MARGIN - 6}" y="{bottom}" text-anchor="end">0</text>',
    ]
    for number, buffer in enumerate(problem.buffers):
        placement = solution.placement_of[buffer.name]
        if placement.pool == use.pool and buffer.size_bytes:
            lines += _draw_buffer(buffer, placement.offset, number, use.top_bytes, (top, *time))
    return lines


def _draw_buffer(
    buffer: Buffer, offset: int, number: int, top_bytes: int, frame: tuple[int, int, int]
) -> list[str]:
    top, first, last = frame
    height = buffer.size_bytes * HEIGHT / top_bytes
    y = top + HEIGHT - (offset + buffer.size_bytes) * HEIGHT / top_bytes
    hue = number * 360 // NUM_HUES % 360
    lines: list[str] = []
    for lower, upper in buffer.lifetimes:
        x = MARGIN + (lower - first) * WIDTH / (last - first)
        width = (upper - lower) * WIDTH / (last - first)
        hover = (
            f"{buffer.name}: {buffer.size_bytes} B at {offset} .. {offset + buffer.size_bytes}, "
            f"ticks {lower} .. {upper}"
        )
        lines.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
            f'fill="hsl({hue},60%,75%)" stroke="#444" stroke-width="0.5"><title>{escape(hover)}</title></rect>'
        )
    return lines
