"""A plug-in as pip installs it: a module and a dist-info folder with entry points, in a folder for sys.path."""

from __future__ import annotations

from pathlib import Path

import pytest

# Lowers `global.bank`: scratch of a kernel becomes workspace, aligned to 32 bytes.
LOWERS_BANKS = """
from dataclasses import replace

from bytewright.ir.rewrite import substitute_in_function
from bytewright.ir.definitions import redefined
from bytewright.ir.scope import Scope, WORKSPACE
from bytewright.ir.walk import allocations


def lower(module, target):
    def function(primfunc):
        found = [a for a in allocations(primfunc) if str(a.scope) == "global.bank"]
        primfunc = redefined(primfunc, {a.buffer.name: workspace(a.storage) for a in found})
        return substitute_in_function(primfunc, {a.buffer: replace(a.buffer, alignment=32) for a in found})

    def workspace(storage):
        lowered = replace(storage, scope=WORKSPACE)
        return lowered.narrowed("lower_banks: banks are workspace, aligned to 32")

    return replace(module, kernels=tuple(map(function, module.kernels)))
"""

BANKED = """
name = "banked"
[memory.ram]
size = "unlimited"
[memory.rom]
size = "unlimited"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "rom"]
stack = "ram"
[[workspace]]
name = "ram"
memory = "ram"
[[parameters]]
name = "rom"
memory = "rom"
[scope-tag.bank]
lowered-by = "lower_banks"
"""


def install(
    folder: Path, source: str, name: str = "banks", value: str = "lower", group: str = "bytewright.passes"
):
    """A distribution with one pass, `lower_banks`; the folder is for sys.path."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(source)
    information = folder / f"{module}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[{group}]\nlower_banks = {module}:{value}\n")


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder on sys.path."""
    folder = tmp_path / "plug-ins"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder
