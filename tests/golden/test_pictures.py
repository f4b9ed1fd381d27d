"""The text of a small drawing: how a plan of three buffers on two devices looks in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from bytewright.show.as_svg import svg_text
from bytewright.show.view import Band, Block, Chart, Gauge, Gauges, Lanes, Track, View


def test_a_drawing(golden: Callable[[str, str], None]) -> None:
    blocks = (
        Block("conv2d_0/out", 0.5, 2.5, 0, 384, "tensor", "384 B at ram+0, alive in steps 0..2"),
        Block("add_1/out", 1, 3, 384, 512, "ring", "128 B at ram+384, alive in steps 1..2"),
        Block("a<b", 1, 2, 512, 520, "scratch", "8 B at ram+512, alive in step 1"),
    )
    chart = Chart(
        "ram",
        "ram: 520 B alive at the peak (step 1), 520 B used, capacity 640 B",
        (384, 520, 512),
        640,
        (Band("peak", ((1, 2),), "^"), Band("rows", ((1, 3),))),
        blocks,
        (("alive", 520), ("used", 520)),
        kinds=("tensor", "ring", "scratch"),
        remark="where two overlap, a kernel writes over what it has read",
    )
    gauges = Gauges("What each memory holds", (Gauge("sram", (("workspace", 520), ("stack", 300)), 640),))
    lanes = Lanes(3, (Track("cpu", (0, 2), (2,)), Track("npu", (1,), ())))
    drawn = svg_text(View("three", (chart, gauges, lanes)))
    golden("drawing.svg", drawn[drawn.index("</defs>") :])  # behind the colours
