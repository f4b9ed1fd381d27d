"""Where a device sees a memory, what it needs of addresses there, and how much it can be lent."""

from __future__ import annotations

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target import load_text

BOARD = """name = "views"
[memory.ram]
base = {ram}
size = "{size}"
[memory.flash]
size = "4MiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["ram", "flash"]
stack = "flash_stack"
max-stack-size = "4KiB"
[memory.flash_stack]
size = "8KiB"
[device.npu]
isa = "host"
reach = [{reach}]
{more}
[[workspace]]
name = "ram"
memory = "ram"
alignment = 4
size = "{pool}"
{devices}
[[parameters]]
name = "flash"
memory = "flash"
"""
BOARD = BOARD.replace('reach = ["ram", "flash"]', 'reach = ["ram", "flash", "flash_stack"]')


def board(
    reach: str = '"ram"',
    more: str = "",
    *,
    ram: str = "0x20000000",
    size: str = "64KiB",
    pool: str = "32KiB",
    devices: str = "",
) -> str:
    return BOARD.format(reach=reach, more=more, ram=ram, size=size, pool=pool, devices=devices)


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    try:
        load_text(text, "views.toml")
    except CompileError as error:
        return error.diagnostics
    return ()


def messages(text: str) -> list[str]:
    """Of BW202, which all of them are."""
    return [diagnostic.message for diagnostic in mistakes(text) if diagnostic.code == "BW202"]


SEEN = '{{ memory = "ram", base = {base}{more} }}'


@pytest.mark.parametrize(
    ("base", "more", "keys", "why"),
    [
        ("0x80000004", "", "touch-alignment = 8", "the touch-alignment of device 'npu', which reaches it"),
        (
            "0x80000010",
            ", coherent = false",
            "cache-line = 32",
            "the cache-line of device 'npu', which reaches it without coherence",
        ),
        (
            "0x80000010",
            ", coherent = false",
            "cache-line = 32\ntouch-alignment = 8",
            "the cache-line of device 'npu', which reaches it without coherence",
        ),
        ("0x80000002", "", "", "the alignment of pool 'ram' in it"),
    ],
)
def test_a_base_that_a_device_sees_is_aligned_to_what_it_touches(
    base: str, more: str, keys: str, why: str
) -> None:
    """Else what the plan aligns for it is not aligned where the device finds it."""
    (message,) = messages(board(SEEN.format(base=base, more=more), keys))
    assert message.startswith(f"memory 'ram' is, as device 'npu' sees it, at {base}, ")
    assert message.endswith(why)
    assert messages(board(SEEN.format(base="0x80000020", more=more), keys)) == []


def test_a_cache_line_counts_only_where_the_device_is_not_coherent() -> None:
    assert messages(board(SEEN.format(base="0x80000010", more=""), "cache-line = 32")) == []


def test_the_memory_itself_is_aligned_to_what_devices_touch() -> None:
    """The distance of the two bases decides, so both are multiples; without a second one, no base does."""
    assert messages(board(more="touch-alignment = 8", ram="0x20000004")) == []
    (message,) = messages(
        board(SEEN.format(base="0x80000000", more=""), "touch-alignment = 8", ram="0x20000004")
    )
    assert message.startswith("memory 'ram' is at 0x20000004, 4 B past a multiple of 8, the touch-alignment")


@pytest.mark.parametrize(("pool", "is_refused"), [("4294967295B", False), ("4GiB", True)])
def test_a_pool_that_is_lent_to_a_device_is_no_larger_than_a_span(pool: str, is_refused: bool) -> None:
    found = messages(board(ram="0x100000000", size="8GiB", pool=pool))
    most = (1 << 32) - 1
    lent = f"pool 'ram' has {1 << 32} B, but device 'npu' is lent it in spans, whose sizes have 32 bits: {most} B"
    assert found == ([lent] if is_refused else [])
    assert messages(board(ram="0x100000000", size="8GiB", pool=pool, devices='devices = ["cpu"]')) == []


def test_of_a_pool_without_limit_no_more_is_used_than_can_be_lent() -> None:
    text = board(size="unlimited").replace('size = "32KiB"\n', "").replace("base = 0x20000000\n", "")
    target = load_text(text, "views.toml")
    assert target.capacity_bytes(target.pool("ram")) == (1 << 32) - 1
    alone = load_text(text.replace("alignment = 4\n", 'alignment = 4\ndevices = ["cpu"]\n'), "views.toml")
    assert alone.capacity_bytes(alone.pool("ram")) is None
