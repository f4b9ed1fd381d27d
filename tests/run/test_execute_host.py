"""Running a bundle on the host, as a library and as a program, with what must be caught on the way."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.host import HostModel
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.tensors import check_inputs
from support.tiny_bundle import ADD, COUNT, expected_sum, write_tiny_bundle

pytestmark = pytest.mark.run

SANITIZED = BuildOptions(flags=("-O1",), sanitize=True)


def ramp(start: int = -128, step: int = 16) -> np.ndarray[Any, Any]:
    return (np.arange(COUNT) * step + start).astype(np.int8).reshape(1, COUNT)


def refusal(directory: Path, options: BuildOptions | None = None) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        run_bundle(directory, [ramp()], options=options, timeout_seconds=20)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


@pytest.mark.parametrize(
    "options",
    [
        BuildOptions(),
        BuildOptions(flags=("-O3", "-march=native")),
        BuildOptions(compiler="clang"),
        SANITIZED,
        BuildOptions(flags=("-O1",), sanitize=True, compiler="clang"),
    ],
    ids=["default", "O3-native", "clang", "sanitized", "clang-sanitized"],
)
def test_the_output_is_right(tmp_path: Path, options: BuildOptions) -> None:
    result = run_bundle(write_tiny_bundle(tmp_path), [ramp()], options=options)
    (output,) = result.outputs
    assert (output == expected_sum(ramp())).all()
    assert (output.dtype, output.shape) == (np.int8, (1, COUNT))
    assert (result.on, result.target, result.workspace_bytes) == ("host", "mps3-an547", 16)
    assert result.instructions is None
    assert result.stack_bytes is None
    assert result.microseconds is not None


@pytest.mark.parametrize("options", [None, SANITIZED], ids=["library", "program"])
@pytest.mark.parametrize("kind", ["blob", "generated_workspace"])
def test_other_providers(tmp_path: Path, kind: str, options: BuildOptions | None) -> None:
    write_tiny_bundle(tmp_path, blob=kind == "blob", generated_workspace=kind == "generated_workspace")
    result = run_bundle(tmp_path, [ramp()], options=options)
    assert (result.outputs[0] == expected_sum(ramp())).all()


@pytest.mark.parametrize("options", [None, SANITIZED], ids=["library", "program"])
def test_a_batch_runs_in_order_and_times_every_repetition(
    tmp_path: Path, options: BuildOptions | None
) -> None:
    batch = [[ramp(start, 3)] for start in range(-100, 60, 20)]
    result = run_batch(write_tiny_bundle(tmp_path), batch, repeat=3, options=options)
    assert [outputs[0].tolist() for outputs in result.outputs] == [expected_sum(x).tolist() for (x,) in batch]
    assert len(result.microseconds) == 3 * len(batch)
    assert all(time >= 0 for time in result.microseconds)


def test_times_are_those_of_the_work(tmp_path: Path) -> None:
    slow = "    for (volatile int turn = 0; turn < 2000000; ++turn) {\n    }\n" + ADD
    quick_time = run_bundle(write_tiny_bundle(tmp_path / "quick"), [ramp()], repeat=5).microseconds
    slow_time = run_bundle(
        write_tiny_bundle(tmp_path / "slow", statements=slow), [ramp()], repeat=5
    ).microseconds
    assert quick_time is not None
    assert slow_time is not None
    assert slow_time > 200 > quick_time


def test_random_inputs_come_from_the_seed(tmp_path: Path) -> None:
    write_tiny_bundle(tmp_path, statements="    tiny_copy(inputs->left, outputs->sum, 16);\n    return 0;\n")
    first, again, other = (run_bundle(tmp_path, seed=seed).outputs[0] for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_an_input_of_the_wrong_shape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        run_bundle(write_tiny_bundle(tmp_path), [np.zeros((COUNT, 1), np.int8)])
    assert caught.value.diagnostics[0].code == "BW205"


def test_two_contexts_run_in_two_threads(tmp_path: Path) -> None:
    directory = write_tiny_bundle(tmp_path)
    model, plan = HostModel.build(directory), read_bundle(directory).plan
    barrier = threading.Barrier(2)
    wrong: list[str] = []

    def work(start: int) -> int:
        context = model.open()
        barrier.wait()
        for turn in range(400):
            x = ramp(start + turn % 50, 5)
            outputs, _ = context.run_checked(check_inputs(plan, [x]), repeat=20)
            if (outputs[0] != expected_sum(x)).any():
                wrong.append(f"{start} {turn}")
        return start

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(work, (-128, 10))) == [-128, 10]
    assert wrong == []


def test_a_model_can_be_run_many_times(tmp_path: Path) -> None:
    model = HostModel.build(write_tiny_bundle(tmp_path))
    for start in (-128, 0, 100):
        assert (model.run([ramp(start, 1)])[0] == expected_sum(ramp(start, 1))).all()


@pytest.mark.parametrize(
    ("statements", "word"),
    [
        ("    context->workspace[16] = 1;\n" + ADD, "heap-buffer-overflow"),
        ("    outputs->sum[-1] = 1;\n" + ADD, "heap-buffer-overflow"),
        ("    (void)*(const volatile int8_t *)(inputs->left + 16);\n" + ADD, "heap-buffer-overflow"),
        ("    volatile int big = 2147483647;\n    big += 1;\n" + ADD, "signed integer overflow"),
    ],
    ids=["workspace", "output", "input", "undefined"],
)
def test_sanitizers_stop_the_program(tmp_path: Path, statements: str, word: str) -> None:
    diagnostic = refusal(write_tiny_bundle(tmp_path, statements=statements), SANITIZED)
    assert diagnostic.code == "BW502"
    assert word in " ".join(diagnostic.notes)


def test_a_write_next_to_the_workspace_is_seen_without_sanitizers(tmp_path: Path) -> None:
    statements = "    ((volatile int8_t *)context->workspace)[16] = 1;\n" + ADD
    diagnostic = refusal(write_tiny_bundle(tmp_path, statements=statements))
    assert (diagnostic.code, diagnostic.message) == (
        "BW402",
        "model 'tiny' wrote outside of workspace 'dtcm'",
    )


def test_workspaces_are_not_zero_before_the_first_inference(tmp_path: Path) -> None:
    statements = "    tiny_copy(context->workspace, outputs->sum, 16);\n    return 0;\n"
    write_tiny_bundle(tmp_path, statements=statements)
    for options in (None, SANITIZED):
        assert (run_bundle(tmp_path, [ramp()], options=options).outputs[0].view(np.uint8) == 0xA5).all()


@pytest.mark.parametrize("options", [None, SANITIZED], ids=["library", "program"])
def test_an_error_of_the_model_is_named(tmp_path: Path, options: BuildOptions | None) -> None:
    diagnostic = refusal(write_tiny_bundle(tmp_path, statements="    return TINY_ERROR_NOT_SET;\n"), options)
    assert diagnostic.code == "BW402"
    assert "returned TINY_ERROR_NOT_SET (-7)" in diagnostic.message


def test_header_and_plan_must_state_the_same_size(tmp_path: Path) -> None:
    diagnostic = refusal(write_tiny_bundle(tmp_path, workspace_bytes_in_plan=32))
    assert diagnostic.code == "BW402"
    assert (
        "is 32 B at alignment 16 in plan.json, but 16 B at alignment 16 in the header" in diagnostic.message
    )


def test_a_compiler_error_is_shown(tmp_path: Path) -> None:
    diagnostic = refusal(write_tiny_bundle(tmp_path, kernels="this is not C\n"))
    assert diagnostic.code == "BW502"
    assert any("tiny_kernels.c" in note and "error" in note for note in diagnostic.notes)


def test_a_crash_of_the_program_is_reported(tmp_path: Path) -> None:
    statements = "    __builtin_trap();\n"
    diagnostic = refusal(write_tiny_bundle(tmp_path, statements=statements), BuildOptions(("-O1",), True))
    assert diagnostic.code == "BW502"
    assert "the program of model 'tiny' ended with" in diagnostic.message


def test_no_inference_is_not_a_number_of_inferences(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        run_bundle(write_tiny_bundle(tmp_path), [ramp()], repeat=0)
    assert caught.value.diagnostics[0].code == "BW204"


def test_only_files_that_the_plan_lists_are_built(tmp_path: Path) -> None:
    """Neither other sources nor headers that would be taken for the system's."""
    directory = write_tiny_bundle(tmp_path)
    (directory / "runtime").mkdir()
    for path in ("src/evil.c", "runtime/evil.c", "include/stdint.h", "include/stddef.h", "src/stdint.h"):
        (directory / path).write_text("#error this file is not of the bundle\n")
    for options in (BuildOptions(), SANITIZED):
        (output,) = run_bundle(directory, [ramp()], options=options).outputs
        assert np.array_equal(output, expected_sum(ramp()))


def test_a_relative_path_to_a_bundle_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_bundle(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    (output,) = run_bundle(Path("tiny"), [ramp()]).outputs
    assert np.array_equal(output, expected_sum(ramp()))
