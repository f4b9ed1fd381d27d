"""A sweep as a picture: SVG with RAM across, and upwards parameters, or instructions where they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape

from bytewright.sweeps.evaluate import Result
from bytewright.sweeps.pareto import pareto

_WIDTH, _HEIGHT, _MARGIN = 720, 420, 72


def picture(results: Sequence[Result]) -> str:
    """An SVG document: a point for each configuration that fits; those that nothing beats are filled, and joined."""
    fitting = [result for result in results if result["fits"]]
    has_cost = any(result.get("instructions") is not None for result in fitting)
    across, up = "ram_bytes", "instructions" if has_cost else "parameter_bytes"
    best = {result["key"] for result in pareto(results, (across, up))}
    place = _scale(fitting, across, up)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 2 * _MARGIN} {_HEIGHT + 2 * _MARGIN}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<path d="M{_MARGIN} {_MARGIN}V{_MARGIN + _HEIGHT}H{_MARGIN + _WIDTH}" fill="none" stroke="#888"/>',
        *_axes(fitting, across, up),
    ]
    for model in dict.fromkeys(result["model"] for result in fitting):
        own = [result for result in fitting if result["model"] == model and result["key"] in best]
        points = " ".join(f"{x:.5g},{y:.5g}" for x, y in sorted(map(place, own)))
        lines.append(f'<polyline points="{points}" fill="none" stroke="#555"/>')
    for result in fitting:
        x, y = place(result)
        fill = "#1b5e9b" if result["key"] in best else "white"
        lines.append(
            f'<circle cx="{x:.5g}" cy="{y:.5g}" r="4" fill="{fill}" stroke="#1b5e9b">'
            f"<title>{escape(_caption(result, across, up))}</title></circle>"
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _caption(result: Result, across: str, up: str) -> str:
    options = " ".join(result["options"])
    return (
        f"{result['model']} for {result['target']} {options}: "
        f"{result[across]} B of RAM, {result[up]} {'instructions' if up == 'instructions' else 'B of parameters'}"
    )


def _limits(results: Sequence[Result], name: str) -> tuple[int, int]:
    values = [result[name] for result in results if result.get(name) is not None] or [0]
    return min(values), max(*values, min(values) + 1)


def _scale(
    results: Sequence[Result], across: str, up: str
) -> Callable[[Mapping[str, int]], tuple[float, float]]:
    """Where a result is in the picture."""
    (left, right), (bottom, top) = _limits(results, across), _limits(results, up)

    def place(result: Mapping[str, int]) -> tuple[float, float]:
        x = _MARGIN + (result[across] - left) * _WIDTH / (right - left)
        y = _MARGIN + _HEIGHT - ((result.get(up) or bottom) - bottom) * _HEIGHT / (top - bottom)
        return x, y

    return place


def _axes(results: Sequence[Result], across: str, up: str) -> list[str]:
    """The least and the most of each, and what they are."""
    (left, right), (bottom, top) = _limits(results, across), _limits(results, up)
    below, side = _MARGIN + _HEIGHT + 18, _MARGIN - 6
    what = "instructions" if up == "instructions" else "B of parameters"
    return [
        f'<text x="{_MARGIN}" y="{below}">{left}</text>',
        f'<text x="{_MARGIN + _WIDTH}" y="{below}" text-anchor="end">{right} B of RAM</text>',
        f'<text x="{side}" y="{_MARGIN + _HEIGHT}" text-anchor="end">{bottom}</text>',
        f'<text x="{side}" y="{_MARGIN + 4}" text-anchor="end">{top}</text>',
        f'<text x="{_MARGIN}" y="{_MARGIN - 14}">{what}</text>',
    ]
