from dataclasses import replace
from pathlib import Path

from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.layout import (
    board_table,
    lay_out,
    linker_script,
    set_up_spans,
)
from bytewright.execute.boards.placement import Place, Placement, place_on_board
from bytewright.execute.boards.protection import Rights
from bytewright.execute.description import read_bundle
from bytewright.target.model import Memory
from bytewright.target.registry import load_target
from support.tiny_bundle import write_tiny_bundle

AN547 = load_target("mps3-an547")


BOARD = BOARDS["mps3-an547"]


def placed(*places: tuple[Memory, str, int]) -> Placement:
    """Memories at their own addresses: each with the board's memory that it is in, and the offset in that."""
    return Placement(
        BOARD,
        BOARD.isa,
        tuple(
            Place(
                memory,
                memory.size_bytes or 0,
                (memory.base or 0) + (0x10000000 * (whole == "itcm")),
                whole,
                offset,
            )
            for memory, whole, offset in places
        ),
        None,
    )


AT_HOME = placed(*((memory, memory.name, 0) for memory in AN547.memories))


def test_code_and_harness_share_memories_that_cover_theirs() -> None:
    layout = lay_out(AT_HOME)
    assert (layout.code.name, layout.code.base) == ("memory_itcm", 0x10000000)
    assert (layout.harness.name, layout.harness.base) == ("memory_ddr", 0x60000000)


def test_code_and_harness_have_regions_of_their_own_otherwise() -> None:
    dtcm, upper = Memory("dtcm", 4096, 0x20000000), Memory("upper", 4096, 0x00008000)
    layout = lay_out(placed((dtcm, "dtcm", 0), (upper, "itcm", 0x8000)))
    regions = [region for _, region in layout.memories] + [layout.code, layout.harness]
    assert {region.name: (region.base, region.size_bytes) for region in regions} == {
        "memory_dtcm": (0x20000000, 4096),
        "memory_upper": (0x10008000, 4096),
        "code": (0x10000000, 0x8000),
        "harness": (0x60000000, 2 << 30),
    }


def test_the_stack_is_as_large_as_the_target_says(tmp_path: Path) -> None:
    bundle = read_bundle(write_tiny_bundle(tmp_path))
    table = board_table(lay_out(place_on_board(bundle.plan)), bundle.plan)
    assert (table.stack_bytes, table.stack_section) == (8192, ".bss.memory.dtcm.stack")
    assert table.num_protected_regions == 16


def test_outside_of_runs_flash_and_code_are_read_only_and_data_is_no_code() -> None:
    code, flash, *others = set_up_spans(lay_out(AT_HOME), (0x10000400, 0x10000800))
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
    fast, slow = memories
    layout = lay_out(placed((fast, "dtcm", 0), (slow, "flash", 0)))
    lines = linker_script(layout, plan).splitlines()
    assert "    memory_fast_ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4096" in lines
    assert (
        "    .memory.fast_ram : ALIGN(32) { *(.blob.memory.fast_ram) *(.fast .fast.*) } > memory_fast_ram"
        in lines
    )
    # Without a section in the target, an array is found by its name.
    assert any(
        "*(.rodata.tiny_flash_parameters)" in line and line.endswith("> memory_flash") for line in lines
    )
