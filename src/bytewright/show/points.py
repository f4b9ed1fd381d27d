"""A drawing of points: two amounts of many things, those of each group that nothing beats filled and joined."""

from collections.abc import Iterator
from itertools import pairwise

from bytewright.show.drawing import BELOW, Pen, shown
from bytewright.show.view import Point, Points

_HEIGHT, _ROOM = 360, 0.04
POINTS_HEIGHT = _HEIGHT + 2 * BELOW


def point_lines(points: Points, pen: Pen) -> Iterator[str]:
    """The elements: axes from the least to the most of each amount, lines of the best, and circles."""
    across, up = [p.across for p in points.points], [p.up for p in points.points]
    left, bottom = min(across, default=0), min(up, default=0)
    width, height = max(max(across, default=0) - left, 1), max(max(up, default=0) - bottom, 1)

    def x_of(point: Point) -> float:
        return _ROOM + (1 - 2 * _ROOM) * (point.across - left) / width

    def y_of(point: Point) -> float:
        return _HEIGHT * (1 - _ROOM - (1 - 2 * _ROOM) * (point.up - bottom) / height)

    yield pen.line(_HEIGHT, "axis") + f'<line class="axis" y2="{_HEIGHT}"/>'
    for group in dict.fromkeys(point.group for point in points.points):
        best = [point for point in points.points if point.group == group and point.is_best]
        for one, other in pairwise(sorted(best, key=lambda point: (point.across, -point.up))):
            ends = f'x1="{pen.x(x_of(one))}" y1="{y_of(one):.4g}" x2="{pen.x(x_of(other))}" y2="{y_of(other):.4g}"'
            yield f'<line class="axis" {ends}/>'
    for point in points.points:
        style = "best" if point.is_best else "point"
        yield (
            f'<circle class="{style}" cx="{pen.x(x_of(point))}" cy="{y_of(point):.4g}" r="4">'
            f"<title>{shown(point.name)}</title></circle>"
        )
    if points.points:
        yield pen.label(y_of(min(points.points, key=lambda p: p.up)) + 4, str(bottom))
        yield pen.label(y_of(max(points.points, key=lambda p: p.up)) + 4, str(max(up)))
        yield pen.text(pen.x(_ROOM), _HEIGHT + 17, "x", str(left))
        yield pen.text(pen.x(1 - _ROOM), _HEIGHT + 17, "x", str(max(across)))
    yield pen.text("4", 10, "", f"up: {points.up}, across: {points.across}")
