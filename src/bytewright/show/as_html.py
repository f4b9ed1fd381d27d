"""A view as one page of HTML that asks for nothing: tables, pictures as inline SVG, a style and one small script.

Names in a view come from files of others, so every text is escaped, the script writes texts alone, and the page's
policy admits this style and this script by their hashes and nothing else. Without the script the page has the same
tables and pictures. In a notebook, a view is the same without a script; rectangles have titles there.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files

from bytewright.base.visible import visible
from bytewright.show.drawing import (
    BAR,
    LANES_TITLE,
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
from bytewright.show.view import (
    Beside,
    Block,
    Chart,
    Fact,
    Facts,
    Gauges,
    Lanes,
    Points,
    Section,
    Table,
    View,
)

_MOST_ROWS = 200
_FEW = 2
_HINT = "Point at a block; or go into the picture with the Tab key, and on with the arrow keys."
_NUMBER = re.compile(r"(?<!\d)(?:0|[1-9]\d{0,14})(?!\d)")
_PAGE, _NOTEBOOK = Pen(None, has_titles=False), Pen(None, has_titles=True)


def html_text(view: View) -> str:
    """The view as a page."""
    title, style, script = shown(view.title or "Bytewright"), _style(), _resource("page.js")
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="bytewright">\n<h1>{title}</h1>\n{_body(view, _PAGE)}\n<script>{script}</script>\n'
        f"</body>\n</html>\n"
    )


def html_fragment(view: View) -> str:
    """The view as a part of a page of others, such as a notebook."""
    title = f"<h2>{shown(view.title)}</h2>" if view.title is not None else ""
    return f'<div class="bytewright"><style>{_style()}</style>\n{title}\n{_body(view, _NOTEBOOK)}</div>'


def _body(view: View, pen: Pen) -> str:
    patterns = f'<svg class="none" aria-hidden="true"><defs>{PATTERNS}</defs></svg>'
    sections = sorted(view.sections, key=_place)
    return "\n".join([patterns, *(line for section in sections for line in _section(section, pen))])


def _place(section: Section) -> int:
    """Facts come first, then pictures, and tables last."""
    return 0 if isinstance(section, Facts) else 2 if isinstance(section, Table) else 1


def _style() -> str:
    """Marks are drawn the same in a file of their own, but in a page nothing outside of it may change."""
    return _resource("page.css").replace("\n}\n", f"\n{MARKS}\n}}\n", 1)


def _resource(name: str) -> str:
    return files("bytewright.show").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a policy calls an inline text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(section: Section, pen: Pen) -> Iterator[str]:
    match section:
        case Facts():
            yield from _facts(section)
        case Table() if section.is_shown:
            yield from _table(section)
        case Chart():
            yield from _chart(section, pen)
        case Beside():
            yield '<div class="beside">'
            for chart in (section.old, section.new):
                yield from _chart(chart, pen) if chart is not None else ("<p>nothing lies in it</p>",)
            yield "</div>"
        case Lanes():
            svg = _svg("lanes", lanes_height(section), 0, "devices over steps")
            yield f"<figure><figcaption>{LANES_TITLE}</figcaption>{svg}"
            yield from (*lane_lines(section, pen), "</g></svg></figure>")
        case Points():
            yield f"<figure><figcaption>{shown(section.title)}</figcaption>"
            yield _svg("lanes", POINTS_HEIGHT, 0, section.title)
            yield from (*point_lines(section, pen), "</g></svg></figure>")
        case Gauges():
            yield from _gauges(section, pen)
        case _:
            pass


def _facts(group: Facts) -> Iterator[str]:
    found = [fact for fact in group.facts if fact.lines]
    if group.title is not None:
        yield f"<h2>{shown(group.title)}</h2>"
    if group.head_width:
        rows = (f"<tr><th>{shown(fact.head)}</th><td>{_lines(fact)}</td></tr>" for fact in found)
        yield f'<div class="wide"><table>{"".join(rows)}</table></div>'
    else:
        yield from (f'<p class="fact">{_lines(fact)}</p>' for fact in found)


def _lines(fact: Fact) -> str:
    return shown("\n".join(fact.lines))


def _table(table: Table) -> Iterator[str]:
    kinds = [' class="n"' if column.is_number else "" for column in table.headed]
    head = "".join(
        f"<th{kind}>{shown(c.heading or '')}</th>" for kind, c in zip(kinds, table.headed, strict=True)
    )
    yield f'<h2>{shown(table.title or "")}</h2>\n<div class="wide"><table><thead><tr>{head}</tr></thead>'
    more = 0
    for body in table.bodies:
        is_last = len(table.bodies) > 1 and body is table.bodies[-1]
        yield f"<tbody{' class=last' if is_last else ''}>"
        texts = table.texts(body)
        more += len(texts[_MOST_ROWS:])
        for row in texts[:_MOST_ROWS]:
            cells = "".join(f"<td{kind}>{shown(cell)}" for kind, cell in zip(kinds, row, strict=True))
            yield f"<tr>{cells}"
        yield "</tbody>"
    hidden = table.hidden.format(table.num_hidden) if table.hidden and table.num_hidden else ""
    yield f"</table></div>{shown(hidden)}{f'and {more} more; --json has all' if more else ''}"


def _svg(style: str, height: int, begin: int, label: str) -> str:
    """The beginning of a drawing, with a group whose origin is that of the drawing's elements."""
    return (
        f'<svg class="{style}" height="{height}" role="group" aria-label="{shown(label)}">'
        f'<g transform="translate(0 {begin})">'
    )


def _chart(chart: Chart, pen: Pen) -> Iterator[str]:
    """Blocks over time, the first byte at the bottom; below, what is known of the one that is pointed at."""
    data = "" if pen.has_titles else _data(chart.blocks)
    yield f"<figure{data}><figcaption>{shown(chart.title)}</figcaption>"
    label = f"{chart.title}; arrow keys go from block to block"
    svg = _svg(style_of(chart), chart_height(chart), above(chart), label)
    lines = "\n".join(chart_lines(chart, pen))
    yield svg + (lines if pen.has_titles else _unquoted(lines))
    yield f"</g></svg>{_legend(chart.numbers, chart.present, chart.remark)}"
    if data:
        size = "" if any(len(block.known) > _FEW for block in chart.blocks) else ' class="few"'
        yield f'<output{size} aria-live="polite">{_HINT}</output>'
    yield from _at_peak(chart)
    yield "</figure>"


def _unquoted(elements: str) -> str:
    """Attributes without quotation marks, which HTML needs around few values and thousands of blocks have."""
    return re.sub(r'="([\w.%-]+)"', r"=\1", elements).replace("/>", " />")


def _at_peak(chart: Chart) -> Iterator[str]:
    found = sorted((block for block in chart.blocks if block.is_at_peak), key=lambda block: -block.end)
    if found:
        rows = "".join(f"<tr><td>{shown(block.name)}<td>{shown(block.summary)}" for block in found)
        count = f"{len(found)} block{'s' if len(found) > 1 else ''}"
        summary = f"<summary>Alive at the peak: {count}</summary>"
        yield f'<details>{summary}<div class="wide"><table>{rows}</table></div></details>'


def _data(blocks: Iterable[Block]) -> str:
    """What the script knows of blocks: a row of numbers for each, and the texts that these stand for."""
    texts: dict[str, int] = {}

    def row(block: Block) -> list[int]:
        numbers: list[int] = []
        for text in (block.name, block.summary, *(part for pair in block.known for part in pair)):
            plain = visible(text)
            numbers.append(texts.setdefault(_NUMBER.sub("\x01", plain), len(texts)))
            numbers += map(int, _NUMBER.findall(plain))
        return numbers

    rows = [row(block) for block in blocks]
    return f" data-blocks='{_attribute(rows)}' data-texts='{_attribute(list(texts))}'" if rows else ""


def _attribute(tree: object) -> str:
    """JSON in an attribute between single quotation marks, as JSON has many double ones."""
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
    return escape(text, quote=False).replace("'", "&#39;")


def _legend(numbers: Mapping[str, int], present: frozenset[str], remark: str = "") -> str:
    keys = "".join(
        f'<span><svg viewBox="0 0 14 12">{Pen(1, False).rect(0, 0, 14, 12, number)}</svg> {shown(kind)}</span>'
        for kind, number in numbers.items()
        if kind in present
    )
    keys += f"<span>{shown(remark)}</span>" if remark else ""
    return f'<p class="key">{keys}</p>' if keys else ""


def _gauges(section: Gauges, pen: Pen) -> Iterator[str]:
    if not section.gauges:
        return
    yield f"<figure><figcaption>{shown(section.title)}</figcaption>"
    for gauge in section.gauges:
        bar = "".join(gauge_lines(gauge, section.numbers, section.unit, pen))
        text = shown(gauge.text(section.unit))
        yield f'<div class="gauge">{text}<svg height="{BAR}" role="img" aria-label="{text}">{bar}</svg></div>'
    yield _legend(section.numbers, section.present) + "</figure>"
