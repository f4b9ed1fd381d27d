"""Pages as the tests read them, without a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from bytewright.show.view import Block, Chart, View

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<b>\u202e"
NUM_MANY = 2000


class Page(HTMLParser):
    """Elements with their attributes, and the texts between them."""

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

    def known(self) -> list[list[list[str]]]:
        """What the script knows of the blocks of each picture: name, summary, then words in pairs."""
        figures = [each for each in self.all("figure") if "data-blocks" in each]
        pairs = [
            (json.loads(each["data-blocks"] or ""), json.loads(each["data-texts"] or "")) for each in figures
        ]
        return [[_texts_of(row, texts) for row in rows] for rows, texts in pairs]


def _texts_of(row: list[int], texts: list[str]) -> list[str]:
    found, numbers = list[str](), iter(row)
    for number in numbers:
        found.append(re.sub("\x01", lambda _, numbers=numbers: str(next(numbers)), texts[number]))
    return found


def many_blocks() -> View:
    """A plan of 2,000 buffers, each with its layer and its reason."""
    blocks = tuple(
        Block(
            f"conv2d_{n}/out",
            n,
            n + 3,
            640 * (n % 40),
            640 * (n % 40) + 640,
            "tensor",
            f"640 B at sram+{640 * (n % 40)}, alive in steps {n}..{n + 2}",
            (
                ("made by", f"{n} (CONV_2D), kernel conv2d_{n} (step {n})"),
                ("read by", f"{n + 1} (CONV_2D), kernel conv2d_{n + 1} (step {n + 1})"),
                ("because", "attach_candidates: global.workspace, touched by cpu: {sram}"),
                ("contract", f"may overlap conv2d_{n - 1}/out; at least {n} B below it"),
            ),
        )
        for n in range(NUM_MANY)
    )
    return View("large", (Chart("sram", "sram", (25600,) * (NUM_MANY + 2), blocks=blocks),))
