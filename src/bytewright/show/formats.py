"""The formats of views besides text: a file with a writer each, and its line here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bytewright.show.as_html import html_fragment, html_text
from bytewright.show.as_json import json_text
from bytewright.show.as_markdown import markdown_text
from bytewright.show.as_svg import svg_text
from bytewright.show.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a view.

    Attributes:
        name: That of the option of the command line.
        is_page: Whether it goes to a file that the option names, in place of standard output.
        is_picture: Whether it has nothing but pictures, so that only commands with pictures know it.
    """

    name: str
    write: Callable[[View], str]
    help: str
    is_page: bool = False
    is_picture: bool = False


FORMATS = (
    Format("json", json_text, "Print JSON and nothing else."),
    Format("markdown", markdown_text, "Print Markdown and nothing else."),
    Format("html", html_text, "Write a page with pictures, and print nothing.", is_page=True),
    Format("svg", svg_text, "Write the pictures alone, and print nothing.", is_page=True, is_picture=True),
)

# What a notebook shows.
in_notebook: Callable[[View], str] = html_fragment

# How a file is written whose name ends so.
BY_SUFFIX: Mapping[str, Callable[[View], str]] = {
    ".md": markdown_text,
    ".html": html_text,
    ".json": json_text,
}
