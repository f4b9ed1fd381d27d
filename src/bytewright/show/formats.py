"""The formats of views besides text: a file with a writer each, and its line here."""

from collections.abc import Callable
from dataclasses import dataclass

from bytewright.show.as_json import json_text
from bytewright.show.view import View


@dataclass(frozen=True, slots=True)
class Format:
    """A way to write a view; `name` is that of the option of the command line."""

    name: str
    write: Callable[[View], str]
    help: str


FORMATS = (Format("json", json_text, "Print JSON and nothing else."),)
