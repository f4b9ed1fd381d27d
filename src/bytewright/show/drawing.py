"""Drawings as SVG elements, the same for a page and for a file of their own: geometry, marks and labels.

Across, everything is a share of the width, which a page writes in per cent, so that texts keep their size whatever the
width; upwards it is pixels. A kind has a colour and a pattern of its own, so that colour is never the only sign.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import ceil

from bytewright.base.visible import visible
from bytewright.show.view import Block, Chart, Gauge, Lanes, Track

LEFT, BELOW, ROW, BAR = 104, 22, 20, 14
_HIGH, _LOW = 320, 150
_BAND, _LABEL, _MOST_TICKS, _TICKS_IF_NARROW, _ALL_TICKS, _DIGIT = 14, 13, 20, 4, 1000, 7
# A limit further above the rest than this would flatten the picture, so it is only said.
_LARGEST_SCALE = 1.5
_LONGEST_LABEL, _LONGEST_NAME = 15, 60
# A block of at least this size has its name in it: a share of the width, and pixels.
_NAMED_WIDTH, _NAMED_HEIGHT = 0.08, 15
_MANY_BLOCKS = 300
_NUM_LOOKS = 8
LANES_TITLE = "Who runs when; copies are hatched"

# A look is a colour and a pattern; `--a` to `--d` are colours that the page or the file defines.
MARKS = """
rect{fill:var(--a);stroke:var(--a);stroke-width:1;fill-opacity:.3}.many rect{stroke-width:.4}
.k1{fill:url(#bw1);stroke:var(--b)}.k2{fill:url(#bw2);stroke:var(--c)}
.k3{fill:url(#bw3);stroke:var(--d)}.k4{fill:var(--c);stroke:var(--c)}.k5{fill:url(#bw5);stroke:var(--a)}
.k6{fill:var(--b);stroke:var(--b)}.k7{fill:url(#bw7);stroke:var(--b)}.k1,.k2,.k3,.k5,.k7{fill-opacity:1}
.t1,.t7{fill:var(--b)}.t2{fill:var(--c)}.t3{fill:var(--d)}.t5{fill:var(--a)}.t{fill-opacity:.2}
.l1,.l7{stroke:var(--b)}.l2{stroke:var(--c)}.l3{stroke:var(--d)}.l5{stroke:var(--a)}.l{fill:none}
text{font:12px system-ui,sans-serif;fill:var(--ink)}.y{text-anchor:end}.x{text-anchor:middle}
.halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}.in{font-size:11px}
.axis{stroke:var(--line);fill:none}.level{stroke:var(--ink);stroke-width:.8;stroke-dasharray:1 3;fill:none}
.limit{stroke:var(--ink);stroke-width:2;stroke-dasharray:7 4;fill:none}
.band{fill:var(--ink);stroke:none;fill-opacity:.6}
.best{fill:var(--a);stroke:var(--a)}.point{fill:var(--paper);stroke:var(--a)}
""".strip()

_LINES = {
    1: ("M0 0V6", 45),
    2: ("M0 0V6M0 0H6", 0),
    3: ("M0 0V6", -45),
    5: ("M0 0H6", 0),
    7: ("M0 0V6M0 0H6", 45),
}
PATTERNS = "".join(
    f'<pattern id="bw{look}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate({angle})">'
    f'<path class="t t{look}" d="M0 0H6V6H0z"/><path class="l l{look}" d="{path}"/></pattern>'
    for look, (path, angle) in _LINES.items()
)


def shown(text: str) -> str:
    """A text of others for markup, of which nothing in it is."""
    return escape(visible(text))


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


@dataclass(frozen=True, slots=True)
class Pen:
    """How elements are written.

    Attributes:
        width: Pixels from left to right; None for per cent.
        has_titles: Whether rectangles say what they are by themselves.
    """

    width: int | None
    has_titles: bool

    def x(self, share: float) -> str:
        """A place across, or a distance, from 0 to 1."""
        return f"{100 * share:.4g}%" if self.width is None else f"{self.width * share:.5g}"

    def rect(self, x: float, y: float, width: float, height: float, look: int, title: str = "") -> str:
        """A rectangle; what has any size is seen."""
        place = f'x="{self.x(x)}" y="{y:.4g}" width="{self.x(width)}" height="{max(height, 0.5):.4g}"'
        named = f"<title>{shown(title)}</title>" if title and self.has_titles else ""
        style = f'class="k{look % _NUM_LOOKS}" ' if look % _NUM_LOOKS else ""
        return f"<rect {style}{place}" + (f">{named}</rect>" if named else "/>")

    def line(self, y: float, style: str) -> str:
        """A line from left to right."""
        return f'<line class="{style}" x2="{self.x(1)}" y1="{y:.4g}" y2="{y:.4g}"/>'

    def text(self, x: str, y: float, style: str, text: str) -> str:
        """A text; `x` is a place as `Pen.x` writes it, or pixels."""
        return f'<text class="{style}" x="{x}" y="{y:.4g}">{shown(text)}</text>'

    def label(self, y: float, text: str) -> str:
        """A text left of the drawing."""
        return self.text("-8", y, "y", _shortened(text, _LONGEST_LABEL))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the blocks of a chart are: shares across, pixels from the top."""

    first: float
    length: float
    top: int
    height: int

    def across(self, place: float) -> float:
        """A place on the axis."""
        return (place - self.first) / self.length

    def down(self, amount: float) -> float:
        """An amount."""
        return self.height - amount * self.height / self.top


def frame_of(chart: Chart) -> Frame:
    """With room for all blocks and levels, and for the limit where that does not flatten them."""
    levels = [amount for _, amount in _levels(chart)]
    first, end = chart.ends
    height = _LOW if chart.is_low else _HIGH
    return Frame(first, max(end - first, 1), max(1, *levels, *_ends(chart)), height)


def _ends(chart: Chart) -> Iterator[int]:
    yield chart.peak
    yield chart.scale
    yield from (block.end for block in chart.blocks)


def _levels(chart: Chart) -> list[tuple[str, int]]:
    """The amounts that have a line, each once, with all words for it."""
    words: dict[int, list[str]] = {}
    for word, amount in chart.levels:
        words.setdefault(amount, []).append(word)
    most = max((*words, *_ends(chart)), default=0)
    if chart.limit is not None and chart.limit <= most * _LARGEST_SCALE:
        words.setdefault(chart.limit, []).append("limit")
    return [(", ".join(found), amount) for amount, found in sorted(words.items()) if amount]


def chart_height(chart: Chart) -> int:
    """Pixels of a chart, with what is above and below its blocks."""
    return above(chart) + frame_of(chart).height + BELOW


def above(chart: Chart) -> int:
    """Pixels above its blocks."""
    return _overhang(chart) + _BAND * len(chart.bands) + 12


def _overhang(chart: Chart) -> int:
    """Pixels above the blocks that labels of amounts take which are too near to have one place each."""
    return max([0, *(ceil(-place) for _, _, place in _labels(chart, frame_of(chart)))])


def chart_lines(chart: Chart, pen: Pen) -> Iterator[str]:
    """The elements of a chart, whose blocks begin at the point 0, 0: they are the children of the first group."""
    frame, numbers = frame_of(chart), chart.numbers
    yield "<g>" + "".join(_block(block, frame, pen, numbers[block.kind]) for block in chart.blocks) + "</g>"
    yield "".join(_names(chart, frame, pen))
    yield pen.line(frame.height, "axis") + pen.label(frame.height + 4, f"0 {chart.unit}")
    yield from _level_lines(chart, frame, pen)
    yield from _band_lines(chart, frame, pen)
    yield from _tick_lines(chart, frame.height + 17, pen)


def _block(block: Block, frame: Frame, pen: Pen, look: int) -> str:
    x, y = frame.across(block.first), frame.down(block.end)
    width, height = frame.across(block.until) - x, frame.down(block.begin) - y
    return pen.rect(x, y, width, height, look, f"{block.name}\n{block.summary}")


def _names(chart: Chart, frame: Frame, pen: Pen) -> Iterator[str]:
    """The names of large blocks, cut off where these end."""
    for block in chart.blocks:
        x, y = frame.across(block.first), frame.down(block.end)
        width, height = frame.across(block.until) - x, frame.down(block.begin) - y
        if width >= _NAMED_WIDTH and height >= _NAMED_HEIGHT:
            place = f'x="{pen.x(x)}" y="{y:.4g}" width="{pen.x(width)}" height="{height:.4g}"'
            name = pen.text("5", 12, "in halo", _shortened(block.name, _LONGEST_NAME))
            yield f'<svg class="name" {place}>{name}</svg>'


def _labels(chart: Chart, frame: Frame) -> list[tuple[str, int, float]]:
    """Words, their amount, and the height of their label; none touches the one below."""
    found, free = list[tuple[str, int, float]](), float(frame.height)
    for words, amount in _levels(chart):
        free = min(frame.down(amount), free - _LABEL)
        found.append((words, amount, free))
    return found


def _level_lines(chart: Chart, frame: Frame, pen: Pen) -> Iterator[str]:
    """Lines with amounts at the left, and words at the right that no line strikes out."""
    labels = _labels(chart, frame)
    for words, amount, _ in labels:
        yield pen.line(frame.down(amount), "limit" if "limit" in words else "level")
    for words, amount, y in labels:
        yield pen.label(y + 4, f"{amount} {chart.unit}")
        yield pen.text(pen.x(1), y - 3, "y halo", words)


def _band_lines(chart: Chart, frame: Frame, pen: Pen) -> Iterator[str]:
    for number, band in enumerate(chart.bands):
        y = _BAND * (number - len(chart.bands)) - 8 - _overhang(chart)
        yield pen.label(y + 8, band.name)
        for first, until in band.spans:
            x, width = frame.across(first), (until - first) / frame.length
            yield f'<rect class="band" x="{pen.x(x)}" y="{y}" width="{pen.x(width)}" height="7"/>'


def _tick_lines(chart: Chart, y: int, pen: Pen) -> Iterator[str]:
    yield pen.label(y, chart.axis)
    yield from ticks(chart.ends, 0.5 if chart.extent is None else 0.0, y, pen)


def ticks(ends: tuple[int, int], middle: float, y: int, pen: Pen) -> Iterator[str]:
    """Numbers below an axis, as many as have room; where a page is narrow, it leaves out those of class `w`."""
    first, end = ends
    length = max(end - first, 1)
    most = min(_MOST_TICKS, _ALL_TICKS // (_DIGIT * (len(str(end)) + 2)))
    each = _round_up(length / most)
    for number, place in enumerate(range(-(-first // each) * each, end, each)):
        style = "x" if number % _TICKS_IF_NARROW == 0 else "x w"
        yield pen.text(pen.x((place + middle - first) / length), y, style, str(place))


def _round_up(least: float) -> int:
    """The first of 1, 2, 5, 10, 20, ... that is no less."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10


def lanes_height(lanes: Lanes) -> int:
    """Pixels of lanes."""
    return ROW * len(lanes.tracks) + BELOW


def lane_lines(lanes: Lanes, pen: Pen) -> Iterator[str]:
    """A line of rectangles for each device; copies have another look."""
    length = max(lanes.num_steps, 1)
    for number, track in enumerate(lanes.tracks):
        yield pen.label(number * ROW + 14, track.name)
        for first, last, is_copy in _runs(track):
            what = f"{track.name} {'copies' if is_copy else 'runs'}, steps {first} to {last}"
            width = (last - first + 1) / length
            yield pen.rect(first / length, number * ROW + 3, width, ROW - 6, int(is_copy), what)
    y = ROW * len(lanes.tracks) + 15
    yield pen.label(y, "step")
    yield from ticks((0, lanes.num_steps), 0.5, y, pen)


def _runs(track: Track) -> Iterator[tuple[int, int, bool]]:
    """Steps that follow each other and are alike: the first, the last, and whether they copy."""
    copies = frozenset(track.copies)
    numbered: Iterable[tuple[int, int]] = enumerate(track.steps)
    for (_, is_copy), group in groupby(numbered, lambda pair: (pair[1] - pair[0], pair[1] in copies)):
        steps = [step for _, step in group]
        yield steps[0], steps[-1], is_copy


def gauge_lines(gauge: Gauge, numbers: Mapping[str, int], unit: str, pen: Pen) -> Iterator[str]:
    """A bar of parts from left to right, in a frame as long as the limit."""
    whole = max(gauge.total, gauge.limit or 0, 1)
    yield f'<rect class="axis" width="{pen.x(1)}" height="{BAR}"/>'
    done = 0
    for kind, amount in gauge.parts:
        if amount:
            yield pen.rect(done / whole, 0, amount / whole, BAR, numbers[kind], f"{kind} {amount} {unit}")
        done += amount
    if gauge.limit is not None and gauge.limit < gauge.total:
        x = pen.x(gauge.limit / whole)
        yield f'<line class="limit" x1="{x}" x2="{x}" y1="-3" y2="{BAR + 3}"/>'


def style_of(chart: Chart) -> str:
    """The class of a chart's element: thin lines where there are many blocks."""
    return "plot many" if len(chart.blocks) > _MANY_BLOCKS else "plot"
