"""The memory protection round a run on the mps3-an547: vww is exact under it, and every stray access faults."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.boards.arrays import ImageArray
from bytewright.execute.boards.counts import address_of
from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.boards.image import BoardImage, build_image
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.boards.protection import Rights, disjoint_regions
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.run import run_batch, run_bundle
from bytewright.options import Options, Rows
from bytewright.record.plan_file import read_plan
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support import shared_models as models
from support.reference import LiteRt
from support.tiny_bundle import ADD, COUNT, expected_sum, write_tiny_bundle

pytestmark = pytest.mark.board

BOARD = "mps3-an547"
FORBIDDEN = "a data access that the memory protection unit forbids"
TINY_INPUT = (np.arange(COUNT) * 16 - 128).astype(np.int8).reshape(1, COUNT)


@dataclass(frozen=True)
class Built:
    folder: Path
    image: BoardImage

    def array(self, name: str) -> ImageArray:
        (found,) = [array for array in self.image.arrays if array.place.name == name]
        return found

    def first(self, name: str) -> int:
        return self.array(name).place.first

    def last(self, name: str) -> int:
        return self.array(name).place.last

    def symbol(self, name: str) -> int:
        return address_of(self.image.symbols, name)


@pytest.fixture(scope="module")
def vww(tmp_path_factory: pytest.TempPathFactory) -> Built:
    workspaces = (parse_pool_option("dtcm=32KiB"), parse_pool_option("isram=64KiB"))
    target = apply_overrides(load_target(BOARD), Overrides(workspace=workspaces))
    folder = tmp_path_factory.mktemp("vww")
    whole = Options(name="vww", rows=Rows.OFF)  # by rows it needs one memory alone
    write_bundle(compile_model(models.model_path(models.VWW), target, whole).files, folder / "bundle")
    bundle = read_bundle(folder / "bundle")
    (folder / "image").mkdir()
    image = build_image(bundle, place_on_board(bundle.plan), folder / "image", BuildOptions())
    return Built(folder / "bundle", image)


def check_outputs(folder: Path) -> None:
    reference = LiteRt(models.model_content(models.VWW, False))
    batch = models.random_inputs(models.VWW, 3, seed=4)
    for inputs, outputs in zip(batch, run_batch(folder, batch, on="qemu").outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


def test_vww_in_two_workspaces_is_exact_under_protection(vww: Built) -> None:
    """The arrays lie in DTCM and ISRAM, and a run may write exactly what it is said to, in whole granules."""
    pools = read_plan(vww.folder).pools
    assert (vww.first("workspace dtcm"), vww.first("workspace isram")) == (0x20000000, 0x21000000)
    for name in ("dtcm", "isram"):
        size_bytes = vww.last(f"workspace {name}") + 1 - vww.first(f"workspace {name}")
        assert size_bytes == pools[name].used_bytes
    assert 0x20000000 <= vww.first("stack") < vww.last("stack") < 0x20080000
    written = {array.place.name for array in vww.image.arrays if array.is_writable}
    assert written == {"workspace dtcm", "workspace isram", "stack", "context", "output identity_int8"}
    arrays = [
        (vww.first(name), vww.last(name) + 1, Rights.WRITE)
        for name in ("workspace dtcm", "workspace isram", "stack")
    ]
    # Context and outputs lie together, and with nothing that is not written.
    own = [vww.first("context"), vww.first("output identity_int8")]
    arrays.append((min(own), vww.symbol("__harness_writable_end"), Rights.WRITE))
    assert [region for region in vww.image.regions if region.access is Rights.WRITE] == list(
        disjoint_regions(arrays)
    )
    assert vww.symbol("__harness_writable_end") - vww.symbol("__harness_bss_start") == 32
    check_outputs(vww.folder)


def strays(built: Built) -> dict[str, tuple[int, str]]:
    """Addresses that no run may write, and what the refusal says of them."""
    only_read, untouchable = "the run may only read it", "the run may not touch it"
    end_of_stack = built.last("stack") + 1
    return {
        "past a pool": (
            built.last("workspace isram") + 1,
            f"in memory isram, 1 B past the last byte of workspace isram; {untouchable}",
        ),
        "past a pool, where the stack follows": (
            built.last("workspace dtcm") + 1,
            f"in memory dtcm, 1 B past the last byte of workspace dtcm; {untouchable}",
        ),
        "before the stack": (
            built.first("stack") - 1,
            f"in memory dtcm, 1 B before the first byte of stack; {untouchable}",
        ),
        "before a pool": (
            built.first("workspace isram") - 1,
            f"in no memory of the target, 1 B before the first byte of workspace isram; {untouchable}",
        ),
        "past the stack": (
            end_of_stack + -end_of_stack % 32,
            f"B past the last byte of stack; {untouchable}",
        ),
        "another address of a pool": (
            built.first("workspace dtcm") + 0x10000000,
            f"in memory dtcm; {untouchable}",
        ),
        "past the outputs": (built.symbol("__harness_writable_end"), "in memory ddr, "),
        "an input": (built.first("input input_1_int8") + 5, f"byte 5 of input input_1_int8; {only_read}"),
        "the parameters": (
            built.first("parameters flash") + 100,
            f"byte 100 of parameters flash; {only_read}",
        ),
        "data of the application": (built.symbol("harness_stack"), f"; {only_read}"),
        "the stack of the application": (built.symbol("__harness_main_stack_top") - 4, f"; {only_read}"),
        "code": (built.symbol("vww_run"), f"in memory itcm; {only_read}"),
        "a peripheral": (0x49303000, f"in no memory of the target; {untouchable}"),
    }


def stray_bundle(built: Built, folder: Path, statement: str) -> Path:
    """The bundle with one more statement in its last kernel."""
    shutil.copytree(built.folder, folder)
    kernels = folder / "src" / "vww_kernels.c"
    text, count = re.subn(
        r"(void vww_softmax_\d+\([^)]*\)\n\{\n)", rf"\g<1>    {statement}\n", kernels.read_text()
    )
    assert count == 1
    kernels.write_text(text)
    return folder


def refusal(folder: Path, *inputs: Any) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        run_bundle(folder, list(inputs), on="qemu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW502"
    return diagnostic


@pytest.mark.parametrize(
    "where",
    [
        "past a pool",
        "past a pool, where the stack follows",
        "before the stack",
        "before a pool",
        "past the stack",
        "another address of a pool",
        "past the outputs",
        "an input",
        "the parameters",
        "data of the application",
        "the stack of the application",
        "code",
        "a peripheral",
    ],
)
def test_a_stray_store_of_a_kernel_faults(vww: Built, tmp_path: Path, where: str) -> None:
    address, words = strays(vww)[where]
    folder = stray_bundle(vww, tmp_path / "bundle", f"*(volatile int8_t *){address:#x}u = 1;")
    diagnostic = refusal(folder, *models.random_inputs(models.VWW, 1, seed=4)[0])
    assert diagnostic.message == f"model 'vww' faulted on {BOARD}: {FORBIDDEN}"
    place, origin, registers = diagnostic.notes
    assert place.startswith(f"address {address:#010x} (MMFAR): ")
    assert words in place
    assert "in vww_softmax_" in origin
    assert registers.startswith("CFSR 0x00000082, ")  # MMARVALID and DACCVIOL


def test_without_the_protection_stray_stores_go_unnoticed(
    vww: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ("past a pool", "past the stack", "past the outputs", "an input", "the stack of the application")
    stores = " ".join(f"*(volatile int8_t *){strays(vww)[where][0]:#x}u = 1;" for where in places)
    folder = stray_bundle(vww, tmp_path / "bundle", stores)
    monkeypatch.setitem(BOARDS, BOARD, replace(BOARDS[BOARD], num_protected_regions=0))
    check_outputs(folder)


def test_arrays_lie_next_to_each_other_where_a_memory_has_no_room_for_gaps(tmp_path: Path) -> None:
    """DTCM has 16 B of workspace and a stack of 8 KiB; a gap begins at the next granule."""
    description: dict[str, Any] = dump(load_target(BOARD))
    description["workspace"] = [{"name": "dtcm", "memory": "dtcm", "size": 16}]
    for size_bytes, stack_offset in ((8192 + 16, 16), (8192 + 63, 16), (8192 + 64, 64)):
        description["memory"]["dtcm"]["size"] = size_bytes
        target = load_description(description)
        folder = write_tiny_bundle(tmp_path / f"bundle{size_bytes}", target=target)
        image_folder = tmp_path / f"image{size_bytes}"
        image_folder.mkdir()
        bundle = read_bundle(folder)
        image = build_image(bundle, place_on_board(bundle.plan), image_folder, BuildOptions())
        built = Built(folder, image)
        assert built.first("workspace dtcm") == 0x20000000
        assert built.first("stack") == 0x20000000 + stack_offset
        assert (run_bundle(folder, [TINY_INPUT], on="qemu").outputs[0] == expected_sum(TINY_INPUT)).all()


def test_more_memories_than_regions_are_refused(tmp_path: Path) -> None:
    """Before the runs each memory has a region, and none is left out in silence."""
    description: dict[str, Any] = dump(load_target(BOARD))
    del description["memory"]["ddr"]
    reach = [name for name in description["device"]["cpu"]["reach"] if name != "ddr"]
    description["device"]["cpu"]["reach"] = reach
    for count, is_fine in ((11, True), (12, False)):
        more = {f"m{n}": {"base": 0x60000000 + n * 0x10000, "size": 4096} for n in range(1, count + 1)}
        target = load_description(description | {"memory": description["memory"] | more})
        folder = write_tiny_bundle(tmp_path / f"bundle{count}", target=target)
        if is_fine:
            run_bundle(folder, [TINY_INPUT], on="qemu")
            continue
        with pytest.raises(CompileError) as caught:
            run_bundle(folder, [TINY_INPUT], on="qemu")
        (diagnostic,) = caught.value.diagnostics
        assert (diagnostic.code, diagnostic.message) == (
            "BW204",
            f"setting up a run on {BOARD} needs 17 regions of memory protection, the board has 16",
        )
        assert diagnostic.help == "leave memories that the model does not use out of the target file"


def test_a_stray_load_faults(vww: Built, tmp_path: Path) -> None:
    address = vww.last("workspace isram") + 1
    folder = stray_bundle(vww, tmp_path / "bundle", f"(void)*(volatile int8_t *){address:#x}u;")
    diagnostic = refusal(folder, *models.random_inputs(models.VWW, 1, seed=4)[0])
    assert diagnostic.message.endswith(FORBIDDEN)
    assert f"address {address:#010x} (MMFAR)" in diagnostic.notes[0]


def test_a_store_to_parameters_of_the_application_is_described(tmp_path: Path) -> None:
    store = "    *(volatile int8_t *)(uintptr_t)context->constants = 1;\n"
    diagnostic = refusal(write_tiny_bundle(tmp_path, blob=True, statements=store + ADD), TINY_INPUT)
    assert diagnostic.message.endswith(FORBIDDEN)
    assert diagnostic.notes[0].endswith(": byte 32 of parameters flash; the run may only read it")


def test_a_store_below_the_stack_faults(tmp_path: Path) -> None:
    """The stack is limited for pointers, too. What lies below it here are parameters."""
    description: dict[str, Any] = dump(load_target(BOARD))
    description["workspace"] = [{"name": "isram", "memory": "isram", "size": "64KiB"}]
    description["parameters"] = [{"name": "weights", "memory": "dtcm", "size": "1KiB"}]
    target = load_description(description)
    fine = write_tiny_bundle(tmp_path / "fine", target=target)
    assert (run_bundle(fine, [TINY_INPUT], on="qemu").outputs[0] == expected_sum(TINY_INPUT)).all()
    (tmp_path / "image").mkdir()
    bundle = read_bundle(fine)
    image = build_image(bundle, place_on_board(bundle.plan), tmp_path / "image", BuildOptions())
    (stack,) = [array.place.first for array in image.arrays if array.place.name == "stack"]
    assert stack == 0x20000020
    below = f"    *(volatile int8_t *){stack - 1:#x}u = 1;\n"
    write_tiny_bundle(tmp_path / "below", target=target, statements=below + ADD)
    diagnostic = refusal(tmp_path / "below", TINY_INPUT)
    assert diagnostic.message.endswith(FORBIDDEN)
    assert diagnostic.notes[0] == (
        "address 0x2000001f (MMFAR): in memory dtcm, 1 B before the first byte of stack; "
        "the run may only read it"
    )


@pytest.mark.parametrize(
    ("statement", "message", "note"),
    [
        ("*(volatile uint32_t *)0xE000ED94u = 0;", "precise bus error", "address 0xe000ed94 (BFAR)"),
        ('__asm__ volatile("svc #0");', "an unexpected exception", "in tiny_run"),
    ],
)
def test_a_run_cannot_switch_the_protection_off(
    tmp_path: Path, statement: str, message: str, note: str
) -> None:
    """Even if it first makes itself privileged, which the processor ignores."""
    privileged = '    __asm__ volatile("msr control, %0\\n isb" : : "r"(2));\n'
    write_tiny_bundle(tmp_path, statements=f"{privileged}    {statement}\n{ADD}")
    diagnostic = refusal(tmp_path, TINY_INPUT)
    assert diagnostic.message == f"model 'tiny' faulted on {BOARD}: {message}"
    assert note in "\n".join(diagnostic.notes)


def test_errno_is_the_one_write_that_no_caller_asked_for(tmp_path: Path) -> None:
    """expf sets it where its result underflows."""
    underflow = "    volatile float least = -200.0f;\n    least = expf(least);\n"
    write_tiny_bundle(tmp_path, statements=underflow + ADD)
    entry = tmp_path / "src" / "tiny.c"
    entry.write_text("#include <math.h>\n" + entry.read_text())
    result = run_bundle(tmp_path, [TINY_INPUT], on="qemu", measure_memory=True)
    assert (result.outputs[0] == expected_sum(TINY_INPUT)).all()
    (harness,) = [entry for entry in result.details.traffic if entry.name == "memory ddr"]
    assert (harness.stores, harness.stored_bytes) == (1, 4)
