"""Addresses, alignments and instruction sets of a target: what the hardware cannot have is refused."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.compiler.remedy.mend_options import require_hardware
from bytewright.diagnostics import CompileError
from bytewright.target import BUILTIN_TARGETS, dump, load_description, load_target, load_text
from bytewright.target.importers import ImportOptions, import_target
from bytewright.target.isa.find import ISAS, find_isa
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option, parse_resize_option
from bytewright.target.packing import Part, packed_bytes, room_bytes
from support.digits_bundle import DIGITS

BOARD = (
    """name = "board"
[memory.ram]
base = 0x20000000
size = {memory}
[memory.rom]
size = "1MiB"
access = "r"
[device.cpu]
isa = "cortex-m4"
reach = ["ram", "rom"]
stack = "rom2"
[[workspace]]
name = "one"
memory = "ram"
size = {one}
alignment = {one_alignment}
[[workspace]]
name = "two"
memory = "ram"
{two}
alignment = {two_alignment}
""".replace('"rom2"', '"deep"')
    .replace("[device.cpu]", '[memory.deep]\nsize = "1KiB"\n[device.cpu]')
    .replace('["ram", "rom"]', '["ram", "rom", "deep"]')
)


def board(memory: int, one: tuple[int, int], two: tuple[int | None, int]) -> str:
    size = "" if two[0] is None else f"size = {two[0]}"
    return BOARD.format(memory=memory, one=one[0], one_alignment=one[1], two=size, two_alignment=two[1])


def refusal(text: str) -> str:
    with pytest.raises(CompileError) as caught:
        load_text(text, "board.toml")
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW202"}
    return str(caught.value)


def least_end(parts: list[Part]) -> int:
    """By trying every order."""
    ends: list[int] = []
    for order in itertools.permutations(parts):
        end = 0
        for part in order:
            while end % part.alignment:
                end += 1
            end += part.size_bytes
        ends.append(end)
    return min(ends)


def test_packing_is_that_of_the_best_order() -> None:
    rng = random.Random(4)
    for _ in range(600):
        parts = [Part(rng.randint(0, 70), rng.choice([1, 2, 4, 8, 16, 32])) for _ in range(rng.randint(0, 5))]
        assert packed_bytes(parts) == least_end(parts)


def test_the_room_is_the_largest_part_that_fits() -> None:
    rng = random.Random(5)
    for _ in range(150):
        parts = [Part(rng.randint(0, 40), rng.choice([1, 2, 4, 8, 16])) for _ in range(rng.randint(0, 3))]
        alignment, capacity_bytes = rng.choice([1, 4, 16, 64]), rng.randint(0, 120)
        fitting = [
            size
            for size in range(capacity_bytes + 1)
            if least_end([*parts, Part(size, alignment)]) <= capacity_bytes
        ]
        room = room_bytes(parts, alignment, capacity_bytes)
        assert room == max(fitting) if fitting else room < 0


def test_many_odd_parts_are_packed_in_bounded_time() -> None:
    parts = [Part(17 + i, 1 << (i % 6)) for i in range(200)]
    total = sum(part.size_bytes for part in parts)
    assert total <= packed_bytes(parts) <= total + 200 * 31
    room = room_bytes(parts, 16, total * 2)
    assert packed_bytes([*parts, Part(room, 16)]) <= total * 2


def test_aligned_pools_need_the_gap_between_them() -> None:
    said = refusal(board(64, (20, 16), (44, 16)))
    assert "memory 'ram' has 64 B, but its pools and stacks take 68 B: 4 B too many" in said
    assert "workspace pool 'one': 20 B, aligned to 16" in said
    assert load_text(board(68, (20, 16), (44, 16)), "x").pool("two").size_bytes == 44
    assert load_text(board(64, (20, 4), (44, 4)), "x").pool("two").size_bytes == 44


def test_what_remains_of_a_memory_is_what_an_aligned_pool_can_have() -> None:
    assert load_text(board(64, (20, 16), (None, 16)), "x").pool("two").size_bytes == 32
    assert load_text(board(64, (20, 1), (None, 16)), "x").pool("two").size_bytes == 44


def test_options_count_alignments_too() -> None:
    target = load_text(board(128, (20, 16), (44, 16)), "x")
    with pytest.raises(CompileError) as caught:
        require_hardware(target, Overrides(resize=(parse_resize_option("two=110"),)))
    (diagnostic,) = caught.value.diagnostics
    assert "take 132 B" in diagnostic.message
    assert diagnostic.help == "--resize two=96"
    apply_overrides(target, Overrides(resize=(parse_resize_option("two=96"),)))
    with pytest.raises(CompileError):
        apply_overrides(target, Overrides(workspace=tuple(map(parse_pool_option, ("a=100@ram", "b=28@ram")))))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("base = 0x20000000", "base = 0x20000008", "memory.ram.base"),
        ("base = 0x20000000", "base = 0x20000000\naliases = [0x30000010, 0x40000004]", "memory.ram.aliases"),
        (
            '["ram", "rom", "deep"]',
            '[{ memory = "ram", base = 0x90000002 }, "rom", "deep"]',
            "device.cpu.reach",
        ),
    ],
)
def test_a_memory_is_aligned_as_its_pools_must_be(old: str, new: str, key: str) -> None:
    text = board(64, (16, 16), (16, 4)).replace(old, new)
    said = refusal(text)
    assert "a multiple of 16, the alignment of pool 'one'" in said
    assert f"key {key}" in said
    load_text(re.sub("alignment = .*", "alignment = 2", text), "x")


def test_instruction_sets_are_a_list() -> None:
    for name in ("riscv32", "cortex-m9", "arm", "", "rv128i", "rv32z", "x" * 200):
        said = refusal(board(64, (16, 16), (16, 16)).replace('"cortex-m4"', f'"{name}"'))
        assert "instruction sets: " in said
        assert "cortex-m55" in said
        assert "key device.cpu.isa" in said
    assert "did you mean 'rv32imac'?" in refusal(
        board(64, (16, 16), (16, 16)).replace('"cortex-m4"', '"riscv32"')
    )
    for name in (*ISAS, "rv32imac", "rv64gc", "rv32emc"):
        text = board(64, (16, 16), (16, 16)).replace('"cortex-m4"', f'"{name}"')
        if name in ISAS and not ISAS[name].runs_programs:
            assert "runs no C and has no stack" in refusal(text)
            continue
        device = load_text(text, "x").default_device
        assert device.isa.name == name
        assert device.address_bits in (32, 64)
        isa = find_isa(name)
        assert isa is not None
        assert isa.address_bits == device.address_bits


def test_every_built_in_target_has_the_width_of_its_processor() -> None:
    widths = {name: load_target(name).default_device.address_bits for name in BUILTIN_TARGETS}
    wide = ("host", "x86-64-v3", "x86-64-v4-vnni", "aarch64", "rv64gcv")
    assert widths == {name: 64 if name in wide else 32 for name in BUILTIN_TARGETS}
    values = dump(load_target("mps3-an547"))
    assert load_description(values).default_device.address_bits == 32
    values["device"]["cpu"]["address-bits"] = 40  # type: ignore[index]
    assert load_description(values).default_device.largest_object_bytes == (1 << 39) - 1


def test_the_isa_of_an_import_is_checked(tmp_path: Path) -> None:
    script = tmp_path / "app.ld"
    script.write_text("MEMORY { RAM (rw) : ORIGIN = 0x20000004, LENGTH = 64K }\n")
    result = CliRunner().invoke(command_line, ["targets", "import", str(script), "--isa", "riscv32"])
    assert result.exit_code == 1
    assert "rv32imac" in result.stderr
    assert import_target(script, ImportOptions(isa="rv64gc")).target.default_device.address_bits == 64
    assert {pool.alignment for pool in import_target(script).target.pools} == {4}  # as the memory is


WIDE = [
    ("size = 64\n", 'size = "4GiB"\n', "memory.ram.base", "ends at 0x11fffffff, but device 'cpu' has 32-bit"),
    ("base = 0x20000000", "base = 0xFFFFFFF0", "memory.ram.base", "32-bit addresses"),
    ('size = "1MiB"\naccess', 'size = "5GiB"\naccess', "memory.rom.size", "32-bit addresses"),
    (
        'stack = "deep"',
        'stack = "deep"\naddress-bits = 65',
        "device.cpu.address-bits",
        "the largest allowed is 64",
    ),
    ('stack = "deep"', 'stack = "deep"\naddress-bits = 16', "memory.ram.base", "16-bit addresses"),
]


@pytest.mark.parametrize(("old", "new", "key", "said"), WIDE)
def test_what_does_not_fit_the_addresses_is_refused(old: str, new: str, key: str, said: str) -> None:
    text = board(64, (16, 16), (16, 16)).replace(old, new)
    message = refusal(text)
    assert said in message
    assert f"key {key}" in message


def test_a_pool_is_no_larger_than_an_array_can_be() -> None:
    target = load_target("generic-cortex-m")
    with pytest.raises(CompileError) as caught:
        apply_overrides(target, Overrides(resize=(parse_resize_option("sram=2GiB"),)))
    assert "the largest array has 2147483647 B" in str(caught.value)
    largest = apply_overrides(target, Overrides(resize=(parse_resize_option("sram=2147483647"),)))
    assert largest.capacity_bytes(largest.pool("sram")) == (1 << 31) - 1
    assert target.capacity_bytes(target.pool("sram")) == (1 << 31) - 1
    host = load_target("host")
    assert host.capacity_bytes(host.pool("ram")) is None


@pytest.mark.parametrize(
    ("target", "batch_max", "said"),
    [
        ("generic-cortex-m", 1_100_000, "pool 'sram' has 2147483647 B, at least 2252800000 B are needed"),
        ("generic-cortex-m", 2_000_000, "help: --batch-max 1048575"),
        ("mps3-an547", 2_000_000, "B too few"),
    ],
)
def test_a_workspace_that_no_address_reaches_is_refused(target: str, batch_max: int, said: str) -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, target=target, batch_max=batch_max)
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"BW301"}
    assert said in str(caught.value)


def test_the_largest_batch_that_can_be_indexed_compiles() -> None:
    model = bytewright.compile(DIGITS, batch_max=(1 << 31) // 1024 - 1)
    assert model.plan.pools["ram"].used_bytes > 1 << 31
    with pytest.raises(CompileError) as caught:
        bytewright.compile(DIGITS, batch_max=(1 << 31) // 1024)
    assert caught.value.diagnostics[0].code == "BW111"
