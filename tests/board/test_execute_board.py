"""Running a bundle on emulated boards: outputs, exact counts, stack, memory traffic, faults."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch, run_bundle
from bytewright.target.dump import dump
from bytewright.target.load import load_description
from bytewright.target.registry import load_target
from support.tiny_bundle import ADD, COUNT, expected_sum, write_tiny_bundle

pytestmark = pytest.mark.board

BOARDS = ["mps3-an547", "mps2-an521", "mps2-an500", "mps2-an386"]
X = (np.arange(COUNT) * 16 - 128).astype(np.int8).reshape(1, COUNT)


def refusal(directory: Path, timeout_seconds: float = 60) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        run_bundle(directory, [X], on="qemu", timeout_seconds=timeout_seconds)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW502"
    return diagnostic


def loop(num_turns: int) -> str:
    """A statement that executes 1 + 2 * num_turns instructions."""
    return f'    __asm__ volatile("movw r3, #{num_turns}\\n0: subs r3, r3, #1\\n bne 0b" ::: "r3", "cc");\n'


@pytest.mark.parametrize("board", BOARDS)
def test_output_count_and_stack(tmp_path: Path, board: str) -> None:
    write_tiny_bundle(tmp_path, target=board)
    first, second = (run_bundle(tmp_path, [X], on="qemu", repeat=2) for _ in range(2))
    assert (first.outputs[0] == expected_sum(X)).all()
    assert (first.on, first.target, first.details.board) == ("qemu", board, board)
    assert first.instructions == second.instructions
    assert len(set(first.details.instructions)) == 1
    assert first.stack_bytes == second.stack_bytes
    assert first.stack_bytes is not None
    assert 0 < first.stack_bytes < 128
    assert first.microseconds is None
    names = {entry.name for entry in first.details.functions}
    assert names == {"tiny_run", "tiny_add", "tiny_copy"}
    assert sum(entry.instructions for entry in first.details.functions) == first.instructions


@pytest.mark.parametrize("board", ["mps3-an547", "mps2-an521", "mps2-an386"])
def test_the_count_is_exact(tmp_path: Path, board: str) -> None:
    """A function of the test's own assembly: one to set up, two a turn, two to return."""
    counts: list[int] = []
    for num_turns in (1, 1000, 60000):
        folder = tmp_path / str(num_turns)
        write_tiny_bundle(folder, target=board)
        (folder / "src" / "tiny.c").write_text(
            f"""\
#include "tiny.h"
int32_t tiny_set_workspaces(tiny_context *context, const tiny_workspaces *workspaces)
{{
    (void)context;
    (void)workspaces;
    return 0;
}}
__attribute__((naked)) int32_t tiny_run(tiny_context *context, const tiny_inputs *inputs, const tiny_outputs *outputs)
{{
    __asm__ volatile("movw r3, #{num_turns}\\n0: subs r3, r3, #1\\n bne 0b\\n movs r0, #0\\n bx lr");
}}
"""
        )
        result = run_bundle(folder, [X], on="qemu")
        counts.append(result.instructions or 0)
        assert result.stack_bytes == 0
    assert counts == [1 + 2 * turns + 2 for turns in (1, 1000, 60000)]


def test_a_longer_loop_costs_its_instructions(tmp_path: Path) -> None:
    counts = [
        run_bundle(
            write_tiny_bundle(tmp_path / str(turns), statements=loop(turns) + ADD), [X], on="qemu"
        ).instructions
        for turns in (10, 50010)
    ]
    assert counts[1] is not None
    assert counts[0] is not None
    assert counts[1] - counts[0] == 2 * 50000


def test_an_instruction_that_an_it_block_skips_counts(tmp_path: Path) -> None:
    skipped = '    __asm__ volatile("cmp r0, r0\\n itt ne\\n addne r3, r3, #1\\n addne r3, r3, #1" ::: "r3", "cc");\n'
    plain, longer = (
        run_bundle(write_tiny_bundle(tmp_path / name, statements=text + ADD), [X], on="qemu").instructions
        for name, text in (("plain", ""), ("longer", skipped))
    )
    assert plain is not None
    assert longer is not None
    assert longer - plain == 4


@pytest.mark.parametrize("kind", ["blob", "generated_workspace"])
def test_other_providers(tmp_path: Path, kind: str) -> None:
    write_tiny_bundle(tmp_path, blob=kind == "blob", generated_workspace=kind == "generated_workspace")
    result = run_bundle(tmp_path, [X], on="qemu", measure_memory=True)
    assert (result.outputs[0] == expected_sum(X)).all()
    traffic = {entry.name: entry for entry in result.details.traffic}
    assert traffic["memory flash"].loaded_bytes == COUNT


def test_one_image_runs_a_batch(tmp_path: Path) -> None:
    batch = [[np.full((1, COUNT), value, np.int8)] for value in range(-120, 120, 5)]
    result = run_batch(write_tiny_bundle(tmp_path), batch, on="qemu")
    assert [outputs[0].tolist() for outputs in result.outputs] == [expected_sum(x).tolist() for (x,) in batch]
    assert len(result.instructions) == len(batch)


def test_memory_traffic_is_attributed(tmp_path: Path) -> None:
    result = run_bundle(
        write_tiny_bundle(tmp_path), [X], on="qemu", options=BuildOptions(("-O1",)), measure_memory=True
    )
    traffic = {entry.name: entry for entry in result.details.traffic}
    workspace, output = traffic["workspace dtcm"], traffic["output sum"]
    assert (workspace.loaded_bytes, workspace.stored_bytes) == (COUNT, COUNT)
    assert (workspace.lowest_written, workspace.highest_written) == (0x20000000, 0x2000000F)
    assert (traffic["input serving/left"].loaded_bytes, traffic["input serving/left"].stores) == (COUNT, 0)
    assert (output.loads, output.stored_bytes) == (0, COUNT)
    assert (traffic["memory flash"].loads, traffic["memory flash"].loaded_bytes) == (COUNT, COUNT)
    # Nothing is written but the workspace, the output and the stack.
    assert {name for name, entry in traffic.items() if entry.stores} == {
        "workspace dtcm",
        "output sum",
        "stack",
    }


def test_vector_instructions_count_and_move_bytes(tmp_path: Path) -> None:
    kernels = """
#include <arm_mve.h>
void tiny_vector(const int8_t *left, int8_t *sum);
void tiny_vector(const int8_t *left, int8_t *sum)
{
    vst1q_s8(sum, vaddq_n_s8(vld1q_s8(left), 1));
}
"""
    statements = """\
    extern void tiny_vector(const int8_t *left, int8_t *sum);
    tiny_vector(inputs->left, outputs->sum);
    return 0;
"""
    write_tiny_bundle(tmp_path, statements=statements, kernels=kernels)
    result = run_bundle(tmp_path, [X], on="qemu", measure_memory=True)
    assert (result.outputs[0] == X + 1).all()
    traffic = {entry.name: entry for entry in result.details.traffic}
    assert traffic["input serving/left"].loaded_bytes == COUNT
    assert traffic["output sum"].stored_bytes == COUNT


def test_the_stack_is_measured(tmp_path: Path) -> None:
    plain = run_bundle(write_tiny_bundle(tmp_path / "plain"), [X], on="qemu").stack_bytes
    statements = "    volatile char deep[4000];\n    deep[0] = 1;\n    deep[3999] = 1;\n" + ADD
    deep = run_bundle(write_tiny_bundle(tmp_path / "deep", statements=statements), [X], on="qemu").stack_bytes
    assert plain is not None
    assert deep is not None
    assert 4000 <= deep - plain < 4064


@pytest.mark.parametrize(
    ("statement", "board", "message", "note"),
    [
        (
            "*(volatile int *)0x50000000 = 1;",
            "mps3-an547",
            "a data access that the memory protection unit forbids",
            "address 0x50000000 (MMFAR): in no memory of the target; the run may not touch it",
        ),
        ("*(volatile int *)0x50000000 = 1;", "mps2-an500", "precise bus error", "address 0x50000000 (BFAR)"),
        (
            "*(volatile int8_t *)(uintptr_t)TINY_CONSTANTS = 1;",
            "mps3-an547",
            "a data access that the memory protection unit forbids",
            "address 0x28000000 (MMFAR)",
        ),
        ('__asm__ volatile("udf #1");', "mps2-an386", "undefined instruction", "in tiny_run"),
        (
            "((void (*)(void))0x60001001)();",
            "mps3-an547",
            "execution from a region that forbids it",
            "0x60001000 (PC)",
        ),
        ("volatile char deep[9000]; deep[0] = 1;", "mps3-an547", "stack overflow", "a stack of 8192 B"),
        (
            "volatile char deep[8190]; for (int index = 0; index < 8190; ++index) deep[index] = 1;",
            "mps2-an386",
            "stack overflow",
            "a stack of 8192 B",
        ),
    ],
)
def test_faults_end_the_run(tmp_path: Path, statement: str, board: str, message: str, note: str) -> None:
    write_tiny_bundle(tmp_path, target=board, statements=f"    {statement}\n{ADD}")
    diagnostic = refusal(tmp_path)
    assert diagnostic.message == f"model 'tiny' faulted on {board}: {message}"
    assert note in "\n".join(diagnostic.notes)


def test_an_endless_loop_is_stopped(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, statements="    for (;;) {\n    }\n")
    assert refusal(tmp_path, timeout_seconds=1).message == (
        "model 'tiny' on mps3-an547 (QEMU) did not end within 1 s and was stopped"
    )


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("mps2-an386", "the run of model 'tiny' on mps2-an386 is not complete"),
        # Unprivileged, it has no semihosting.
        ("mps3-an547", "model 'tiny' faulted on mps3-an547: an unexpected exception"),
    ],
)
def test_a_run_that_ends_itself_is_not_taken_for_complete(tmp_path: Path, board: str, message: str) -> None:
    leave = '    __asm__ volatile("mov r0, #0x18\\n ldr r1, =0x20026\\n bkpt 0xab" ::: "r0", "r1");\n'
    assert refusal(write_tiny_bundle(tmp_path, target=board, statements=leave + ADD)).message == message


def test_an_error_of_the_model_is_named(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, statements="    return TINY_ERROR_NOT_SET;\n")
    with pytest.raises(CompileError) as caught:
        run_bundle(tmp_path, [X], on="qemu")
    assert caught.value.diagnostics[0].code == "BW402"
    assert "TINY_ERROR_NOT_SET (-7)" in caught.value.diagnostics[0].message


def test_what_outgrows_its_memory_does_not_link(tmp_path: Path) -> None:
    description: dict[str, Any] = dump(load_target("mps3-an547"))
    description["name"] = "small"
    description["memory"]["dtcm"]["size"] = "4KiB"
    description["device"]["cpu"]["max-stack-size"] = "2KiB"
    description["workspace"][0]["size"] = "2KiB"
    write_tiny_bundle(tmp_path, target=load_description(description))
    assert (run_bundle(tmp_path, [X], on="qemu").outputs[0] == expected_sum(X)).all()
    header = tmp_path / "include" / "tiny.h"
    header.write_text(header.read_text().replace("WORKSPACE_SIZE 16", "WORKSPACE_SIZE 3000"))
    diagnostic = refusal(tmp_path)
    assert "linking for mps3-an547" in diagnostic.message
    assert any("memory_dtcm" in note and "overflow" in note for note in diagnostic.notes)


def test_a_pool_may_share_a_memory_with_the_code(tmp_path: Path) -> None:
    description: dict[str, Any] = dump(load_target("mps3-an547"))
    description["workspace"] = [{"name": "itcm", "memory": "itcm", "size": "64KiB"}]
    write_tiny_bundle(tmp_path, target=load_description(description))
    result = run_bundle(tmp_path, [X], on="qemu", measure_memory=True)
    assert (result.outputs[0] == expected_sum(X)).all()
    traffic = {entry.name: entry for entry in result.details.traffic}
    assert traffic["workspace itcm"].stored_bytes == COUNT
    # Linked where the code is: at the Secure alias.
    assert (traffic["workspace itcm"].lowest_written or 0) >> 20 == 0x100


def test_a_store_to_code_faults(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, statements="    *(volatile int *)((uintptr_t)tiny_run & ~3u) = 0;\n" + ADD)
    assert refusal(tmp_path).message.endswith("a data access that the memory protection unit forbids")


def test_a_missing_emulator_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_bundle(tmp_path / "bundle")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError) as caught:
        run_bundle(tmp_path / "bundle", [X], on="qemu")
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("BW501", "'qemu-system-arm' is not installed")
    assert "apt-get install qemu-system-arm" in (diagnostic.help or "")
