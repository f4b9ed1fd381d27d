"""Kernels on the second core of the mps2-an521: exact, counted for each core, and behind a protection of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright
from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.boards.image import build_image
from bytewright.execute.boards.placement import place_on_board
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.run import run_batch, run_bundle
from support.pair_program import PAIR, changed, pair_input, pair_output, write_pair

pytestmark = pytest.mark.board

KERNELS = "src/pair_core1_kernels.c"
TURN = r"(static void pair_turn\([^)]*\)\n\{\n)"
JOB = "job 2 (kernel 'pair_turn', step 3) of model 'pair' on mps2-an521"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("pair"))


def refusal(bundle: Path, timeout_seconds: float = 60) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        run_bundle(bundle, [pair_input(1)], on="qemu", timeout_seconds=timeout_seconds)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def with_statement(pair: Path, folder: Path, statement: str) -> Path:
    """The bundle with one more statement in the second kernel of core 1."""
    return changed(pair, folder, KERNELS, TURN, f"\\g<1>    {statement}\n")


def test_both_cores_compute_the_model(pair: Path) -> None:
    batch = [[pair_input(seed)] for seed in range(5)]
    result = run_batch(pair, batch, on="qemu", repeat=2)
    for (x,), outputs in zip(batch, result.outputs, strict=True):
        assert outputs[0].tolist() == pair_output(x).tolist()
    (device,) = result.devices
    assert device.name == "core1"
    assert len(device.instructions) == len(result.instructions) == 10
    assert sum(entry.instructions for entry in device.functions) == device.instructions[-1]
    of_core_1 = {entry.name for entry in device.functions}
    assert "pair_core1_execute" in of_core_1
    assert not of_core_1 & {entry.name for entry in result.functions}
    assert "pair_run" not in of_core_1


def test_the_counts_of_both_cores_are_the_same_in_each_run(pair: Path) -> None:
    runs = [run_bundle(pair, [pair_input(1)], on="qemu", repeat=3).details for _ in range(3)]
    assert {run.instructions for run in runs} == {(runs[0].instructions[0],) * 3}
    assert {run.devices for run in runs} == {runs[0].devices}
    assert set(runs[0].devices[0].instructions) == {runs[0].devices[0].instructions[0]}


def test_a_loop_on_core_1_costs_core_1_its_instructions(pair: Path, tmp_path: Path) -> None:
    runs = [
        run_bundle(with_statement(pair, tmp_path / str(turns), statement), [pair_input(1)], on="qemu").details
        for turns in (10, 60010)
        for statement in (
            f'__asm__ volatile("movw r3, #{turns}; 0: subs r3, r3, #1; bne 0b" ::: "r3", "cc");',
        )
    ]
    assert runs[0].instructions == runs[1].instructions
    first, second = (run.devices[0].instructions[0] for run in runs)
    assert second - first == 2 * 60000


def test_the_command_line_says_what_each_core_did(pair: Path) -> None:
    text = CliRunner().invoke(bytewright, ["run", str(pair), "--on", "qemu"]).output
    assert re.search(r"^\d+ instructions on cpu\n\d+ instructions on core1$", text, re.MULTILINE)
    document = json.loads(CliRunner().invoke(bytewright, ["run", str(pair), "--on", "qemu", "--json"]).output)
    (device,) = document["devices"]
    result = run_bundle(pair, on="qemu").details
    assert document["instructions"] == result.instructions[0]
    assert device == {
        "name": "core1",
        "instructions": result.devices[0].instructions[0],
        "stack_bytes": result.devices[0].stack_bytes,
    }
    stacks = document["stack_bytes"] + device["stack_bytes"]
    parameter_bytes = 4  # in SSRAM1, which can be written
    assert document["ram_bytes"] == document["workspace_bytes"] + stacks + parameter_bytes


def test_its_kernels_are_compiled_for_core_1(pair: Path, tmp_path: Path) -> None:
    """`smulbb` is an instruction of the DSP extension, which core 1 has and core 0 has not."""
    multiply = '__asm__ volatile("smulbb r3, r3, r3" ::: "r3");'
    (output,) = run_bundle(
        with_statement(pair, tmp_path / "dsp", multiply), [pair_input(1)], on="qemu"
    ).outputs
    assert output.tolist() == pair_output(pair_input(1)).tolist()
    on_core_0 = changed(
        pair,
        tmp_path / "cpu",
        "src/pair_kernels.c",
        r"(void pair_scale\([^)]*\)\n\{\n)",
        rf"\g<1>    {multiply}\n",
    )
    diagnostic = refusal(on_core_0)
    assert diagnostic.code == "BW502"
    assert "selected processor does not support" in "\n".join(diagnostic.notes)


def store(address: str) -> str:
    return f"*(volatile int8_t *){address} = 1;"


STRAYS = {
    "memory of core 0": (
        store("0x30000040u"),
        "0x30000040",
        "in memory sram, 1 B past the last byte of workspace sram, which device 'core1' does not reach",
    ),
    "its own memory as core 0 sees it": (
        store("0x30010002u"),
        "0x30010002",
        "byte 2 of workspace shared, which device 'core1' sees at 0x20010002",
    ),
    "a message unit": (
        store("0x50004004u"),
        "0x50004004",
        "in no memory of the target, which device 'core1'",
    ),
    "its own code": (store("0x10000800u"), "0x10000800", "in memory ssram1"),
    "the stack of the harness": (
        store("0x38200000u"),
        "0x38200000",
        "which device 'core1' sees at 0x28200000",
    ),
}


@pytest.mark.parametrize("kind", STRAYS)
def test_what_was_not_lent_cannot_be_touched(pair: Path, tmp_path: Path, kind: str) -> None:
    statement, address, place = STRAYS[kind]
    diagnostic = refusal(with_statement(pair, tmp_path / "stray", statement))
    assert diagnostic.code == "BW730"
    assert diagnostic.message == f"device 'core1' touched what it was not lent in {JOB}"
    assert diagnostic.notes[0].startswith(f"address {address} (MMFAR): ")
    assert place in diagnostic.notes[0]
    assert "in pair_core1_execute" in diagnostic.notes[1]


def test_the_first_granule_past_what_was_lent_faults(pair: Path, tmp_path: Path) -> None:
    end = read_bundle(pair).plan.pools["shared"].used_bytes
    assert end % 32 == 0
    diagnostic = refusal(with_statement(pair, tmp_path / "past", store(f"{0x20010000 + end:#x}u")))
    assert diagnostic.code == "BW730"
    assert "1 B past the last byte of workspace shared" in diagnostic.notes[0]
    assert "it was not lent this" in diagnostic.notes[0]


def test_parameters_can_be_read_and_not_written(pair: Path, tmp_path: Path) -> None:
    sums = r"(static void pair_sum\([^)]*\)\n\{\n)"
    bundle = changed(pair, tmp_path / "parameters", KERNELS, sums, r"\g<1>    *(volatile int8_t *)by = 1;\n")
    diagnostic = refusal(bundle)
    assert diagnostic.code == "BW730"
    assert "job 1 (kernel 'pair_sum', step 2)" in diagnostic.message
    assert "byte 0 of parameters ssram1" in diagnostic.notes[0]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ('__asm__ volatile("udf #0");', "undefined instruction"),
        ('__asm__ volatile("svc #0");', "an unexpected exception"),
        ("*(volatile uint32_t *)0xE000ED94u = 0u;", "precise bus error"),
        ("((void (*)(void))x)();", "execution from a region that forbids it"),
        ("volatile char deep[9000]; deep[0] = 1;", "stack overflow"),
        ("volatile int zero = 0; zero = 5 / zero;", "division by zero"),
    ],
)
def test_other_faults(pair: Path, tmp_path: Path, statement: str, reason: str) -> None:
    diagnostic = refusal(with_statement(pair, tmp_path / "fault", statement))
    assert diagnostic.code == "BW731"
    assert diagnostic.message.startswith(f"device 'core1' faulted in {JOB}: ")
    assert reason in diagnostic.message
    if reason == "stack overflow":
        assert "the model has a stack of 8192 B, as the target says" in diagnostic.notes


LEAK = r"static const pair_core1_call call = \{1u, \{5\}\};"


def leaked(pair: Path, folder: Path) -> Path:
    """The bundle with a raw pointer to a buffer of core 0 alone handed to a kernel of core 1."""
    pool = read_bundle(pair).plan.buffers["own"].place.name
    assert pool == "sram"
    call = "const pair_core1_call call = {1u, {(int32_t)(uintptr_t)context->sram}};"
    bundle = changed(pair, folder.with_name(f"{folder.name}_0"), "src/pair.c", LEAK, call)
    return changed(bundle, folder, KERNELS, r"x\[\(i \+ by\) % 64\]", "((const int8_t *)(uintptr_t)by)[i]")


def test_a_leaked_buffer_of_core_0_faults_with_its_address(pair: Path, tmp_path: Path) -> None:
    diagnostic = refusal(leaked(pair, tmp_path / "leak"))
    assert diagnostic.code == "BW730"
    assert diagnostic.message == f"device 'core1' touched what it was not lent in {JOB}"
    assert diagnostic.notes[0] == (
        "address 0x30000000 (MMFAR): byte 0 of workspace sram, which device 'core1' does not reach"
    )


TURN_BY = 'static int32_t turn_by __attribute__((section(".bss.harness_writable")));\n'
RETRY = """\
int32_t pair_run(pair_context *context, const pair_inputs *inputs, const pair_outputs *outputs,
        const pair_devices *devices) {
    if (run_once(context, inputs, outputs, devices, 0) != PAIR_ERROR_DEVICE) {
        return -99;
    }
    return run_once(context, inputs, outputs, devices, 5);
}
"""


def test_after_a_fault_the_next_run_works(pair: Path, tmp_path: Path) -> None:
    """In one image: a run whose kernel reads through a null pointer, then one that does not."""
    bundle = changed(
        pair, tmp_path / "a", KERNELS, r"x\[\(i \+ by\) % 64\]", "(by == 0 ? NULL : x)[(i + by) % 64]"
    )
    bundle = changed(
        bundle, tmp_path / "b", "src/pair.c", LEAK, "const pair_core1_call call = {1u, {turn_by}};"
    )
    run, once = r"int32_t pair_run\(([^)]*)\)", r"static int32_t run_once(\g<1>, int32_t by)"
    bundle = changed(bundle, tmp_path / "c", "src/pair.c", run, once)
    bundle = changed(
        bundle, tmp_path / "d", "src/pair.c", "int32_t status = begin", "turn_by = by;\n    \\g<0>"
    )
    bundle = changed(bundle, tmp_path / "e", "src/pair.c", '#include "pair.h"\n', f"\\g<0>{TURN_BY}")
    (bundle / "src" / "pair.c").write_text((bundle / "src" / "pair.c").read_text() + RETRY)
    x = pair_input(1)
    result = run_batch(bundle, [[x], [x]], on="qemu")
    assert [outputs[0].tolist() for outputs in result.outputs] == [pair_output(x).tolist()] * 2
    assert len(set(result.instructions)) == len(set(result.devices[0].instructions)) == 1


@pytest.mark.parametrize(
    ("lent", "why", "note"),
    [
        (
            "context->sram",
            "device 'core1' does not reach it",
            "span 0 at 0x30000000: byte 0 of workspace sram",
        ),
        (
            "context->shared + 4096",
            "it was not opened, or not for that",
            "span 0 at 0x20011000: in memory shared, ",
        ),
    ],
)
def test_a_span_that_was_not_opened_is_refused(
    pair: Path, tmp_path: Path, lent: str, why: str, note: str
) -> None:
    span = r"lend\([^;]*PAIR_AT_SHARED_SUMS, 64u, PAIR_SPAN_READ\)"
    diagnostic = refusal(
        changed(pair, tmp_path / "span", "src/pair.c", span, f"lend({lent}, 64u, PAIR_SPAN_READ)")
    )
    assert diagnostic.code == "BW732"
    assert diagnostic.message == f"device 'core1' was not lent what it needs for {JOB}: {why}"
    assert diagnostic.notes[0].startswith(note)


def test_a_span_with_more_access_than_was_opened_is_refused(pair: Path, tmp_path: Path) -> None:
    span = r"(PAIR_AT_SSRAM1_WEIGHTS\)?, 4u, )PAIR_SPAN_READ"
    diagnostic = refusal(changed(pair, tmp_path / "span", "src/pair.c", span, r"\g<1>PAIR_SPAN_WRITE"))
    assert (diagnostic.code, "it was not opened" in diagnostic.message) == ("BW732", True)


def test_what_the_dispatcher_refuses_is_said(pair: Path, tmp_path: Path) -> None:
    diagnostic = refusal(
        changed(pair, tmp_path / "kernel", "src/pair.c", LEAK, "const pair_core1_call call = {7u, {5}};")
    )
    assert diagnostic.code == "BW731"
    assert diagnostic.message.startswith("device 'core1' refused job 2")


def test_a_job_that_does_not_end_is_named(pair: Path, tmp_path: Path) -> None:
    diagnostic = refusal(with_statement(pair, tmp_path / "hang", 'for (;;) { __asm__ volatile(""); }'), 3)
    assert diagnostic.code == "BW733"
    assert diagnostic.message == f"device 'core1' did not finish {JOB} within 3 s"


def test_the_stack_of_core_1_is_measured(pair: Path, tmp_path: Path) -> None:
    def deepest(size_bytes: int) -> int:
        statement = f"volatile char deep[{size_bytes}]; deep[0] = 1;"
        bundle = with_statement(pair, tmp_path / str(size_bytes), statement)
        (device,) = run_bundle(bundle, [pair_input(1)], on="qemu").details.devices
        return device.stack_bytes

    shallow, deep = deepest(128), deepest(4128)
    assert shallow < 512
    assert 4000 <= deep - shallow <= 4032


def test_core_1_runs_behind_its_stack_and_sees_it_elsewhere(pair: Path, tmp_path: Path) -> None:
    bundle = read_bundle(pair)
    image = build_image(bundle, place_on_board(bundle.plan), tmp_path, BuildOptions())
    (stack,) = [array for array in image.arrays if array.place.name == "stack of core1"]
    assert 0x38200000 <= stack.place.first < stack.place.last < 0x38400000
    assert stack.place.last + 1 - stack.place.first == 8192
    assert stack.place.first % 32 == 0
    assert image.second is not None
    assert image.second.seen_by_core_1(stack.place.first) == stack.place.first - 0x10000000
    # A run on core 0 may not touch it.
    assert not any(
        region.first < stack.place.last and stack.place.first < region.end for region in image.regions
    )


def test_scalars_that_change_from_turn_to_turn_reach_core_1(tmp_path: Path) -> None:
    """In a loop the numbers of a call lie on the stack of core 0, which core 1 does not reach."""
    text = PAIR.replace(
        "  call_extern pair_turn(&sums, &turned, 5)\n",
        "  for n : i32 in 3 .. 6 {\n    call_extern pair_turn(&sums, &turned, n)\n  }\n",
    )
    x = pair_input(2)
    result = run_bundle(write_pair(tmp_path, text), [x], on="qemu")
    assert result.outputs[0].tolist() == pair_output(x).tolist()
