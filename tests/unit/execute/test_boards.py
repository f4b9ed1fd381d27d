from dataclasses import replace
from pathlib import Path

import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.layout import (
    board_for,
    board_table,
    lay_out,
    linker_script,
    set_up_spans,
)
from bytewright.execute.boards.protection import Rights
from bytewright.execute.description import read_bundle
from bytewright.target.model import Memory, Target
from bytewright.target.registry import load_target
from support.tiny_bundle import write_tiny_bundle

AN547 = load_target("mps3-an547")


def with_memories(target: Target, *memories: Memory) -> Target:
    return replace(target, memories=memories)


def addresses(target: Target) -> dict[str, tuple[int, int]]:
    layout = lay_out(target, board_for(target))
    regions = [region for _, region in layout.memories] + [layout.code, layout.harness]
    return {region.name: (region.base, region.size_bytes) for region in regions}


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_each_board_runs_the_target_of_its_name(name: str) -> None:
    assert board_for(load_target(name)).name == name


def test_a_target_of_another_name_uses_a_board_with_its_memories() -> None:
    small = with_memories(
        replace(AN547, name="mine"), Memory("dtcm", 4096, 0x20001000), Memory("flash", 4096, 0x38000000)
    )
    assert board_for(small).name == "mps3-an547"


def test_a_target_without_a_board_is_refused_with_reasons() -> None:
    with pytest.raises(CompileError) as caught:
        board_for(load_target("host"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW204"
    assert diagnostic.notes[0] == "mps3-an547: it has a cortex-m55, device 'cpu' is a host"
    assert diagnostic.help == "no board has the core of device 'cpu': run it on the host, --on host"


@pytest.mark.parametrize("name", ["host", "generic-cortex-m", "corstone-300-u55", *sorted(BOARDS)])
def test_help_names_boards_of_the_targets_core_alone(name: str) -> None:
    nowhere = replace(load_target(name), name="mine")
    memories = tuple(replace(memory, base=None) for memory in nowhere.memories)
    with pytest.raises(CompileError) as caught:
        board_for(replace(nowhere, memories=memories))
    help_text = f"{caught.value.diagnostics[0].help}"
    for board in BOARDS.values():
        has_its_core = board.target.default_device.isa == nowhere.default_device.isa
        assert (board.name in help_text) is has_its_core, board.name
    assert ("--target" in help_text) is not ("--on host" in help_text)


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        (
            Memory("far", 4096, 0x50000000),
            "mps3-an547: it has no memory at 0x50000000 for the 4096 B of 'far'",
        ),
        (
            Memory("big", 513 << 10, 0x20000000),
            "mps3-an547: it has no memory at 0x20000000 for the 525312 B of 'big'",
        ),
        (Memory("somewhere", 4096), "mps3-an547: memory 'somewhere' has no address or no size"),
    ],
)
def test_a_memory_that_the_board_lacks_is_named(memory: Memory, reason: str) -> None:
    with pytest.raises(CompileError) as caught:
        board_for(with_memories(AN547, memory))
    assert caught.value.diagnostics[0].notes[0] == reason


def test_code_and_harness_share_memories_that_cover_theirs() -> None:
    layout = lay_out(AN547, BOARDS["mps3-an547"])
    assert (layout.code.name, layout.code.base) == ("memory_itcm", 0x10000000)
    assert (layout.harness.name, layout.harness.base) == ("memory_ddr", 0x60000000)


def test_code_and_harness_have_regions_of_their_own_otherwise() -> None:
    target = with_memories(AN547, Memory("dtcm", 4096, 0x20000000), Memory("upper", 4096, 0x00008000))
    assert addresses(target) == {
        "memory_dtcm": (0x20000000, 4096),
        "memory_upper": (0x10008000, 4096),
        "code": (0x10000000, 0x8000),
        "harness": (0x60000000, 2 << 30),
    }


def test_the_stack_is_as_large_as_the_target_says(tmp_path: Path) -> None:
    bundle = read_bundle(write_tiny_bundle(tmp_path))
    table = board_table(lay_out(bundle.plan.hardware, board_for(bundle.plan.hardware)), bundle.plan)
    assert (table.stack_bytes, table.stack_section) == (8192, ".bss.memory.dtcm.stack")
    assert table.num_protected_regions == 16


def test_outside_of_runs_flash_and_code_are_read_only_and_data_is_no_code() -> None:
    code, flash, *others = set_up_spans(lay_out(AN547, BOARDS["mps3-an547"]), (0x10000400, 0x10000800))
    assert code == (0x10000400, 0x10000800, Rights.EXECUTE)
    assert flash == (0x28000000, 0x28800000, Rights.READ)
    assert [(first, access) for first, _, access in others] == [
        (base, Rights.WRITE) for base in (0x01000000, 0x20000000, 0x21000000, 0x60000000)
    ]


def test_the_linker_script_has_the_targets_sizes(tmp_path: Path) -> None:
    memories = (
        Memory("fast ram", 0x1000, 0x20000000, section=".fast"),
        Memory("flash", 0x2000, 0x28000000),
    )
    pools = tuple(
        replace(pool, memory=memory)
        for pool, memory in ((AN547.workspace_pools[0], "fast ram"), (AN547.parameter_pools[0], "flash"))
    )
    bundle = read_bundle(write_tiny_bundle(tmp_path))
    target = replace(AN547, memories=memories, pools=pools)
    flash = replace(bundle.plan.pools["flash"], section=None)
    plan = replace(bundle.plan, hardware=target, pools={**bundle.plan.pools, "flash": flash})
    lines = linker_script(lay_out(target, BOARDS["mps3-an547"]), plan).splitlines()
    assert "    memory_fast_ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4096" in lines
    assert (
        "    .memory.fast_ram : ALIGN(32) { *(.blob.memory.fast_ram) *(.fast .fast.*) } > memory_fast_ram"
        in lines
    )
    # Without a section in the target, an array is found by its name.
    assert any(
        "*(.rodata.tiny_flash_parameters)" in line and line.endswith("> memory_flash") for line in lines
    )
