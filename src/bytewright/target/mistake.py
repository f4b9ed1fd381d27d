"""One thing that is wrong with a target, before it is known which text it came from.

The same checks run on a file and on a target that options have changed. They name the guilty key by its path;
the caller turns the path into a file and line, or into the option that put the value there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bytewright.diagnostics import Diagnostic
from bytewright.target.source import Path

if TYPE_CHECKING:  # the model has instruction sets, whose names are looked up with the words of this file
    from bytewright.target.model import Device, Target

_MOST_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, at which key; the texts are those of a `Diagnostic`."""

    path: Path
    message: str
    notes: tuple[str, ...] = ()
    help: str | None = None

    def to_diagnostic(self, code: str, where: str) -> Diagnostic:
        """The problem as a diagnostic at a place."""
        return Diagnostic(code, self.message, self.notes, self.help, where)


def closest_names(name: str, existing: Iterable[str]) -> list[str]:
    """The names that look most like a mistyped one, the likest first; none if none does.

    Names that differ in the case of letters alone come first, and they alone.
    """
    names = list(existing)
    same = [other for other in names if other.lower() == name.lower() and other != name]
    if same:
        return same[:3]
    lower = {other.lower(): other for other in reversed(names)}
    return [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]


def closest(name: str, existing: Iterable[str]) -> str | None:
    """A help line with the names that look most like a mistyped one, if any do."""
    return did_you_mean(closest_names(name, existing))


def did_you_mean(names: Sequence[str]) -> str | None:
    """A help line with what may have been meant, if anything."""
    return f"did you mean {' or '.join(map(repr, names))}?" if names else None


def in_target_file(*lines: str) -> str:
    """A help line with a table and a key for each change: `[device.npu] reach = ["sram"]`."""
    return f"in the target file: {', '.join(lines)}"


def reach_line(device: Device, memory: str) -> str:
    """The line by which a device reaches one memory more."""
    entries = ", ".join([*map(str, device.reach), f'"{memory}"'])
    return f"[device.{device.name}] reach = [{entries}]"


def from_line(pool: str, memory: str) -> str:
    """The line by which a parameter pool is loaded from a memory."""
    return f'[[parameters]] {pool} from = "{memory}"'


def read_only_memories(target: Target) -> list[str]:
    """Those that can keep bytes which are loaded elsewhere; what the default device reaches comes first."""
    names = [memory.name for memory in target.memories if not memory.is_writable]
    device = target.find_device(target.default_device_name)
    return sorted(names, key=lambda name: device is None or not device.reaches(name))


def shown(text: str) -> str:
    """A text of the user's between quotation marks, shortened where it is long."""
    return repr(text if len(text) <= _MOST_SHOWN_CHARACTERS else f"{text[:_MOST_SHOWN_CHARACTERS]}...")


def listing(what: str, names: Iterable[str]) -> str:
    """A note that lists what exists: "memories: dtcm, isram"."""
    return f"{what}: {', '.join(names) or 'none'}"
