"""Where states are what has no room, keeping less of them helps, and it is said where it was planned."""

from __future__ import annotations

from pathlib import Path

import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.target import Target, load_text
from support.model_files import DATA
from support.wake_word import wake_word_net

HARDWARE = """
name = "small"
[memory.sram]
size = {}
[memory.flash]
size = "1MiB"
access = "r"
[device.cpu]
isa = "cortex-m33"
reach = ["sram", "flash"]
stack = "sram"
max-stack-size = "2KiB"
stack-reserve = "1KiB"
[[workspace]]
name = "sram"
memory = "sram"
[[parameters]]
name = "flash"
memory = "flash"
"""
POOL = '[[state]]\nname = "held"\nmemory = "sram"\nsize = "4KiB"\n'
STATES, WORKSPACE = 6912, 512
KEPT = {
    "no room beside the stack": HARDWARE.format(7168),
    "no room for what else there is": HARDWARE.format(2048 + STATES + WORKSPACE // 2),
    "a pool of the target": HARDWARE.format('"14KiB"') + POOL,
}


def refusal(path: Path, target: Target) -> CompileError:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(path, target=target)
    assert {each.code for each in caught.value.diagnostics} == {"BW301"}
    return caught.value


@pytest.mark.parametrize("kind", KEPT)
def test_frames_that_have_no_room_are_computed_again(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "wake.tflite"
    path.write_bytes(wake_word_net())
    target = load_text(KEPT[kind], "small.toml")
    changes = refusal(path, target).diagnostics[0].changes
    assert "--optimize size" in [change.text for change in changes]
    plan = bytewright.compile(path, target=target, optimize="size").plan
    kept = sum(pool.used_bytes for pool in plan.pools.values() if pool.role.value == "state")
    assert kept < STATES / 3


def test_what_does_not_help_is_not_said() -> None:
    """A mean, which is kept as it is."""
    path = DATA / "state" / "average.tflite"
    found = refusal(path, load_text(HARDWARE.format(2048 + 8), "small.toml"))
    assert "--optimize" not in str(found)
    assert "has room in no memory" in found.diagnostics[0].message
