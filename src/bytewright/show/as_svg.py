"""The drawings of a view as one SVG file, for documents: with colours of its own on white, and no script."""

import re
from collections.abc import Iterator, Mapping

from bytewright.show.drawing import (
    LANES_TITLE,
    LEFT,
    MARKS,
    PATTERNS,
    Pen,
    above,
    chart_height,
    chart_lines,
    gauge_lines,
    lane_lines,
    lanes_height,
    shown,
    style_of,
)
from bytewright.show.points import POINTS_HEIGHT, point_lines
from bytewright.show.view import Beside, Chart, Gauges, Lanes, Points, Section, View

_WIDTH, _MARGIN, _LINE, _GAUGE, _CHARACTER = 860, 16, 22, 44, 7.5
_COLOURS = {
    "ink": "#1b1f24",
    "paper": "#fff",
    "line": "#6e7781",
    "a": "#0b62c4",
    "b": "#b3530a",
    "c": "#1a7f4b",
    "d": "#8250df",
}
_PEN = Pen(_WIDTH, has_titles=True)


def svg_text(view: View) -> str:
    """The document."""
    style = re.sub(r"var\(--(\w+)\)", lambda found: _COLOURS[found[1]], MARKS)
    drawings = [drawing for section in view.sections for drawing in _drawings(section)]
    title = shown(view.title or "Bytewright")
    lines: list[str] = []
    y = _MARGIN + _LINE
    for height, elements in drawings:
        lines += [f'<g transform="translate({LEFT + _MARGIN} {y})">', *elements, "</g>"]
        y += height + _MARGIN
    width = LEFT + _WIDTH + 2 * _MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}">',
            f"<title>{title}</title><style>{style}.title{{font-weight:600;font-size:14px}}</style>",
            f'<defs>{PATTERNS}</defs><path d="M0 0H{width}V{y}H0z" fill="#fff"/>',
            f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 6}">{title}</text>',
            *lines,
            "</svg>\n",
        ]
    )


def _drawings(section: Section) -> Iterator[tuple[int, list[str]]]:
    """Drawings with their heights."""
    match section:
        case Chart():
            begin = _LINE + above(section)
            elements = [
                _caption(section.title),
                f'<g class="{style_of(section)}" transform="translate(0 {begin})">',
                *chart_lines(section, _PEN),
                "</g>",
                *_legend(section.numbers, section.present, section.remark, _LINE + chart_height(section)),
            ]
            yield 2 * _LINE + chart_height(section), elements
        case Beside():
            for chart in (section.old, section.new):
                yield from _drawings(chart) if chart is not None else ()
        case Lanes():
            lanes = [_caption(LANES_TITLE), f'<g transform="translate(0 {_LINE})">']
            yield _LINE + lanes_height(section), [*lanes, *lane_lines(section, _PEN), "</g>"]
        case Points():
            points = [_caption(section.title), f'<g transform="translate(0 {_LINE})">']
            yield _LINE + POINTS_HEIGHT, [*points, *point_lines(section, _PEN), "</g>"]
        case Gauges():
            yield from _gauges(section)
        case _:
            pass


def _gauges(section: Gauges) -> Iterator[tuple[int, list[str]]]:
    elements = [_caption(section.title)]
    for number, gauge in enumerate(section.gauges):
        y = _LINE + number * _GAUGE
        elements.append(_PEN.text("0", y + 12, "", gauge.text(section.unit)))
        bar = "".join(gauge_lines(gauge, section.numbers, section.unit, _PEN))
        elements.append(f'<g transform="translate(0 {y + 18})">{bar}</g>')
    if section.gauges:
        height = _LINE + len(section.gauges) * _GAUGE
        yield height + _LINE, [*elements, *_legend(section.numbers, section.present, "", height)]


def _caption(text: str) -> str:
    return f'<text class="title" x="{-LEFT}" y="12">{shown(text)}</text>'


def _legend(numbers: Mapping[str, int], present: frozenset[str], remark: str, y: int) -> Iterator[str]:
    x = 0.0
    for kind, number in numbers.items():
        if kind in present:
            yield f'<g transform="translate({x:.4g} {y})">{Pen(1, False).rect(0, 2, 14, 12, number)}'
            yield f"{_PEN.text('20', 12, '', kind)}</g>"
            x += 40 + len(kind) * _CHARACTER
    if remark:
        yield _PEN.text(f"{x:.4g}", y + 12, "", remark)
