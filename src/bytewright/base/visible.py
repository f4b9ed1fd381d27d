"""Texts of others, such as names of tensors, as people are shown them: with nothing that hides, turns or ends the rest.

A terminal takes control characters for orders, XML has no place for some, and what nobody sees may say anything.
"""

import re

# Controls, formats, what is drawn as nothing, surrogates, and the two that are no characters of XML.
_RANGES = (
    "\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff"
)
_UNSEEN, _UNSEEN_OR_END = re.compile(f"[{_RANGES}]"), re.compile(f"[{_RANGES}\n]")


def visible(text: str) -> str:
    """The text with each such character spelled by its number; ends of lines stay."""
    return _UNSEEN.sub(_spelled, text)


def in_one_line(text: str) -> str:
    """The same, ends of lines spelled, too."""
    return _UNSEEN_OR_END.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
