"""Which board runs a bundle, and where the memories of a target lie that is no board."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.placement import Placement, place_on_board
from bytewright.execute.description import read_bundle
from bytewright.record.plan import Plan
from bytewright.target.isa.find import require_isa
from bytewright.target.model import Memory, MemoryAccess
from bytewright.target.registry import load_target
from support.tiny_bundle import write_tiny_bundle

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """Its workspace and its stack are in dtcm, its parameters in flash."""
    return read_bundle(write_tiny_bundle(tmp_path_factory.mktemp("tiny"))).plan


def memory(name: str, size_bytes: int | None, base: int | None, *, written: bool = True) -> Memory:
    access = MemoryAccess.READ_WRITE if written else MemoryAccess.READ_ONLY
    return Memory(name, size_bytes, base, access=access)


FLASH = memory("flash", 2 * MIB, 0x08000000, written=False)
DTCM = memory("dtcm", 128 * KIB, 0x20000000)


def on_core(plan: Plan, core: str, *memories: Memory, name: str = "mine") -> Plan:
    device = replace(plan.hardware.default_device, isa=require_isa(core))
    hardware = replace(plan.hardware, name=name, memories=memories, devices=(device,))
    return replace(plan, hardware=hardware)


def refusal(plan: Plan) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        place_on_board(plan)
    return caught.value.diagnostics[0]


def moves(placement: Placement) -> dict[str, str]:
    assert placement.stand_in is not None
    return {move.memory: move.board_memory for move in placement.stand_in.moves}


@pytest.mark.parametrize("name", sorted(BOARDS))
def test_a_board_is_at_home_on_itself(plan: Plan, name: str) -> None:
    hardware = load_target(name)
    first = hardware.memories[0].name
    pools = {key: replace(pool, memory=first) for key, pool in plan.pools.items()}
    placement = place_on_board(replace(plan, hardware=hardware, pools=pools))
    assert (placement.board.name, placement.stand_in) == (name, None)
    assert [place.memory for place in placement.places] == [*hardware.memories]


@pytest.mark.parametrize(
    ("core", "board"),
    [
        ("cortex-m0", "mps2-an386"),
        ("cortex-m0plus", "mps2-an386"),
        ("cortex-m3", "mps2-an386"),
        ("cortex-m4", "mps2-an386"),
        ("cortex-m7", "mps2-an500"),
        ("cortex-m23", "mps2-an521"),
        ("cortex-m33+nodsp", "mps2-an521"),
        ("cortex-m33", "mps3-an547"),
        ("cortex-m55", "mps3-an547"),
        ("cortex-m85", "mps3-an547"),
        ("cortex-m", "mps2-an386"),
    ],
)
def test_the_nearest_board_whose_core_runs_the_code(plan: Plan, core: str, board: str) -> None:
    placement = place_on_board(on_core(plan, core, FLASH, DTCM))
    assert placement.board.name == board
    assert placement.stand_in is not None
    has = placement.board.isa.name
    assert (f"whose {has} runs the code for {core}" in placement.stand_in.text) is (has != core)
    # What is counted are the instructions of the target's core, where it is one.
    assert placement.isa.name == (core if core != "cortex-m" else has)


def test_what_is_used_keeps_its_size_and_its_alignment_and_lies_apart(plan: Plan) -> None:
    odd = replace(DTCM, base=0x20000100)
    placement = place_on_board(on_core(plan, "cortex-m7", FLASH, odd, memory("far", 1 << 30, 0x90000000)))
    assert [place.memory.name for place in placement.places] == ["flash", "dtcm"]  # nothing is in 'far'
    for place in placement.places:
        assert place.size_bytes == place.memory.size_bytes
        assert place.base % 4096 == (place.memory.base or 0) % 4096
        whole = placement.board.target.memory(place.board_memory)
        assert whole.offset_of(place.base, place.size_bytes) == place.offset
    assert {place.memory.name: place.is_moved for place in placement.places} == {"flash": True, "dtcm": False}
    flash, dtcm = placement.places
    assert flash.board_memory != dtcm.board_memory or flash.end <= dtcm.offset or dtcm.end <= flash.offset
    assert placement.stand_in is not None
    assert (
        placement.stand_in.text
        == f"mps2-an500; moved: flash (2MiB at 0x08000000) to {flash.base:#010x} in ssram23"
    )


def test_code_keeps_room_where_it_begins(plan: Plan) -> None:
    """The flash of many microcontrollers is where the board's code begins."""
    for size_bytes, is_moved in ((200 * KIB, True), (MIB, False)):
        flash = memory("flash", size_bytes, 0, written=False)
        placement = place_on_board(on_core(plan, "cortex-m4", flash, DTCM))
        assert [place.is_moved for place in placement.places] == [is_moved, False]


def test_what_is_written_is_not_moved_into_memory_that_cannot_be(plan: Plan) -> None:
    """The largest memory of the board with a Cortex-M55 that is free of code and data can only be read."""
    moved = moves(place_on_board(on_core(plan, "cortex-m55", FLASH, memory("dtcm", 7 * MIB, 0x40000000))))
    assert moved["dtcm"] == "ddr"
    whole = memory("flash", 7 * MIB, 0x08000000, written=False)
    assert moves(place_on_board(on_core(plan, "cortex-m55", whole, DTCM)))["flash"] == "flash"


def test_memories_without_addresses_or_sizes_have_room_for_what_is_in_them(plan: Plan) -> None:
    nowhere = on_core(
        plan, "cortex-m4", memory("flash", None, None, written=False), memory("dtcm", 16384, None)
    )
    placement = place_on_board(nowhere)
    sizes = {place.memory.name: place.size_bytes for place in placement.places}
    assert sizes["dtcm"] == 16384
    assert plan.pools["flash"].used_bytes < sizes["flash"] < MIB


def test_another_board_is_taken_before_a_target_is_refused(plan: Plan) -> None:
    """16 MiB and a byte are more than any piece of the board with a Cortex-M7."""
    large = memory("flash", 16 * MIB + 1, 0x08000000, written=False)
    placement = place_on_board(on_core(plan, "cortex-m7", large, DTCM))
    assert (placement.board.name, moves(placement)["flash"]) == ("mps3-an547", "ddr")


def test_missing_bytes_are_said_by_board(plan: Plan) -> None:
    diagnostic = refusal(
        on_core(plan, "cortex-m7", memory("flash", 3 << 30, 0x80000000, written=False), DTCM)
    )
    assert diagnostic.code == "BW204"
    assert diagnostic.message == "no board that QEMU emulates can run a bundle for target 'mine'"
    an547, an521, an500, an386 = diagnostic.notes
    for note, board, most in ((an547, "mps3-an547", 2 << 30), (an500, "mps2-an500", 16 * MIB)):
        found = re.fullmatch(
            rf"{board}: memory 'flash' needs {3 << 30} B in one piece, and (\d+) B are free: (\d+) B are missing",
            note,
        )
        assert found is not None, note
        free, missing = map(int, found.groups())
        assert missing == (3 << 30) - free
        assert most - MIB < free < most  # less what the harness keeps
    assert an521 == "mps2-an521: its cortex-m33+nodsp lacks dsp, fp32, fp64 of the cortex-m7 of device 'cpu'"
    assert an386.startswith("mps2-an386: its cortex-m4 lacks fp64")
    assert diagnostic.help is not None
    assert "smaller size in the target file" in diagnostic.help


def test_other_cores_have_no_board(plan: Plan) -> None:
    host = load_target("host")
    pools = {key: replace(pool, memory=host.memories[0].name) for key, pool in plan.pools.items()}
    diagnostic = refusal(replace(plan, hardware=host, pools=pools))
    assert diagnostic.notes[0] == "mps3-an547: it has a cortex-m55, device 'cpu' is a host"
    assert diagnostic.help == "no board has the core of device 'cpu': run it on the host, --on host"
