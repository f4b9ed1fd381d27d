"""docs/targets.md: its example loads, and it names every key that the loader knows."""

import re
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.target import Rank, dump, load_text
from support.documented_targets import documented_target

DOCUMENT = (Path(__file__).parents[3] / "docs" / "targets.md").read_text(encoding="utf-8")


def _keys(value: object) -> set[str]:
    """Keys written by the dump, without the names that a user chooses."""
    assert isinstance(value, dict)
    keys: set[str] = set()
    for key, inner in value.items():
        keys.add(key)
        if key in ("memory", "device", "context", "scope-tag"):
            for table in inner.values():
                keys |= _keys(table)
        elif isinstance(inner, list) and inner and isinstance(inner[0], dict):
            keys |= {name for item in inner if isinstance(item, dict) for name in item}
    return keys


def test_the_example_loads_and_every_key_is_explained() -> None:
    target = load_text(documented_target("gateway"), "docs/targets.md")
    assert [context.name for context in target.contexts] == ["cpu", "dsp.thread0", "dsp.thread1"]
    assert target.device("dsp").ranks == (Rank.GLOBAL, Rank.SHARED, Rank.LOCAL)
    assert target.address_seen_by("npu", "shared") == 0x80000000
    assert target.pool("shared").size_bytes == (1 << 20) - 4096 - 2048
    assert target.external_stack_bytes("memcpy") == 32
    keys = _keys(dump(target))
    assert {"stack-allowance-per-call", "remainder", "base", "context", "lowered-by"} <= keys
    for key in sorted(keys):
        assert re.search(rf"`{key}[`\s=]|`\[+{key}[\].]|\.{key}[\].]", DOCUMENT), key


def test_the_error_shown_is_the_error_given() -> None:
    # The example in "Errors" is real: it is what this file gives.
    text = """name = "b"
[memory.dtcm]
size = "64KiB"
[memory.shared]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"




[device.cpu]
isa = "cortex-m4"
reach = ["dtcm", "shared", "flash"]
stack = "dtcm"


[[workspace]]
name = "fast"
memory = "flash"
"""
    with pytest.raises(CompileError) as caught:
        load_text(text, "board.toml")
    assert caught.value.diagnostics[0].render() in DOCUMENT
