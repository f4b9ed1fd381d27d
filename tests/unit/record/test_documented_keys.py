"""docs/devices.md names the keys that plan.json has of devices, loops and branches, and plain bundles have none."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from bytewright.record.buffers import PlannedBuffer, PlannedPool
from bytewright.record.entries import PlannedStep
from bytewright.record.plan import Plan
from bytewright.record.plan_file import document_of
from support.digits_bundle import digits_document
from support.flow_program import FLOW
from support.two_devices import compiled

FRONTS = {"": Plan, "steps[].": PlannedStep, "buffers[].": PlannedBuffer, "pools[].": PlannedPool}
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "devices.md"


def documented() -> set[str]:
    table = DOCUMENT.read_text(encoding="utf-8").partition("## What plan.json says of it")[2]
    return set(re.findall(r"^\| `([\w.\[\]]+)` \|", table, re.MULTILINE))


def found(document: dict[str, Any], key: str) -> bool:
    whole, _, part = key.partition("[].")
    return any(part in item for item in document[whole]) if part else bool(document.get(key))


def test_a_program_with_devices_and_branches_has_each_documented_key() -> None:
    document = document_of(compiled(FLOW).plan)
    assert {key for key in documented() if not found(document, key)} == {
        "buffers[].line_bytes",
        "pools[].obtained_by",
    }


def test_a_model_of_one_device_has_none_of_them() -> None:
    """But for what calls are given; numbers are, where kernels can run by rows."""
    shown = {key for key in documented() if found(digits_document(), key)}
    assert shown == {"steps[].scalars", "steps[].arguments"}


def test_what_a_plan_leaves_out_when_it_is_empty_is_documented() -> None:
    left_out = {
        f"{front}{f.metadata.get('key', f.name)}"
        for front, record in FRONTS.items()
        for f in fields(record)
        if f.metadata.get("omit_empty")
    }
    made = {"steps[].template", "steps[].remarks"}
    instructions = (
        DOCUMENT.with_name("kernels.md").read_text(encoding="utf-8").partition("## Instructions")[2]
    )
    assert {key for key in made if f"| `{key}` |" not in instructions} == set()
    packed = {"has_packed_entry", "steps[].is_packed", "steps[].num_packed_arguments"}
    narrowing = {"narrowed", "buffers[].shape_before", "buffers[].kept_channels"}
    narrowing |= {"buffers[].constant_channels", "steps[].work"}
    kernels = (
        DOCUMENT.with_name("kernels.md").read_text(encoding="utf-8").partition("## Constant channels")[2]
    )
    assert {key for key in narrowing if f"| `{key}` |" not in kernels} == set()
    overlapping = {"steps[].overlaps", "steps[].runs_down"}
    storage = DOCUMENT.with_name("storage.md").read_text(encoding="utf-8").partition("## Overlaps")[2]
    assert {key for key in overlapping if f"| `{key}` |" not in storage} == set()
    by_rows = {"segments", "plain_workspace_bytes", "steps[].rows", "buffers[].ring", "buffers[].parts"}
    page = DOCUMENT.with_name("less-memory.md").read_text(encoding="utf-8")
    assert {key for key in by_rows if f"| `{key}` |" not in page} == set()
    kept = {"states", "entries", "stream"}
    page = DOCUMENT.with_name("state.md").read_text(encoding="utf-8")
    assert {key for key in kept if f"| `{key}` |" not in page} == set()
    assert left_out - made - packed - narrowing - overlapping - by_rows - kept == documented() - {"loops"}
