"""The page: it draws what the plan says, admits no code but its own, and takes every name for a text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.report.report_view import report_view
from bytewright.show.as_html import html_text
from bytewright.show.as_svg import svg_text
from bytewright.show.view import (
    Band,
    Block,
    Chart,
    Fact,
    Facts,
    Field,
    Gauge,
    Gauges,
    Lanes,
    Track,
    View,
    table_of,
)
from support import shared_models as models
from support.digits_bundle import digits_plan, write_digits
from support.pages import HOSTILE, Page, many_blocks
from support.row_bundle import row_plan


def chart(*blocks: Block, limit: int | None = None) -> Chart:
    return Chart("ram", "ram: 64 B", (64, 64, 32), limit, blocks=blocks)


def blocks_in(page: Page) -> list[dict[str, str | None]]:
    """The rectangles of blocks, which have a place in per cent."""
    return [each for each in page.all("rect") if "%" in (each.get("x") or "") and each.get("class") != "band"]


def place(attributes: dict[str, str | None]) -> list[float]:
    return [float((attributes[name] or "").rstrip("%")) for name in ("x", "y", "width", "height")]


def test_rectangles_are_to_scale() -> None:
    low, high = Block("low", 0, 3, 0, 32, "tensor"), Block("high", 1.5, 2, 32, 64, "ring")
    page = Page(html_text(View(None, (chart(low, high),))))
    first, second = map(place, blocks_in(page)[:2])
    assert first == [0, 160, 100, 160]  # half of the height, over all three steps
    assert second == pytest.approx([50, 0, 100 / 6, 160], abs=0.01)
    assert [each.get("class") for each in blocks_in(page)[:2]] == [None, "k1"]  # another colour, and hatched
    assert [row[0] for row in page.known()[0]] == ["low", "high"]


def test_a_near_limit_is_drawn_and_a_far_one_would_flatten_the_picture() -> None:
    block = Block("a", 0, 1, 0, 64, "tensor")
    for limit, is_drawn in ((80, True), (96, True), (97, False), (1000, False), (None, False)):
        page = Page(html_text(View(None, (chart(block, limit=limit),))))
        assert (any(each.get("class") == "limit" for each in page.all("line"))) is is_drawn


def test_labels_of_near_amounts_do_not_touch() -> None:
    near = replace(chart(Block("a", 0, 1, 0, 64, "tensor"), limit=66), levels=(("used", 64), ("alive", 63)))
    found = Page(html_text(View(None, (near,)))).all("text")
    heights = sorted(float(each["y"] or "") for each in found if each["class"] == "y")
    assert len(heights) == 5  # nothing, both, the limit, and the word for steps
    assert all(b - a >= 12 for a, b in pairwise(heights))


def test_labels_of_near_amounts_are_above_no_band_and_no_line_is_above_them() -> None:
    """In a page and in a file, which is one of XML whatever the names are."""
    block = Block("a\uffff\x01", 0, 1, 0, 64, "tensor")
    near = replace(
        chart(block, limit=66), levels=(("used", 64), ("alive", 63)), bands=(Band("peak", ((0, 1),)),)
    )
    page = Page(html_text(View(None, (near,))))
    highest = min(float(each["y"] or "") for each in page.all("text") if each["class"] == "y halo")
    (band,) = [each for each in page.all("rect") if each.get("class") == "band"]
    assert float(band["y"] or "") + 7 <= highest - 11  # the height of a capital with its accents
    drawn = ElementTree.fromstring(svg_text(View(None, (near,))))
    names = [each.get("class") for each in drawn.iter() if each.tag.endswith(("line", "text"))]
    assert names.index("limit") < names.index("y halo")
    assert max(float(each.get("y", "0")) for each in drawn.iter() if each.get("class") == "band") < 0


def test_every_buffer_of_a_plan_with_a_place_is_a_rectangle() -> None:
    plan = digits_plan()
    page = Page(html_text(report_view(plan)))
    (pool,) = [pool for pool in plan.workspaces if pool.used_bytes]
    placed = {buffer.name: buffer for buffer in plan.buffers_in(pool.name)}
    rows = page.known()[0]
    assert placed
    assert {row[0] for row in rows} == set(placed)
    for name, summary, *words in rows:
        assert summary.startswith(f"{placed[name].size_bytes} B at {pool.name}+{placed[name].place.offset}")
        maker = "scratch of" if placed[name].role == "scratch" else "made by"
        assert {"what", maker, "because"} <= set(words[::2])


def test_a_ring_is_there_for_its_whole_segment_and_a_tensor_as_long_as_it_lives() -> None:
    plan = row_plan()
    (segment,) = plan.segments
    (pool,) = [pool for pool in plan.workspaces if pool.used_bytes]
    (drawn,) = [
        each for each in report_view(plan).sections if isinstance(each, Chart) and each.name == pool.name
    ]
    rings = [block for block in drawn.blocks if block.kind == "ring"]
    assert {block.name for block in rings} == set(segment.rings)
    assert {(block.first, block.until) for block in rings} == {(segment.steps[0], segment.steps[1] + 1)}
    for block in drawn.blocks:
        live = plan.buffers[block.name].live
        assert live is not None
        assert (3 * block.first, 3 * block.until) == live  # a step of this plan has three ticks


def test_the_policy_names_the_style_and_the_script_of_the_page_and_nothing_else() -> None:
    text = html_text(report_view(digits_plan()))
    (policy,) = [each["content"] for each in Page(text).all("meta") if "http-equiv" in each]
    hashes = [
        f"'sha256-{b64encode(sha256(found.encode()).digest()).decode()}'"
        for tag in ("style", "script")
        for found in re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    ]
    assert policy == f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}"
    assert len(hashes) == 2
    assert "http:" not in text.replace("http-equiv", "")
    assert not any("style" in attributes for _, attributes in Page(text).elements)


def test_a_hostile_name_is_a_text() -> None:
    """In a title, a cell, a fact, a rectangle, what is known of it, and a lane."""
    sections = (
        Facts((Fact((HOSTILE,), HOSTILE),), HOSTILE, head_width=1),
        table_of(HOSTILE, None, (HOSTILE,), Field(HOSTILE, None, str)),
        chart(Block(HOSTILE, 0, 1, 0, 8, HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),))),
        Gauges(HOSTILE, (Gauge(HOSTILE, ((HOSTILE, 1),), 2),), HOSTILE),
        Lanes(2, (Track(HOSTILE, (0,), (1,)),)),
    )
    plain = Page(html_text(View("x", sections)))
    page = Page(html_text(View(HOSTILE, sections)))
    assert page.elements == plain.elements
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert {text.replace("\\u202e", "\u202e") for text in page.known()[0][0]} == {HOSTILE}
    assert "\u202e" not in html_text(View(HOSTILE, sections)) + svg_text(View(HOSTILE, sections))
    assert Page(svg_text(View(HOSTILE, sections))).elements == Page(svg_text(View("x", sections))).elements


def test_sizes() -> None:
    """vww in 60 KB, and 2,000 buffers in 300."""
    plan = bytewright.compile(models.model_path(models.VWW), target="mps3-an547").plan
    assert len(html_text(report_view(plan)).encode()) < 60_000
    assert len(html_text(many_blocks()).encode()) < 300_000


def test_the_command_writes_the_page_and_nothing_over_what_it_reads(tmp_path: Path) -> None:
    bundle, page = write_digits(tmp_path / "b", "host"), tmp_path / "page.html"
    result = CliRunner().invoke(command, ["report", str(bundle), "--html", str(page)])
    assert (result.exit_code, result.output) == (0, "")
    assert page.read_text().startswith("<!DOCTYPE html>")
    both = CliRunner().invoke(command, ["report", str(bundle), "--json", "--html", str(page)])
    assert json.loads(both.output)["model"] == "digits"
    plan = (bundle / "plan.json").read_bytes()
    refused = CliRunner().invoke(command, ["report", str(bundle), "--html", str(bundle / "plan.json")])
    assert (refused.exit_code, "BW206" in refused.output) == (1, True)
    assert (bundle / "plan.json").read_bytes() == plan


@pytest.mark.parametrize("arguments", [["explain", "conv2d_0/out"], ["check"]])
def test_other_views_are_pages_as_well(arguments: list[str], tmp_path: Path) -> None:
    name, *more = arguments
    bundle, page = write_digits(tmp_path / "b", "host"), tmp_path / "page.html"
    result = CliRunner().invoke(command, [name, str(bundle), *more, "--html", str(page)])
    assert (result.exit_code, result.output) == (0, "")
    assert "digits" in page.read_text()
