"""One thing that is wrong with a target, before it is known which text it came from.

The same checks run on a file and on a target that options have changed. They name the guilty key by its path;
the caller turns the path into a file and line, or into the option that put the value there.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from bytewright.diagnostics import Diagnostic
from bytewright.target.source import Path


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, at which key; the texts are those of a `Diagnostic`."""

    path: Path
    message: str
    notes: tuple[str, ...] = ()
    help: str | None = None

    def to_diagnostic(self, code: str, where: str) -> Diagnostic:
        """The problem as a diagnostic at a place."""
        return Diagnostic(code, self.message, self.notes, self.help, where)


def closest(name: str, existing: Iterable[str]) -> str | None:
    """A help line with the names that look most like a mistyped one, if any do."""
    matches = difflib.get_close_matches(name, list(existing), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(match) for match in matches)}?" if matches else None


def listing(what: str, names: Iterable[str]) -> str:
    """A note that lists what exists: "memories: dtcm, isram"."""
    return f"{what}: {', '.join(names) or 'none'}"
