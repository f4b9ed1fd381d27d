"""kws on the mps3-an547 with parameters in DTCM and ISRAM, brought there in each way: where the bytes are in the image,
what `check --elf` says of it, and the output.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from elftools.elf.elffile import ELFFile

from bytewright.cli.main import bytewright
from bytewright.execute.run import run_bundle
from bytewright.record.plan_file import read_plan
from bytewright.target.dump import dump, dump_toml
from bytewright.target.load import load_description, load_text
from bytewright.target.model import Target
from support.apply_help import help_lines, with_target_lines
from support.board_image import image_of, link_again
from support.kws_program import expected_output
from support.loaded_parameters import (
    BOARD_FAST_BYTES,
    COMBINATIONS,
    Loader,
    Provider,
    board_target,
    loaded_bundle,
)
from support.shared_models import ramp

DTCM, ISRAM, FLASH = (
    range(0x20000000, 0x20080000),
    range(0x21000000, 0x21400000),
    range(0x28000000, 0x28800000),
)
# The harness's arrays: workspaces, and what a combination takes from the application.
WORKSPACES = ("dtcm=harness_workspace_0",)
ARRAYS: dict[tuple[Loader, Provider], tuple[str, ...]] = {
    ("linker", "generated"): (),
    ("linker", "caller"): ("fast=harness_blob_0", "middle=harness_blob_1"),
    ("copy", "generated"): (),
    ("copy", "caller"): (
        *("fast=harness_copy_0", "fast.load=harness_blob_0"),
        *("middle=harness_copy_1", "middle.load=harness_blob_1"),
    ),
}


def check(folder: Path, elf: Path, *names: str) -> tuple[int, str, str]:
    """Exit status, and what was printed; of what is wrong the text, without the line of JSON behind it."""
    symbols = [word for name in (*WORKSPACES, *names) for word in ("--symbol", name)]
    done = CliRunner().invoke(bytewright, ["check", str(folder), "--elf", str(elf), *symbols, "--json"])
    return done.exit_code, done.stdout, done.stderr.partition('{"errors"')[0]


def loaded_bytes(elf: Path) -> list[tuple[int, int, bytes]]:
    """What the image brings: run address, load address and bytes of each segment that has bytes."""
    with elf.open("rb") as stream:
        segments = ELFFile(stream).iter_segments("PT_LOAD")
        return [(s["p_vaddr"], s["p_paddr"], s.data()) for s in segments if s["p_filesz"]]


def parameters(folder: Path, pool: str) -> bytes:
    """The bytes of a pool, as the bundle has them for an application."""
    text = (folder / "include" / f"kws_ref_model_{pool}_parameters.inc").read_text()
    return bytes(int(number) for number in text.replace("\n", "").split(",")[:-1])


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_the_output_is_the_references(load: Loader, provider: Provider) -> None:
    folder = loaded_bundle(board_target(load, provider))
    (output,) = run_bundle(folder, [ramp((1, 49, 10, 1))], on="qemu").outputs
    np.testing.assert_array_equal(output.ravel(), expected_output())


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_the_stack_is_proved_of_what_copies_too(load: Loader, provider: Provider) -> None:
    folder = loaded_bundle(board_target(load, provider))
    done = CliRunner().invoke(bytewright, ["check", str(folder), "--stack"])
    assert (done.exit_code, done.stderr) == (0, "")
    assert "worst path: kws_ref_model_run" in done.stdout


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_the_image_brings_the_bytes_to_flash_alone(load: Loader, provider: Provider) -> None:
    """QEMU puts every segment at its load address, so what is found in DTCM was copied from flash by the program."""
    folder = loaded_bundle(board_target(load, provider))
    segments = loaded_bytes(image_of(folder))
    for pool, memory in (("fast", DTCM), ("middle", ISRAM)):
        content = parameters(folder, pool)
        places = [(run, kept) for run, kept, data in segments if content in data]
        assert len(places) == 1
        run, kept = places[0]
        assert kept in FLASH
        assert run in (memory if load == "linker" else FLASH)


@pytest.mark.parametrize(("load", "provider"), COMBINATIONS)
def test_check_elf_proves_both_places(load: Loader, provider: Provider) -> None:
    folder = loaded_bundle(board_target(load, provider))
    status, text, errors = check(folder, image_of(folder), *ARRAYS[load, provider])
    assert (status, errors) == (0, "")
    image = json.loads(text)["image"]
    plan = read_plan(folder)
    assert (image["parameter_bytes"], image["separate"]) == (plan.parameter_bytes, [])
    found = [(entry["pool"], entry["memory"], entry["address"]) for entry in image["arrays"]]
    of = {"dtcm": DTCM, "isram": ISRAM, "flash": FLASH}
    assert all(address in of[memory] for _, memory, address in found)
    memories = {"fast": ["dtcm"], "middle": ["isram"], "flash": ["flash"], "dtcm": ["dtcm"]}
    if load == "copy":
        memories |= {"fast": ["dtcm", "flash"], "middle": ["isram", "flash"]}
    assert {pool: [m for name, m, _ in found if name == pool] for pool, _, _ in found} == memories


@pytest.mark.parametrize("provider", ["generated", "caller"])
def test_a_load_address_in_another_memory_is_refused(provider: Provider, tmp_path: Path) -> None:
    folder = loaded_bundle(board_target("linker", provider))
    elf = link_again(
        folder, tmp_path / "moved.elf", old="> memory_dtcm AT> memory_flash", new="> memory_dtcm"
    )
    status, _, errors = check(folder, elf, *ARRAYS["linker", provider])
    assert status == 4
    assert "is loaded from 0x20000000..0x2000" in errors
    assert "in memory 'dtcm', not from 'flash'" in errors
    assert "pool 'middle'" not in errors


def test_a_load_address_outside_of_all_memories_is_refused(tmp_path: Path) -> None:
    folder = loaded_bundle(board_target("linker", "generated"))
    change = "> memory_dtcm AT> memory_flash", "> memory_dtcm AT> harness_far"
    elf = link_again(
        folder, tmp_path / "far.elf", *_with_region(folder, tmp_path), old=change[0], new=change[1]
    )
    status, _, errors = check(folder, elf)
    assert status == 4
    last = 0x50000000 + BOARD_FAST_BYTES - 1
    assert f"is loaded from 0x50000000..0x{last:x}, in no memory of the target, not from 'flash'" in errors


def without_source(provider: Provider, *, with_flash: bool = True) -> Target:
    """The same pools, but the target does not say where their bytes are kept."""
    description: dict[str, Any] = dump(board_target("linker", provider))
    for pool in description["parameters"]:
        pool.pop("from", None)
    for pool in (*description["workspace"], *description["parameters"]):
        if pool.pop("remainder", False):
            pool["size"] = "1MiB"  # a size that stays when other pools change
    if not with_flash:
        description["memory"]["flash"]["access"] = "rw"
    return load_description(description, "board")


@pytest.mark.parametrize("provider", ["generated", "caller"])
def test_parameters_that_are_loaded_to_memory_that_can_be_written_are_refused(provider: Provider) -> None:
    """In QEMU the bytes are there; when the power comes they are not. The help leads to an image that is right."""
    target = without_source(provider)
    folder = loaded_bundle(target)
    status, text, errors = check(folder, image_of(folder), *ARRAYS["linker", provider])
    assert (status, text) == (4, "")
    for pool, first, memory in (("fast", "0x2000", "dtcm"), ("middle", "0x2100", "isram")):
        (note,) = [line for line in errors.splitlines() if f"pool '{pool}'" in line]
        assert f"is loaded from {first}" in note
        assert f"in memory '{memory}', which is not read-only" in note
    assert "pool 'flash'" not in errors
    assert help_lines(errors) == [
        'in the target file: [[parameters]] fast from = "flash", [[parameters]] middle from = "flash"'
    ]
    mended = load_text(with_target_lines(dump_toml(target), errors), "mended.toml")
    right = loaded_bundle(mended)
    status, _, errors = check(right, image_of(right), *ARRAYS["linker", provider])
    assert (status, errors) == (0, "")


def test_where_no_memory_is_read_only_the_program_is_loaded_with_its_parameters() -> None:
    folder = loaded_bundle(without_source("generated", with_flash=False))
    status, _, errors = check(folder, image_of(folder))
    assert (status, errors) == (0, "")


def _with_region(folder: Path, tmp_path: Path) -> tuple[str, ...]:
    """One more region, in a script of its own that comes before."""
    script = tmp_path / "region.ld"
    script.write_text("MEMORY { harness_far (rw) : ORIGIN = 0x50000000, LENGTH = 1M }\n")
    image_of(folder)
    return ("-Wl,-T", f"-Wl,{script}")


def test_an_array_that_is_copied_must_lie_where_it_is_kept(tmp_path: Path) -> None:
    """In ISRAM the bytes would be there in QEMU, but not after the power comes."""
    folder = loaded_bundle(board_target("copy", "generated"))
    old = ".memory.flash : ALIGN(32) { *(.blob.memory.flash) *(.flash .flash.*) } > memory_flash"
    elf = link_again(folder, tmp_path / "moved.elf", old=old, new=old.replace("memory_flash", "memory_isram"))
    status, _, errors = check(folder, elf)
    assert status == 4
    for pool in ("fast", "middle"):
        assert f"pool '{pool}': 'kws_ref_model_{pool}_parameters_load' is at 0x2100" in errors
    assert errors.count("in memory 'isram', not in 'flash'") == 3  # the pool 'flash' too


def test_memory_that_is_copied_to_must_be_there_and_a_blob_need_not() -> None:
    """The blobs may be flashed for themselves."""
    folder = loaded_bundle(board_target("copy", "caller"))
    status, text, _ = check(folder, image_of(folder), "fast=harness_copy_0", "middle=harness_copy_1")
    assert (status, json.loads(text)["image"]["separate"]) == (0, ["fast", "middle"])
    status, _, errors = check(folder, image_of(folder), "fast.load=harness_blob_0", "middle=harness_copy_1")
    assert status == 4
    assert "pool 'fast': there is no symbol 'kws_ref_model_fast_parameters'" in errors
    assert "name its array with --symbol fast=NAME" in errors
    swapped = ("fast=harness_copy_0", "middle=harness_copy_1", "fast.load=harness_blob_1")
    status, _, errors = check(folder, image_of(folder), *swapped)
    assert status == 4
    assert "pool 'fast': " in errors
    assert "'harness_blob_1' holds other bytes than the plan's" in errors
    status, _, errors = check(folder, image_of(folder), "flash.load=harness_blob_0")
    assert status == 1
    assert "the plan has no pool 'flash.load'" in errors
