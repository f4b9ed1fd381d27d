"""Targets that read a part of the parameters from memory that can be written, brought there in each possible way.

On the host, pool `fast` is in `ram` and loaded from `rom`; on the board it is in DTCM, a second one is in ISRAM, and
both are loaded from flash. The pool for the rest follows.
"""

from __future__ import annotations

from typing import Any, Literal

from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.model import Target
from bytewright.target.registry import load_target
from support.shared_models import BOARD, HOST

Load = Literal["linker", "copy"]
Provider = Literal["generated", "caller"]

COMBINATIONS: tuple[tuple[Load, Provider], ...] = (
    ("linker", "generated"),
    ("linker", "caller"),
    ("copy", "generated"),
    ("copy", "caller"),
)
FAST_BYTES = 8192


def host_target(load: Load, provider: Provider, workspace: Provider = "caller") -> Target:
    """The host with pool `fast` for the parameters that are read most."""
    description: dict[str, Any] = dump(load_target(HOST))
    description["workspace"][0]["provider"] = workspace
    return load_description(
        description | {"parameters": [_fast("ram", "rom", load, provider), *description["parameters"]]}
    )


def board_target(load: Load, provider: Provider) -> Target:
    """The mps3-an547 with pools `fast` in DTCM and `middle` in ISRAM."""
    description: dict[str, Any] = dump(load_target(BOARD))
    fast = _fast("dtcm", "flash", load, provider)
    middle = _fast("isram", "flash", load, provider) | {"name": "middle"}
    (flash,) = description["parameters"]
    flash = {key: value for key, value in flash.items() if key != "size"}
    isram = {key: value for key, value in description["workspace"][1].items() if key != "size"}
    workspaces = [description["workspace"][0], isram]
    return load_description(
        description | {"workspace": workspaces, "parameters": [fast, middle, flash]}, "board"
    )


def _fast(memory: str, kept_in: str, load: Load, provider: Provider) -> dict[str, Any]:
    return {
        "name": "fast",
        "memory": memory,
        "size": FAST_BYTES,
        "alignment": 32,
        "provider": provider,
        "load": load,
        "from": kept_in,
    }
