"""The page: it draws what the plan says, admits no code but its own, and takes every name for a text."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from bytewright.report.report_view import report_view
from bytewright.show.as_html import html_text
from bytewright.show.view import Block, Chart, Fact, Facts, Field, Lanes, Track, View, table_of
from support import shared_models as models
from support.digits_bundle import digits_plan, write_digits

HOSTILE = "</script><img onerror=alert(1)>\"'&<b>"


class Page(HTMLParser):
    """Elements with their attributes, and the text of titles and cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def chart(*blocks: Block, limit: int | None = None) -> Chart:
    return Chart("ram", "ram: 64 B", (64, 64, 32), limit, blocks=blocks)


def numbers(attributes: dict[str, str | None]) -> list[float]:
    return [float(attributes[name] or "") for name in ("x", "y", "width", "height")]


def test_rectangles_are_to_scale() -> None:
    low, high = Block("low", 0, 2, 0, 32, "tensor"), Block("high", 1, 1, 32, 64, "ring")
    page = Page(html_text(View(None, (chart(low, high),))))
    first, second = (numbers(each) for each in page.all("rect")[:2])
    assert first == [72, 160, 888, 160]  # half of the height, over all three steps
    assert second == [368, 0, 296, 160]
    assert [each.get("class") for each in page.all("rect")[:2]] == [None, "k1"]  # another kind, and hatched
    assert {"low", "high"} <= set(page.texts)


def test_a_near_limit_is_drawn_and_a_far_one_would_flatten_the_picture() -> None:
    block = Block("a", 0, 0, 0, 64, "tensor")
    for limit, is_drawn in ((80, True), (1000, False), (None, False)):
        page = Page(html_text(View(None, (chart(block, limit=limit),))))
        assert (any(each.get("class") == "limit" for each in page.all("path"))) is is_drawn


def test_every_buffer_of_a_plan_with_a_place_is_a_rectangle() -> None:
    plan = digits_plan()
    page = Page(html_text(report_view(plan)))
    names = {text.partition("\n")[0] for text in page.texts}
    placed = [b.name for pool in plan.workspaces for b in plan.buffers_in(pool.name)]
    assert placed
    assert set(placed) <= names
    (figure,) = [each for each in page.all("figure") if "data-blocks" in each]
    blocks, lines = (json.loads(figure[name] or "") for name in ("data-blocks", "data-lines"))
    assert len(blocks) == len(placed)
    assert all(0 <= line < len(lines) for block in blocks for line in block)


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
        chart(Block(HOSTILE, 0, 1, 0, 8, HOSTILE, (HOSTILE, HOSTILE))),
        Lanes(2, (Track(HOSTILE, (0,), (1,)),)),
    )
    plain = Page(html_text(View("x", sections)))
    page = Page(html_text(View(HOSTILE, sections)))
    assert page.elements == plain.elements
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    (figure,) = [each for each in page.all("figure") if "data-lines" in each]
    assert json.loads(figure["data-lines"] or "") == [HOSTILE]


def test_one_tab_stop_a_pool() -> None:
    page = Page(html_text(report_view(digits_plan())))
    stops = [attributes for _, attributes in page.elements if "tabindex" in attributes]
    assert len(stops) == len([pool for pool in digits_plan().workspaces if pool.used_bytes])
    assert all("arrow keys" in (attributes["aria-label"] or "") for attributes in stops)


def test_sizes() -> None:
    """vww in 60 KB, and 2,000 buffers in 300."""
    plan = bytewright.compile(models.model_path(models.VWW), target="mps3-an547").plan
    assert len(html_text(report_view(plan)).encode()) < 60_000
    blocks = tuple(
        Block(
            f"conv2d_{n}/out",
            n,
            n + 2,
            640 * (n % 40),
            640 * (n % 40) + 640,
            "tensor",
            (
                f"sram+{640 * (n % 40)}, 640 B, steps {n}..{n + 2}",
                f"by {n} (CONV_2D)",
                "attach_candidates: ...",
            ),
        )
        for n in range(2000)
    )
    page = html_text(View("large", (Chart("sram", "sram", (25600,) * 2002, None, blocks=blocks),)))
    assert len(page.encode()) < 300_000


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
