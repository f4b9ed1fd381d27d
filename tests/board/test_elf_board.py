"""`check --elf` on images for the mps3-an547, as they should be and corrupted; and a paranoid run there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check_elf import check_elf
from bytewright.options import Options, Rows
from bytewright.record.plan_file import read_plan
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support import shared_models as models
from support.board_image import image_of, link_again
from support.corrupt_plan import move_buffer, overlapping_pair

NAMES = ("--symbol", "dtcm=harness_workspace_0", "--symbol", "isram=harness_workspace_1")


@pytest.fixture(scope="module")
def vww(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that needs two memories, so of whole tensors, with its image beside it."""
    workspaces = (parse_pool_option("dtcm=32KiB"), parse_pool_option("isram=64KiB"))
    target = apply_overrides(load_target("mps3-an547"), Overrides(workspace=workspaces))
    folder = tmp_path_factory.mktemp("vww") / "bundle"
    write_bundle(
        compile_model(models.model_path(models.VWW), target, Options(name="vww", rows=Rows.OFF)).files, folder
    )
    image_of(folder)
    return folder


def check(vww: Path, elf: Path, *options: str) -> Result:
    return CliRunner().invoke(bytewright, ["check", str(vww), "--elf", str(elf), *options])


def refusal(vww: Path, elf: Path, *options: str, code: str = "BW405", status: int = 4) -> str:
    done = check(vww, elf, *options)
    assert (done.exit_code, done.stdout) == (status, "")
    assert f"error[{code}]" in done.stderr
    return done.stderr


def test_the_arrays_lie_in_their_memories(vww: Path) -> None:
    done = check(vww, image_of(vww), *NAMES, "--json")
    assert done.exit_code == 0
    image = json.loads(done.stdout)["image"]
    plan = read_plan(vww)
    assert {
        entry["pool"]: (entry["memory"], entry["address"], entry["size_bytes"]) for entry in image["arrays"]
    } == {
        "dtcm": ("dtcm", 0x20000000, plan.pools["dtcm"].used_bytes),
        "isram": ("isram", 0x21000000, plan.pools["isram"].used_bytes),
        "flash": ("flash", 0x28000000, plan.pools["flash"].used_bytes),
    }
    assert image["parameter_bytes"] == plan.parameter_bytes
    assert [entry["name"] for entry in image["reserved"]] == ["the stack (__StackLimit to __StackTop)"]
    text = check(vww, image_of(vww), *NAMES).stdout
    assert "19232 B at 0x20000000 in dtcm, aligned, apart from all else" in text


def test_an_array_in_another_memory(vww: Path, tmp_path: Path) -> None:
    moved = link_again(
        vww,
        tmp_path / "moved.elf",
        old="{ *(.bss.memory.isram.isram) } > memory_isram",
        new="{ *(.bss.memory.isram.isram) } > memory_ddr"
        if "memory_ddr" in (image_of(vww).parent / "board.ld").read_text()
        else "",
    )
    message = refusal(vww, moved, *NAMES)
    assert "pool 'isram': 'harness_workspace_1' is at 0x600" in message
    assert "in memory 'ddr', not in 'isram'" in message
    assert "pool 'dtcm'" not in message


def test_an_array_that_meets_another_through_an_alias(vww: Path, tmp_path: Path) -> None:
    """The linker sees two addresses; the memory is one."""
    moved = link_again(
        vww,
        tmp_path / "alias.elf",
        old="    .memory.isram.empty (NOLOAD) : ALIGN(32) { *(.bss.memory.isram.isram) } > memory_isram",
        new="    .memory.isram.empty 0x30000100 (NOLOAD) : { *(.bss.memory.isram.isram) }",
    )
    message = refusal(vww, moved, *NAMES)
    assert "'harness_workspace_1' is at 0x30000100..0x300090ff, in memory 'dtcm', not in 'isram'" in message
    assert f"shares {19232 - 0x100} B with pool 'dtcm' at 0x20000000..0x20004b1f" in message


def test_a_stack_over_an_array(vww: Path, tmp_path: Path) -> None:
    flags = ("-Wl,--defsym=_estack=0x30004b60", "-Wl,--defsym=_Min_Stack_Size=0x100")
    message = refusal(vww, link_again(vww, tmp_path / "stack.elf", *flags), *NAMES)
    assert "shares 192 B with the stack (_Min_Stack_Size below _estack) at 0x30004a60..0x30004b5f" in message


def test_a_stack_that_is_smaller_than_promised(vww: Path, tmp_path: Path) -> None:
    promised = read_plan(vww).stack["cpu"].size_bytes
    for size, is_enough in ((0x100, False), (0, False), (promised + 1023, False), (promised + 1024, True)):
        flags = (f"-Wl,--defsym=_Min_Stack_Size={size}", "-Wl,--defsym=_estack=__StackTop")
        elf = link_again(vww, tmp_path / f"stack{size}.elf", *flags)
        if is_enough:
            assert check(vww, elf, *NAMES).exit_code == 0
        else:
            message = refusal(vww, elf, *NAMES)
            assert (
                f"the stack (_Min_Stack_Size below _estack) has {size} B, but the model is promised {promised} B and "
                f"the target reserves 1024 B: {promised + 1024 - size} B too few" in message
            )


def test_a_heap_over_an_array(vww: Path, tmp_path: Path) -> None:
    flags = ("-Wl,--defsym=__HeapBase=0x21008ff0", "-Wl,--defsym=__HeapLimit=0x21010000")
    message = refusal(vww, link_again(vww, tmp_path / "heap.elf", *flags), *NAMES)
    assert "'harness_workspace_1' at 0x21000000..0x21008fff shares 16 B with the heap" in message


def test_a_misaligned_array(vww: Path, tmp_path: Path) -> None:
    odd = link_again(vww, tmp_path / "odd.elf", "-Wl,--defsym=odd=0x20000008")
    message = refusal(vww, odd, "--symbol", "dtcm=odd", *NAMES[2:])
    assert "pool 'dtcm': 'odd' is at 0x20000008, 8 B past a multiple of 16" in message


def test_a_flipped_parameter_byte(vww: Path, tmp_path: Path) -> None:
    content = bytearray((image_of(vww)).read_bytes())
    inc = (vww / "include" / "vww_flash_parameters.inc").read_text(encoding="utf-8")
    expected = bytes(int(number) for number in inc.replace("\n", "").split(",")[:-1])
    at = content.find(expected)
    assert at > 0
    content[at + 12345] ^= 0x40
    (tmp_path / "flipped.elf").write_bytes(content)
    message = refusal(vww, tmp_path / "flipped.elf", *NAMES)
    was, now = expected[12345], expected[12345] ^ 0x40
    assert (
        f"holds other bytes than the plan's: 1 B differ, the first at offset 12345, {now} for {was}"
        in message
    )


def test_parameters_without_bytes(vww: Path, tmp_path: Path) -> None:
    old = "    .memory.flash : ALIGN(32)"
    link_again(vww, tmp_path / "empty.elf", old=old, new="    .memory.flash (NOLOAD) : ALIGN(32)")
    message = refusal(vww, tmp_path / "empty.elf", *NAMES)
    assert "section '.memory.flash' of 'vww_flash_parameters' brings no bytes into the image" in message


def test_an_array_that_is_not_there(vww: Path) -> None:
    message = refusal(vww, image_of(vww))
    assert (
        "pool 'dtcm': there is no symbol 'vww_dtcm_workspace'; name its array with --symbol dtcm=NAME"
        in message
    )


def test_an_array_that_is_too_small(vww: Path) -> None:
    plan = read_plan(vww)
    names = {"dtcm": "harness_output_0", "isram": "harness_workspace_1"}
    with pytest.raises(CompileError, match=r"'harness_output_0' has 2 B, the plan uses 19232 B"):
        check_elf(vww, plan, image_of(vww), names)


def test_files_that_are_no_image(vww: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.elf"
    text.write_text("hello", encoding="utf-8")
    elf = (image_of(vww)).read_bytes()
    (tmp_path / "short.elf").write_bytes(elf[:400])
    subprocess.run(
        ["arm-none-eabi-strip", str(image_of(vww)), "-o", str(tmp_path / "stripped.elf")],
        check=True,
        timeout=60,
    )
    for path, words in (
        (text, "is not an ELF file"),
        (tmp_path / "short.elf", ""),
        (tmp_path / "stripped.elf", "has no symbols"),
        (image_of(vww).parent / "bundle_vww.o", "is not linked"),
        (tmp_path / "missing.elf", "No such file"),
    ):
        assert words in refusal(vww, path, *NAMES, code="BW208", status=1)


def test_wrong_options(vww: Path) -> None:
    elf = image_of(vww)
    assert "has no pool 'sram'" in refusal(vww, elf, "--symbol", "sram=x", code="BW204", status=1)
    assert check(vww, elf, "--symbol", "dtcm").exit_code == 2
    assert check(vww, elf, *NAMES, *NAMES).exit_code == 2


def test_kws_keeps_to_its_plan_on_the_board(tmp_path: Path) -> None:
    folder = models.bundle(models.KWS, load_target("mps3-an547"))
    plan = read_plan(folder)
    run = run_paranoid(folder, on="qemu")
    assert run.num_steps == len(plan.steps)
    assert run.result.instructions is not None
    first, second = overlapping_pair(plan)
    moved = move_buffer(folder, tmp_path / "moved", second.name, first.place.offset or 0)
    with pytest.raises(CompileError) as caught:
        run_paranoid(moved, on="qemu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW404"
    assert any(f"where '{first.name}' lies" in note for note in diagnostic.notes)
