"""Bundles that were corrupted on purpose: an offset is changed in plan.json, in the C, or in both.

With `consistent` all hashes and digests are made anew, as if the compiler itself had planned it so: what then
objects does so because of the offsets alone.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from bytewright.record.buffers import PlannedBuffer
from bytewright.record.names import names_of
from bytewright.record.plan import Plan
from bytewright.record.plan_file import hash_document, hash_files, read_plan


def overlapping_pair(plan: Plan, first_role: str = "tensor") -> tuple[PlannedBuffer, PlannedBuffer]:
    """Two buffers of one workspace, alive at once, that may not be in one place: the later one to be moved.

    The first is of a role.
    """
    placed = [b for b in plan.buffers.values() if b.place.kind == "planned" and b.live is not None]
    agreed = {
        frozenset((pair.source, pair.output))
        for step in plan.steps
        for pair in step.overlaps
        if not pair.below_bytes or not pair.above_bytes
    }
    # What a step works in and what it writes are both its own: a run that looks between steps cannot tell them apart.
    agreed |= {
        frozenset((scratch, written))
        for step in plan.steps
        for scratch in step.scratch
        for written in step.writes
    }
    for first in placed:
        for second in placed:
            may = frozenset((first.name, second.name)) in agreed
            if first.role == first_role and first is not second and not may and alive_at_once(first, second):
                return first, second
    raise AssertionError("no two buffers are alive at once")


def alive_at_once(first: PlannedBuffer, second: PlannedBuffer) -> bool:
    """Whether two buffers of one pool may not share a byte."""
    assert first.live is not None
    assert second.live is not None
    same_pool = first.place.name == second.place.name
    return same_pool and first.live[0] < second.live[1] and second.live[0] < first.live[1]


def move_buffer(
    source: Path,
    folder: Path,
    name: str,
    offset: int,
    *,
    in_plan: bool = True,
    in_source: bool = True,
    consistent: bool = False,
) -> Path:
    """A copy of a bundle in which a buffer has another offset."""
    shutil.copytree(source, folder)
    plan = read_plan(source)
    document: dict[str, Any] = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    if in_plan:
        (entry,) = (entry for entry in document["buffers"] if entry["name"] == name)
        entry["place"]["offset"] = offset
    if in_source:
        macro = names_of(plan).offset(plan.buffers[name].place.name, name)
        path = folder / "src" / f"{plan.model}.c"
        text, count = re.subn(rf"\b({macro} = )\d+", rf"\g<1>{offset}", path.read_text(encoding="utf-8"))
        assert count == 1
        path.write_text(text, encoding="utf-8")
    if consistent:
        _make_consistent(folder, document)
    (folder / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def _make_consistent(folder: Path, document: dict[str, Any]) -> None:
    """Tops, bounds, hashes and digests as a compiler would state them for this plan."""
    old_hash, document["plan_hash"] = document["plan_hash"], hash_document(document)
    for name in document["files"]:
        path = folder / name
        content = path.read_bytes().replace(old_hash.encode(), document["plan_hash"].encode())
        path.write_bytes(content)
        document["files"][name] = hashlib.sha256(content).hexdigest()
    document["files_hash"] = hash_files(document)
