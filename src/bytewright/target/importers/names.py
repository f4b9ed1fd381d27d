"""Names of foreign files as names of a target."""

import re

from bytewright.c_names import unique_name


def memory_name(foreign: str, taken: set[str]) -> str:
    """A lower-case name of a memory, a C identifier, different from those taken, to which it is added."""
    text = re.sub(r"[^a-z0-9_]", "_", foreign.lower())
    text = text if re.match("[a-z]", text) else f"m_{text.lstrip('_')}"
    return unique_name(text, taken, first=2)


def target_name(foreign: str) -> str:
    """A name of a target: letters, digits, `_`, `.` and `-`, a letter or digit first."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", foreign).lstrip("_.-") or "board"
