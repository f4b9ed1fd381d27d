"""A view as one page of HTML that asks for nothing: tables, pictures as inline SVG, a style and one small script.

Names in a view come from files of others, so every text is escaped, the script writes texts alone, and the page's
policy admits this style and this script by their hashes and nothing else. Without the script the page says the same
less conveniently: a rectangle's title has its name. Colour is never the only sign: kinds differ in their pattern, too.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from itertools import groupby

from bytewright.show.view import Block, Chart, Facts, Lanes, Section, Table, Track, View

_WIDTH, _HEIGHT, _LEFT, _ROW = 960, 320, 72, 20
# A limit further above the peak than this would flatten the picture, so it is only said.
_LARGEST_SCALE = 1.5
_MOST_TICKS = 24

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--line:#8c959f}
:root{--a:#3b7dd8;--b:#c96a12;--c:#2c8a57;--d:#8e5bc0}
@media (prefers-color-scheme:dark){
:root{--ink:#e6edf3;--paper:#0d1117;--line:#6e7681;--a:#5b9bf0;--b:#e08a3c;--c:#4cb27d;--d:#b08ae0}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
body{max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;padding:.15rem .7rem .15rem 0;white-space:pre-line}
th{border-bottom:1px solid var(--line)}.n{text-align:right}.last{border-top:1px solid var(--line)}
figure{margin:1.2rem 0}svg{width:100%;height:auto;display:block}svg:focus-visible{outline:2px solid var(--a)}
.sign{display:inline;width:12px}.none{position:absolute;width:0;height:0}.key span{margin-right:1.2em}
text{font:11px system-ui,sans-serif;fill:var(--ink)}
.axis{stroke:var(--line);fill:none}.limit{stroke:var(--ink);stroke-dasharray:6 4}
rect{stroke:var(--paper);stroke-width:.5;fill:var(--a)}.k1{fill:url(#k1)}.k2{fill:var(--c)}.k3{fill:url(#k3)}
.hatch{stroke:var(--paper);stroke-width:2}.b1{fill:var(--b)}.b3{fill:var(--d)}
.on{stroke:var(--ink);stroke-width:2}
output{display:block;min-height:7.5em;white-space:pre-line;overflow-wrap:anywhere}
@media print{:root{--ink:#000;--paper:#fff}body{max-width:none;margin:0}
output{display:none}svg,table{break-inside:avoid}}
"""

_SCRIPT = """
for (const figure of document.querySelectorAll('figure[data-blocks]')) {
  const blocks = JSON.parse(figure.dataset.blocks), lines = JSON.parse(figure.dataset.lines);
  const svg = figure.querySelector('svg'), said = figure.querySelector('output');
  const rects = [...svg.querySelectorAll('rect')];
  let at = -1;
  const show = index => {
    if (index < 0 || index >= rects.length) return;
    if (at >= 0) rects[at].classList.remove('on');
    at = index;
    rects[at].classList.add('on');
    said.textContent = [rects[at].textContent, ...blocks[at].map(line => lines[line])].join('\\n');
  };
  svg.addEventListener('pointerover', event => show(rects.indexOf(event.target)));
  svg.addEventListener('keydown', event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const to = step ? Math.max(0, at + step) : {Home: 0, End: rects.length - 1}[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to);
  });
}
"""

_HATCH = (
    '<svg class="none" aria-hidden="true"><defs>'
    + "".join(
        f'<pattern id="k{kind}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<path class="b{kind}" d="M0 0H6V6H0z"/><path class="hatch" d="M0 0V6"/></pattern>'
        for kind in (1, 3)
    )
    + "</defs></svg>"
)


def html_text(view: View) -> str:
    """The view as a page."""
    title = escape(view.title or "Bytewright")
    policy = f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}"
    body = "\n".join(line for section in view.sections for line in _section(section))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
        f"</head>\n<body>\n<h1>{title}</h1>\n{_HATCH}\n{body}\n<script>{_SCRIPT}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    """What a policy calls an inline text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _section(section: Section) -> Iterator[str]:
    match section:
        case Facts():
            yield from _facts(section)
        case Table() if section.is_shown:
            yield from _table(section)
        case Chart():
            yield from _chart(section)
        case Lanes():
            yield from _lanes(section)
        case _:
            pass


def _facts(group: Facts) -> Iterator[str]:
    shown = [fact for fact in group.facts if fact.lines]
    if group.title is not None:
        yield f"<h2>{escape(group.title)}</h2>"
    if shown:
        rows = (
            f"<tr><th>{escape(fact.head)}</th><td>{escape(chr(10).join(fact.lines))}</td></tr>"
            if group.head_width
            else f"<tr><td>{escape(chr(10).join(fact.lines))}</td></tr>"
            for fact in shown
        )
        yield f"<table>{''.join(rows)}</table>"


def _table(table: Table) -> Iterator[str]:
    kinds = [' class="n"' if column.is_number else "" for column in table.headed]
    head = "".join(
        f"<th{kind}>{escape(c.heading or '')}</th>" for kind, c in zip(kinds, table.headed, strict=True)
    )
    yield f'<h2>{escape(table.title or "")}</h2>\n<div class="wide"><table><thead><tr>{head}</tr></thead>'
    for body in table.bodies:
        is_last = len(table.bodies) > 1 and body is table.bodies[-1]
        yield f"<tbody{' class=last' if is_last else ''}>"
        for row in table.texts(body):
            cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
            yield f"<tr>{cells}</tr>"
        yield "</tbody>"
    hidden = table.hidden.format(table.num_hidden) if table.hidden and table.num_hidden else ""
    yield f"</table></div>{escape(hidden)}"


def _chart(chart: Chart) -> Iterator[str]:
    """Blocks over steps, the first byte at the bottom; below it, what is known of the one that is pointed at."""
    is_scaled = chart.limit is not None and chart.limit <= chart.peak * _LARGEST_SCALE
    top = max([chart.limit or 0 if is_scaled else 0, chart.peak, *(block.end for block in chart.blocks)]) or 1
    kinds = {kind: index for index, kind in enumerate(dict.fromkeys(block.kind for block in chart.blocks))}
    lines: dict[str, int] = {}
    known = [[lines.setdefault(line, len(lines)) for line in block.lines[1:]] for block in chart.blocks]
    yield (
        f"<figure data-blocks='{_attribute(known)}' data-lines='{_attribute(list(lines))}'>"
        f"<figcaption><b>{escape(chart.title)}</b></figcaption>"
    )
    scale_x, scale_y = (_WIDTH - _LEFT) / max(len(chart.series), 1), _HEIGHT / top
    yield (
        f'<svg tabindex="0" role="img" aria-label="{escape(chart.title)}; arrow keys go from buffer to buffer" '
        f'viewBox="0 -12 {_WIDTH} {_HEIGHT + 32}">'
    )
    for block in chart.blocks:
        yield _block(block, scale_x, scale_y, kinds[block.kind])
    yield from _levels(chart, scale_y, is_scaled=is_scaled)
    yield from _ticks(len(chart.series), scale_x, _HEIGHT)
    yield "</svg>"
    legend = "".join(
        f'<span><svg class="sign" viewBox="0 0 12 12">{_rect(0, 0, 12, 12, index)}</svg> '
        f"{escape(kind)}</span>"
        for kind, index in kinds.items()
    )
    yield f'<p class="key">{legend}</p><output aria-live="polite"></output></figure>'


def _block(block: Block, scale_x: float, scale_y: float, kind: int) -> str:
    x, width = _LEFT + block.first * scale_x, (block.last - block.first + 1) * scale_x
    y, height = _HEIGHT - block.end * scale_y, (block.end - block.begin) * scale_y
    return _rect(x, y, width, height, kind, "\n".join((block.name, *block.lines[:1])))


def _rect(x: float, y: float, width: float, height: float, kind: int, title: str = "") -> str:
    """A rectangle of a kind; every second kind is hatched."""
    place = f"x={x:.4g} y={y:.4g} width={width:.3g} height={height:.3g}"
    named = f"<title>{escape(title)}</title>" if title else ""
    return f"<rect {place}{f' class=k{kind % 4}' if kind % 4 else ''}>{named}</rect>"


def _levels(chart: Chart, scale_y: float, *, is_scaled: bool) -> Iterator[str]:
    """The lines of nothing, of the peak and of the limit, with their bytes."""
    levels = [(0, "axis"), (chart.peak, "axis")]
    if is_scaled and chart.limit is not None:
        levels.append((chart.limit, "limit"))
    for level, style in levels:
        y = _HEIGHT - level * scale_y
        yield f'<path class="{style}" d="M{_LEFT} {y:.5g}H{_WIDTH}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4:.5g}" text-anchor="end">{level} B</text>'


def _ticks(num_steps: int, scale_x: float, y: int) -> Iterator[str]:
    each = max(1, -(-num_steps // _MOST_TICKS))
    for step in range(0, num_steps, each):
        middle = _LEFT + (step + 0.5) * scale_x
        yield f'<text x="{middle:.5g}" y="{y + 15}" text-anchor="middle">{step}</text>'


def _lanes(lanes: Lanes) -> Iterator[str]:
    """A line of rectangles for each device; copies are hatched."""
    height, scale_x = _ROW * len(lanes.tracks), (_WIDTH - _LEFT) / max(lanes.num_steps, 1)
    yield (
        f'<figure><figcaption><b>Who runs when; copies are hatched</b></figcaption><svg role="img" '
        f'aria-label="devices over steps" viewBox="0 0 {_WIDTH} {height + 20}">'
    )
    for number, track in enumerate(lanes.tracks):
        yield f'<text x="{_LEFT - 6}" y="{number * _ROW + 14}" text-anchor="end">{escape(track.name)}</text>'
        for first, last, is_copy in _spans(track):
            x, width = _LEFT + first * scale_x, (last - first + 1) * scale_x
            yield _rect(x, number * _ROW + 3, width, _ROW - 6, int(is_copy))
    yield from _ticks(lanes.num_steps, scale_x, height)
    yield "</svg></figure>"


def _spans(track: Track) -> Iterator[tuple[int, int, bool]]:
    """Steps that follow each other and are alike: the first, the last, and whether they copy."""
    copies = frozenset(track.copies)
    numbered: Iterable[tuple[int, int]] = enumerate(track.steps)
    for (_, is_copy), group in groupby(numbered, lambda pair: (pair[1] - pair[0], pair[1] in copies)):
        steps = [step for _, step in group]
        yield steps[0], steps[-1], is_copy


def _attribute(tree: object) -> str:
    """JSON in an attribute between single quotation marks, as JSON has many double ones."""
    text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
    return escape(text, quote=False).replace("'", "&#39;")
