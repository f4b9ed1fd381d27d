"""Pages in Chromium: what they ask for, how soon they are ready, what the keyboard reaches, and what names can do.

`scripts/chromium.sh` installs what these need.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bytewright
from bytewright.options import Rows
from bytewright.report.compare import Side, comparison_view
from bytewright.report.report_view import report_view
from bytewright.show.as_html import html_fragment, html_text
from bytewright.show.view import Block, Chart, Fact, Facts, View
from support import shared_models as models
from support.pages import HOSTILE, NUM_MANY, many_blocks
from support.row_bundle import compiled_by_rows, row_plan

_HOW = "scripts/chromium.sh installs it"
_playwright = pytest.importorskip("playwright.sync_api", reason=f"no Playwright: {_HOW}")
if shutil.which("chromium") is None:
    pytest.skip(f"no Chromium: {_HOW}", allow_module_level=True)

WIDE, NARROW = 1280, 390
MOST_READY_MS = 200
FOCUSED = "document.activeElement.getAttribute('aria-label')"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with _playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), chromium_sandbox=False)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page that is open.

    Attributes:
        requests: What it asked for, itself included.
        said: What the console and dialogs say.
        ready_ms: Processor time of the page until it is ready; what else the machine does makes it no longer.
    """

    page: Any
    requests: list[str]
    said: list[str]
    ready_ms: float


@pytest.fixture
def show(chromium: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a text as a page, and looks at the end whether it asked for anything or complained."""
    opened: list[Opened] = []

    def open_page(text: str, width: int = WIDE, **options: Any) -> Opened:
        path = tmp_path / f"{len(opened)}.html"
        path.write_text(text, encoding="utf-8")
        page = chromium.new_context(viewport={"width": width, "height": 900}, **options).new_page()
        found = Opened(page, [], [], 0)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("console", lambda message: found.said.append(message.text))
        page.on("pageerror", lambda error: found.said.append(str(error)))
        page.on("dialog", lambda dialog: (found.said.append(dialog.message), dialog.dismiss()))
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(path.as_uri())
        metrics = session.send("Performance.getMetrics")["metrics"]
        found.ready_ms = 1000 * next(each["value"] for each in metrics if each["name"] == "TaskDuration")
        opened.append(found)
        return found

    yield open_page
    for found in opened:
        assert found.said == []
        assert [url.rpartition(":")[0] for url in found.requests] == ["file"]
        found.page.context.close()


def fills(page: Any) -> bool:
    """Whether nothing is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("what", ["vww", "many"])
def test_a_page_is_ready_at_once(show: Any, what: str) -> None:
    if what == "vww":
        plan = bytewright.compile(models.model_path(models.VWW), target="mps3-an547").plan
        text = html_text(report_view(plan))
    else:
        text = html_text(many_blocks())
    assert 0 < show(text).ready_ms < MOST_READY_MS


def test_the_keyboard_reaches_every_buffer_by_one_tab_stop(show: Any) -> None:
    plan = row_plan()
    page = show(html_text(report_view(plan))).page
    (pool,) = [pool for pool in plan.workspaces if pool.used_bytes]
    names = {buffer.name for buffer in plan.buffers_in(pool.name)}
    assert page.locator(".plot >> nth=0 >> rect[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    reached = [page.evaluate(FOCUSED)]
    for _ in names:
        page.keyboard.press("ArrowRight")
        reached.append(page.evaluate(FOCUSED))
    assert {label.partition(",")[0] for label in reached} == names
    assert page.locator("figure >> nth=0 >> output").inner_text().startswith(reached[-1].partition(",")[0])
    for key, label in (("Home", reached[0]), ("End", reached[-1]), ("ArrowLeft", reached[-3])):
        page.keyboard.press(key)
        assert page.evaluate(FOCUSED) == label
    assert page.locator(".plot >> nth=0 >> rect[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_the_keyboard_reaches_2000_buffers(show: Any) -> None:
    page = show(html_text(many_blocks())).page
    page.keyboard.press("Tab")
    reached = page.evaluate(
        """() => [...Array(2000)].map(() => {
          const at = document.activeElement;
          at.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
          return at.getAttribute('aria-label');
        })"""
    )
    assert len(set(reached)) == NUM_MANY
    said = page.locator("output").inner_text()
    assert said.startswith(f"conv2d_{NUM_MANY - 1}/out")
    assert f"{NUM_MANY - 1} (CONV_2D), kernel conv2d_{NUM_MANY - 1} (step {NUM_MANY - 1})" in said


def test_up_and_down_go_to_the_neighbour_in_memory(show: Any) -> None:
    blocks = (
        Block("low", 0, 2, 0, 10, "a"),
        Block("gone", 2, 3, 10, 20, "a"),
        Block("high", 1, 3, 20, 30, "a"),
    )
    page = show(html_text(View(None, (Chart("ram", "ram", (10, 30, 30), blocks=blocks),)))).page
    page.keyboard.press("Tab")
    labels = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
        labels.append(page.evaluate(FOCUSED).partition(",")[0])
    # `gone` is not there while `low` is; from `high` it is the nearest below.
    assert labels == ["high", "high", "gone", "gone"]


def test_a_pointer_shows_what_is_known(show: Any) -> None:
    page = show(html_text(report_view(row_plan()))).page
    page.locator(".plot >> nth=0 >> g > g > rect >> nth=0").hover(position={"x": 3, "y": 3})
    said = page.locator("figure >> nth=0 >> output").inner_text()
    assert "alive in steps" in said
    assert "kernel" in said
    assert "because" in said


def test_a_hostile_name_does_nothing(show: Any) -> None:
    block = Block(HOSTILE, 0, 1, 0, 8, HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),), is_at_peak=True)
    view = View(
        HOSTILE, (Facts((Fact((HOSTILE,)),), HOSTILE), Chart(HOSTILE, HOSTILE, (8,), blocks=(block,)))
    )
    spelled = HOSTILE.replace("\u202e", "\\u202e")
    for text in (html_text(view), html_fragment(view)):
        page = show(text).page
        page.keyboard.press("Tab")
        assert page.locator("img").count() == 0
        assert spelled in page.locator("body").inner_text()
        assert "\u202e" not in page.content()
    page = show(html_text(view)).page
    page.keyboard.press("Tab")
    assert page.locator("output b").inner_text() == spelled


def test_light_dark_and_print(show: Any) -> None:
    text = html_text(report_view(row_plan()))
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = (show(text, color_scheme=scheme).page for scheme in ("light", "dark"))
    assert (light.evaluate(paper), dark.evaluate(paper)) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")
    dark.emulate_media(media="print")
    assert dark.evaluate(paper) == "rgb(255, 255, 255)"
    assert not dark.locator("output >> nth=0").is_visible()
    assert dark.pdf().startswith(b"%PDF")
    looks = "[...document.querySelectorAll('.key svg rect')].map(rect => getComputedStyle(rect).fill)"
    assert any("url" in fill for fill in dark.evaluate(looks))  # a hatched kind beside plain ones
    assert any("url" not in fill for fill in dark.evaluate(looks))


def test_two_bundles_are_side_by_side_where_there_is_room(show: Any) -> None:
    text = html_text(comparison_view(Side(compiled_by_rows(rows=Rows.OFF).plan), Side(row_plan())))
    places = "[...document.querySelectorAll('.plot > g > g:first-child')].map(plot => plot.getBoundingClientRect())"
    wide, narrow = (show(text, width).page for width in (WIDE, NARROW))
    old, new = wide.evaluate(places)[:2]
    assert old["right"] < new["left"]
    assert old["bottom"] == pytest.approx(new["bottom"], abs=2)
    assert new["height"] < old["height"]  # less memory, on the same scale
    old, new = narrow.evaluate(places)[:2]
    assert old["bottom"] < new["top"]
    assert fills(wide)
    assert fills(narrow)


def test_nothing_is_wider_than_a_telephone(show: Any) -> None:
    long = "x" * 900
    block = Block(long, 0, 1, 0, 8, long, long, ((long, long),), is_at_peak=True)
    chart = Chart("ram", long, (8,), blocks=(block,))
    page = show(html_text(View(long, (Facts((Fact((long,)),)), chart))), NARROW).page
    page.keyboard.press("Tab")
    assert fills(page)
    assert fills(show(html_text(report_view(row_plan())), NARROW).page)


def test_a_notebook_is_not_changed_by_what_it_shows(show: Any) -> None:
    others = (
        "<!DOCTYPE html><h1>Mine</h1><table><tr><td>cell</td></table><svg><rect width=9 height=9 /></svg>"
    )
    style = """['h1', 'td', 'svg', 'rect'].map(tag => {
      const {font, padding, display, fill} = getComputedStyle(document.querySelector(tag));
      return [font, padding, display, fill];
    })"""
    with_plan = others + html_fragment(report_view(row_plan()))
    assert show(others).page.evaluate(style) == show(with_plan).page.evaluate(style)
    assert "<script" not in with_plan
