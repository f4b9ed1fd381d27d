"""A plug-in as pip installs it: a module and a dist-info folder with entry points, in a folder for sys.path."""

from __future__ import annotations

from pathlib import Path

import pytest

# Lowers `global.bank`: scratch of a kernel becomes workspace, aligned to 32 bytes.
LOWERS_BANKS = """
from dataclasses import replace

from bytewright.ir.prim import Allocate
from bytewright.ir.rewrite import Rewriting, rewrite_sequence
from bytewright.ir.scope import Scope, WORKSPACE


def lower(module, target):
    def bank(buffer):
        if str(buffer.scope) != "global.bank":
            return buffer
        return replace(buffer, scope=WORKSPACE, alignment=32)

    def explain(statement):
        if isinstance(statement, Allocate) and statement.buffer.alignment == 32:
            storage = statement.storage.narrowed("lower_banks: banks are workspace, aligned to 32")
            statement = replace(statement, storage=storage)
        return (statement,)

    def function(primfunc):
        body = rewrite_sequence(primfunc.body, Rewriting(buffer=bank, statement=explain))
        return replace(primfunc, body=body)

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
