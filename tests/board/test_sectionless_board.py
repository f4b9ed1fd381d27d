"""Targets without linker sections, on the mps3-an547: every array lies in its own memory, or the run is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.execute.boards.image import BoardImage, build_image
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.run import run_bundle
from bytewright.record.plan_file import read_plan
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.model import Target
from support.kws_program import expected_output
from support.loaded_parameters import Loader, board_target, loaded_bundle
from support.shared_models import ramp

pytestmark = pytest.mark.board

MEMORIES = {
    "dtcm": range(0x20000000, 0x20080000),
    "isram": range(0x21000000, 0x21400000),
    "flash": range(0x28000000, 0x28800000),
}


def sectionless(load: Loader) -> Target:
    """Arrays of every kind, declared by the bundle, in memories without sections; two workspaces have bytes."""
    description: dict[str, Any] = dump(board_target(load, "generated"))
    for memory in description["memory"].values():
        memory.pop("section", None)
    dtcm, isram = description["workspace"]
    dtcm |= {"size": "8KiB", "provider": "generated"}
    isram |= {"provider": "generated"}
    return load_description(description, "sectionless")


def image(bundle: Bundle, folder: Path, *flags: str) -> BoardImage:
    folder.mkdir()
    return build_image(bundle, place_on_board(bundle.plan), folder, BuildOptions(("-O1", *flags)))


@pytest.mark.parametrize("load", ["linker", "copy"])
def test_every_array_lies_in_the_memory_of_its_pool(load: Loader, tmp_path: Path) -> None:
    folder = loaded_bundle(sectionless(load))
    arrays = {array.place.name: array.place for array in image(read_bundle(folder), tmp_path / "i").arrays}
    places = {f"{pool.role} {pool.name}": pool.memory for pool in read_plan(folder).pools.values()}
    assert set(places.values()) == set(MEMORIES)
    if load == "copy":
        places |= {"parameters fast.load": "flash", "parameters middle.load": "flash"}
    for name, memory in places.items():
        assert arrays[name].first in MEMORIES[memory], name
        assert arrays[name].last in MEMORIES[memory], name
    (output,) = run_bundle(folder, [ramp((1, 49, 10, 1))], on="qemu").outputs
    np.testing.assert_array_equal(output.ravel(), expected_output())


def test_an_array_that_the_linker_script_does_not_find_is_refused(tmp_path: Path) -> None:
    """Without a section for each array, all of a file would go where the linker puts the rest."""
    folder = loaded_bundle(sectionless("copy"))
    with pytest.raises(CompileError) as caught:
        image(read_bundle(folder), tmp_path / "i", "-fno-data-sections")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW405"
    assert diagnostic.message == (
        "the image of model 'kws_ref_model' for mps3-an547 is not what its plan says"
    )
    faults = {note.split(": ")[0]: note for note in diagnostic.notes}
    assert set(faults) == {f"pool '{name}'" for name in ("dtcm", "isram", "fast", "middle", "flash")}
    assert "'kws_ref_model_flash_parameters' is at 0x1000" in faults["pool 'flash'"]
    assert faults["pool 'flash'"].endswith("in memory 'itcm', not in 'flash'")
    assert faults["pool 'isram'"].endswith("in memory 'ddr', not in 'isram'")
    assert diagnostic.help is not None
    assert "give a `section` to memory 'dtcm' and 'isram' and 'flash'" in diagnostic.help


def test_sections_in_the_target_mend_it_as_the_help_says(tmp_path: Path) -> None:
    """The same flag does no harm where every memory has a section."""
    folder = loaded_bundle(board_target("copy", "generated"))
    found = image(read_bundle(folder), tmp_path / "i", "-fno-data-sections")
    assert {array.planned.memory for array in found.arrays if array.planned.pool is not None} == set(MEMORIES)
    assert all(
        array.place.first in MEMORIES[array.planned.memory] for array in found.arrays if array.planned.memory
    )
