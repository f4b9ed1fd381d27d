"""Targets that docs/targets.md shows, as their text stands there."""

from __future__ import annotations

import re
from pathlib import Path

_DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "targets.md"


def documented_target(name: str) -> str:
    """The target of a name."""
    examples = re.findall(r"```toml\n(.*?)```", _DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    (found,) = (example for example in examples if f'name = "{name}"\n' in example)
    return found
