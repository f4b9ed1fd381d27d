"""Models whose depthwise layers run on the second core of the mps2-an521: exact, with both cores at work."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch, run_bundle
from bytewright.inspect.stack.check_stack import check_stack
from bytewright.inspect.stack.compile_call_graphs import compile_call_graphs
from bytewright.options import Options, parse_on_option
from bytewright.record.plan import Plan
from bytewright.record.plan_file import read_plan
from bytewright.target.options import Overrides, apply_overrides, parse_pool_option
from bytewright.target.registry import load_target
from support import shared_models as models
from support.pair_program import BOARD, changed
from support.reference import LiteRt

pytestmark = pytest.mark.board


# Every depthwise convolution of the model's file runs on core 1, as a user asks for it.
ON_CORE_1 = Options(name="model", on=(parse_on_option("DEPTHWISE_CONV_2D=core1"),))


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name in (models.KWS, models.VWW):
        found[name] = tmp_path_factory.mktemp(name) / "bundle"
        compiled = compile_model(models.model_path(name), load_target(BOARD), ON_CORE_1)
        write_bundle(compiled.files, found[name])
    return found


def steps_on_core_1(plan: Plan) -> list[str]:
    return [step.kernel for step in plan.steps if step.device == "core1"]


@pytest.mark.parametrize(("name", "num_steps"), [(models.KWS, 4), (models.VWW, 13)])
def test_depthwise_layers_on_core_1_are_exact(bundles: dict[str, Path], name: str, num_steps: int) -> None:
    folder = bundles[name]
    plan = read_plan(folder)
    assert len(steps_on_core_1(plan)) == num_steps
    batch = models.random_inputs(name, 3, seed=11)
    result = run_batch(folder, batch, on="qemu", measure_memory=True)
    reference = LiteRt(models.model_content(name, False))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
    (device,) = result.devices
    # What core 1 executes is no work for core 0 any more.
    alone = run_bundle(models.bundle(name, load_target(BOARD)), list(batch[0]), on="qemu")
    assert result.instructions[0] < (alone.instructions or 0)
    assert device.instructions[0] > 1_000_000
    assert 0 < device.stack_bytes <= plan.stack["core1"].size_bytes
    # Both cores wrote what the plan gives them, and nothing else.
    traffic = {entry.name: entry for entry in result.traffic}
    assert traffic["workspace shared"].stores > 0
    assert traffic["workspace shared as core1 sees it"].stores > 0
    assert traffic["elsewhere"].stores == 0
    assert {entry.stores for entry in result.traffic if entry.name.startswith("memory")} == {0}


def test_an_open_batch_on_both_cores(tmp_path: Path) -> None:
    """The extent of each run goes to core 1 with the jobs, and the run takes more arguments than registers hold."""
    options = replace(ON_CORE_1, batch_max=2)
    compiled = compile_model(models.model_path(models.KWS), load_target(BOARD), options)
    write_bundle(compiled.files, tmp_path / "batch")
    (first,), (second,), (third,) = models.random_inputs(models.KWS, 3, seed=4)
    result = run_batch(tmp_path / "batch", [[np.concatenate([first, second])], [third]], on="qemu")
    reference = LiteRt(models.model_content(models.KWS, False))
    outputs = np.concatenate([outputs[0] for outputs in result.outputs])
    expected = np.concatenate([reference.run(x)[0] for x in (first, second, third)])
    np.testing.assert_array_equal(outputs, expected)
    both, one = result.devices[0].instructions
    assert one < both < 2 * one


def test_the_counts_of_kws_on_both_cores_are_the_same_in_each_run(bundles: dict[str, Path]) -> None:
    (inputs,) = models.random_inputs(models.KWS, 1, seed=3)
    runs = [run_bundle(bundles[models.KWS], list(inputs), on="qemu", repeat=2).details for _ in range(3)]
    assert {run.instructions for run in runs} == {(runs[0].instructions[0],) * 2}
    assert {run.devices for run in runs} == {runs[0].devices}


@pytest.mark.parametrize("name", [models.KWS, models.VWW])
def test_the_stack_of_core_1_is_proved_and_kept(bundles: dict[str, Path], name: str) -> None:
    """planned <= what a run reached <= as compiled <= promised <= the limit; the call is for core 1 alone."""
    bundle = read_bundle(bundles[name])
    plan = bundle.plan
    isa = plan.hardware.device("core1").isa
    proof = check_stack(
        plan, lambda flags: compile_call_graphs(bundle, flags, isa), device=plan.devices["core1"]
    )
    assert (proof.context, proof.measured.steps[0][0]) == ("core1", "model_core1_execute")
    (device,) = run_bundle(bundles[name], on="qemu").details.devices
    assert proof.stack.planned_bytes <= device.stack_bytes <= proof.measured.total_bytes
    assert proof.measured.total_bytes <= proof.stack.size_bytes <= (proof.stack.limit_bytes or 0) == 7168


def test_a_kernel_of_core_1_that_needs_more_stack_is_found(bundles: dict[str, Path], tmp_path: Path) -> None:
    head = r"(static void model_depthwise_conv2d_1(?:_down)?\([^)]*\)\n\{\n)"
    deep = r"\g<1>    volatile char deep[2000]; deep[0] = 1;\n"
    folder = changed(bundles[models.KWS], tmp_path / "deep", "src/model_core1_kernels.c", head, deep)
    bundle = read_bundle(folder)
    plan = bundle.plan
    isa = plan.hardware.device("core1").isa
    with pytest.raises(CompileError) as caught:
        check_stack(plan, lambda flags: compile_call_graphs(bundle, flags, isa), device=plan.devices["core1"])
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW403"
    assert "the stack promised on 'core1' is " in diagnostic.message


def test_a_paranoid_run_of_both_cores(bundles: dict[str, Path]) -> None:
    """Dead bytes are poisoned between the steps of both, and no step changes what is not its own."""
    watched = run_paranoid(bundles[models.KWS], None, seed=1, on="qemu", repeat=2)
    assert watched.num_steps == len(read_plan(bundles[models.KWS]).steps)


def test_what_core_1_touches_is_in_memory_that_it_reaches(bundles: dict[str, Path]) -> None:
    plan = read_plan(bundles[models.VWW])
    touched = [buffer for buffer in plan.buffers.values() if "core1" in buffer.devices and buffer.has_offset]
    memories = {plan.pools[buffer.place.name].memory for buffer in touched}
    assert memories == {"shared", "ssram1"}
    assert any(buffer.place.name == "sram" for buffer in plan.buffers.values())


def test_memory_that_core_1_does_not_reach_is_refused_for_what_it_touches() -> None:
    target = apply_overrides(load_target(BOARD), Overrides(workspace=(parse_pool_option("sram"),)))
    with pytest.raises(CompileError) as caught:
        compile_model(models.model_path(models.KWS), target, ON_CORE_1)
    text = str(caught.value)
    assert "BW702" in text
    assert "cannot be in any pool for tensors on device 'core1'" in text
    assert "--on 'DEPTHWISE_CONV_2D=core1'" in text


def test_a_depthwise_kernel_with_a_raw_pointer_faults(bundles: dict[str, Path], tmp_path: Path) -> None:
    """Its input is taken from where core 0 has it: no address of core 1."""
    first = r"(\(const int8_t \*\))spans\[0\]\.base"
    raw = r"\g<1>(uintptr_t)((uintptr_t)spans[0].base + 0x10000000u)"
    bundle = changed(bundles[models.KWS], tmp_path / "raw", "src/model_core1_kernels.c", first, raw)
    with pytest.raises(CompileError) as caught:
        run_bundle(bundle, on="qemu")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "BW730"
    assert re.search(r"job 1 \(kernel 'model_depthwise_conv2d_1(_down)?', step 1\)", diagnostic.message)
    assert "workspace shared, which device 'core1' sees at 0x2001" in diagnostic.notes[0]
    assert "in model_" in diagnostic.notes[1]
