"""Parameters that are loaded from another memory: where harness and linker script put them."""

from dataclasses import replace
from pathlib import Path

import pytest

from bytewright.execute.boards.layout import lay_out, linker_script
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import model_table
from bytewright.execute.description import read_bundle
from bytewright.record.buffers import PlannedPool
from bytewright.target.model import Loader, Provider, Role
from support.tiny_bundle import write_tiny_bundle

FAST = PlannedPool(
    name="fast",
    c_name="fast",
    memory="dtcm",
    role=Role.PARAMETERS,
    provider=Provider.GENERATED,
    capacity_bytes=64,
    used_bytes=64,
    lower_bound_bytes=64,
    optimal=True,
    alignment=16,
    section=".fast",
    sha256="0" * 64,
    load_memory="flash",
)


def _table_of_fast(tmp_path: Path, **changes: object) -> dict[str, str]:
    """The table's macros for a bundle with one more parameter pool."""
    plan = read_bundle(write_tiny_bundle(tmp_path)).plan
    fast = replace(FAST, **{"provider": Provider.CALLER, **changes})
    text = model_table(replace(plan, pools={**plan.pools, "fast": fast}))
    return {
        words[1]: words[2] for words in (line.split(" ", 2) for line in text.splitlines()) if len(words) > 2
    }


def test_parameters_that_are_loaded_from_another_memory(tmp_path: Path) -> None:
    """A blob stands where its load address is: in a section of its own, or in the memory that keeps it."""
    table = _table_of_fast(tmp_path)
    assert table["HARNESS_BLOBS(ENTRY)"] == 'ENTRY(0, fast, "blob_0.bin", 16, ".blob.load.fast")'
    assert (table["HARNESS_NUM_COPIES"], table["HARNESS_HAS_OWN_COPIES"]) == ("0", "0")


@pytest.mark.parametrize(("kept_in", "section"), [("flash", ".blob.memory.flash"), (None, ".data.blob")])
def test_parameters_that_are_copied(tmp_path: Path, kept_in: str | None, section: str) -> None:
    table = _table_of_fast(tmp_path, load=Loader.COPY, load_memory=kept_in)
    assert table["HARNESS_BLOBS(ENTRY)"] == f'ENTRY(0, fast.from, "blob_0.bin", 16, "{section}")'
    size, alignment = "TINY_FAST_PARAMETERS_SIZE", "TINY_FAST_PARAMETERS_ALIGN"
    assert (
        table["HARNESS_COPIES(ENTRY)"] == f'ENTRY(0, fast.to, {size}, {alignment}, ".bss.memory.dtcm.fast")'
    )


def test_parameters_that_the_c_copies_to_its_own_array(tmp_path: Path) -> None:
    table = _table_of_fast(tmp_path, load=Loader.COPY, provider=Provider.GENERATED)
    assert (table["HARNESS_NUM_BLOBS"], table["HARNESS_NUM_COPIES"]) == ("0", "0")
    assert table["HARNESS_HAS_OWN_COPIES"] == "1"


def _script(tmp_path: Path, fast: PlannedPool) -> list[str]:
    plan = read_bundle(write_tiny_bundle(tmp_path)).plan
    plan = replace(plan, pools={**plan.pools, "fast": fast})
    script = linker_script(lay_out(place_on_board(plan)), plan)
    return [line.strip() for line in script.splitlines()]


def test_the_linker_script_gives_parameters_a_load_address(tmp_path: Path) -> None:
    lines = _script(tmp_path, FAST)
    section = ".memory.dtcm.load.tiny_fast_parameters"
    place = "> memory_dtcm AT> memory_flash"
    loaded = f"{section} : ALIGN(32) {{ *bundle_tiny_parameters.o(.fast .fast.*) . = ALIGN(4); }} {place}"
    entry = f"LONG(LOADADDR({section})) LONG(ADDR({section})) LONG(ADDR({section}) + SIZEOF({section}))"
    assert loaded in lines
    assert entry in lines
    # What follows in the same memory is loaded in place again.
    rest = [line for line in lines if line.startswith((".memory.dtcm :", ".memory.dtcm.empty"))]
    assert len(rest) == 2
    assert all(line.endswith("> memory_dtcm AT> memory_dtcm") for line in rest)
    assert lines.index(loaded) < lines.index(rest[0])


def test_the_linker_script_finds_a_blob_with_a_load_address(tmp_path: Path) -> None:
    lines = _script(tmp_path, replace(FAST, provider=Provider.CALLER))
    assert any("*(.blob.load.fast)" in line and line.endswith("AT> memory_flash") for line in lines)


def test_copied_parameters_have_no_load_address(tmp_path: Path) -> None:
    lines = _script(tmp_path, replace(FAST, load=Loader.COPY))
    assert not any("AT>" in line or line.startswith("LONG") for line in lines)
    assert any(line.startswith(".memory.dtcm :") and "*(.fast .fast.*)" in line for line in lines)
