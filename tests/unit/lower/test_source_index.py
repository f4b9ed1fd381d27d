"""Lines through the positions of resizes: they meet every one, of small fractions where they can, or there is none."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.lower.kernels.source_index import FloorLine, floor_line
from bytewright.ops.arithmetic.resize import ResizedAxis

MODES = ((False, False), (True, False), (False, True))


@pytest.mark.parametrize("mode", MODES)
def test_a_line_meets_every_position(mode: tuple[bool, bool]) -> None:
    generator = np.random.default_rng(3)
    num_lines = 0
    for number in range(150):
        size, out = (int(n) for n in generator.integers(1, (40, 400, 3000)[number % 3], 2))
        axis = ResizedAxis(size, out, *mode)
        positions = [axis.nearest(), *axis.between(fixed=False)]
        for elements in positions:
            line = floor_line(elements, size, axis.ratio)
            if line is not None:
                assert (line.elements() == elements).all()
                num_lines += 1
    assert num_lines >= 440


@pytest.mark.parametrize(
    ("axis", "position", "line"),
    [
        (ResizedAxis(8, 16, False, False), "nearest", FloorLine(1, 0, 2, 8, 16)),
        (ResizedAxis(8, 16, False, True), "nearest", FloorLine(1, 0, 2, 8, 16)),
        (ResizedAxis(8, 24, False, False), "nearest", FloorLine(1, 0, 3, 8, 24)),
        (ResizedAxis(9, 3, False, True), "nearest", FloorLine(3, 1, 1, 9, 3)),
        (ResizedAxis(8, 16, False, True), "before", FloorLine(1, -1, 2, 8, 16)),
        (ResizedAxis(8, 16, False, True), "after", FloorLine(1, 1, 2, 8, 16)),
        (ResizedAxis(8, 15, True, False), "before", FloorLine(1, 0, 2, 8, 15)),
    ],
)
def test_fractions_are_small_where_they_can_be(axis: ResizedAxis, position: str, line: FloorLine) -> None:
    elements = {
        "nearest": axis.nearest(),
        **dict(zip(("before", "after"), axis.between(fixed=True), strict=True)),
    }
    assert floor_line(elements[position], axis.size, axis.ratio) == line


def test_positions_that_are_no_line_have_none() -> None:
    assert floor_line(np.array([0, 3, 1]), 4, (4, 3)) is None
    axis = ResizedAxis(33_863, 7027, False, False)
    assert floor_line(axis.between(fixed=False)[0], axis.size, axis.ratio) is None
