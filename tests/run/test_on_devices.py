"""Models with operators on another device, as `--on` asks for it, run on the host: the device is a process there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch, run_bundle
from bytewright.options import Options, parse_on_option
from bytewright.record.plan_file import read_plan
from bytewright.report.lanes import is_copy, lanes
from bytewright.target import load_text
from bytewright.target.model import Role
from bytewright.target.registry import load_target
from support import shared_models as models
from support import two_devices
from support.c_program import WARNINGS
from support.compilers import host_build
from support.documented_targets import documented_target
from support.pair_program import BOARD
from support.reference import LiteRt
from support.views import explanation_lines

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"

# Two devices that run C reach no memory that both may write; a third, which runs none, copies between theirs.
TARGET = two_devices.TARGET.replace('reach = ["ram", "shared", "flash"]', 'reach = ["ram", "flash"]').replace(
    "shared", "fast"
)
REACH_OF_CORE_1, REACH_OF_DMA = '["fast", "flash"]', '["ram", "fast"]'

GRAPH = """
module sums

input %x : tensor<1x8xf32>
output %y : tensor<1x8xf32>

constant %step = data<8xf32> [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]

func main(%x : tensor<1x8xf32>) -> (%y) {
  %low : tensor<1x8xf32> = clamp(%x) {minimum=-1000.0, maximum=900.0}
  %a : tensor<1x8xf32> = add(%low, %step)
  %square : tensor<1x8xf32> = mul(%a, %a)
  %y : tensor<1x8xf32> = sub(%square, %a)
}
"""
STEP: NDArray[np.float32] = np.arange(1, 9, dtype=np.float32)


def compiled_graph(folder: Path, options: Options, text: str = GRAPH, target: str = TARGET) -> Path:
    """The bundle of a graph whose multiplications are for core 1."""
    (folder / "sums.bw").write_text(text)
    options = replace(options, on=(parse_on_option("mul=core1"),))
    write_bundle(
        compile_model(folder / "sums.bw", load_text(target, "bench.toml"), options).files, folder / "out"
    )
    return folder / "out"


def sums(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.clip(x, -1000, 900).astype(np.float32) + STEP


def expected(x: NDArray[np.float32]) -> NDArray[np.float32]:
    a = sums(x)
    return a * a - a


def some(num_rows: int) -> NDArray[np.float32]:
    return np.random.default_rng(num_rows).normal(0, 700, (num_rows, 8)).astype(np.float32)


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize("io", [ir.Io.CALLER, ir.Io.WORKSPACE])
def test_a_device_without_code_copies_between_memories_that_two_share_none_of(
    tmp_path: Path, io: ir.Io, sanitize: bool
) -> None:
    folder = compiled_graph(tmp_path, Options(io=io))
    plan = read_plan(folder)
    found = [(step.device, step.operators) for step in plan.steps]
    assert found == [
        ("cpu", ("clamp", "add")),
        ("dma", ("device_copy",)),
        ("core1", ("mul",)),
        ("dma", ("device_copy",)),
        ("cpu", ("sub",)),
    ]
    assert {lane.device: len(lane.copies) for lane in lanes(plan)} == {"cpu": 0, "dma": 2, "core1": 0}
    x = some(1)
    result = run_bundle(folder, [x], options=host_build(flags=WARNINGS, sanitize=sanitize))
    np.testing.assert_array_equal(result.outputs[0], expected(x))


def test_as_much_is_copied_as_the_batch_has(tmp_path: Path) -> None:
    folder = compiled_graph(tmp_path, Options(batch_max=3))
    xs = [some(3), some(1), some(2)]
    result = run_batch(folder, [[x] for x in xs], options=host_build(flags=WARNINGS, sanitize=True))
    for x, outputs in zip(xs, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], expected(x))


def test_a_device_without_code_copies_a_constant_that_is_not_reached(tmp_path: Path) -> None:
    destination = 'VirtualDevice(device="core1", target=none, scope=none)'
    copy = f'  %far : tensor<8xf32> = device_copy(%step) {{by="dma", destination={destination}}}\n'
    text = GRAPH.replace("  %square", f"{copy}  %square").replace("mul(%a, %a)", "mul(%a, %far)")
    target = TARGET.replace(REACH_OF_CORE_1, '["fast"]').replace(REACH_OF_DMA, '["ram", "fast", "flash"]')
    folder = compiled_graph(tmp_path, Options(), text, target)
    copies = [(step.device, step.reads) for step in read_plan(folder).steps if is_copy(step)]
    assert sorted(copies) == [("dma", ("a",)), ("dma", ("low/operand",)), ("dma", ("square",))]
    x = some(1)
    a = sums(x)
    result = run_bundle(folder, [x], options=BuildOptions(flags=("-O0",), sanitize=True))
    np.testing.assert_array_equal(result.outputs[0], a * STEP - a)


def test_the_chain_from_the_option_to_the_byte_is_told(tmp_path: Path) -> None:
    """And nothing of it where nothing was asked."""
    plan = read_plan(compiled_graph(tmp_path, Options()))
    (line,) = [line for line in explanation_lines(plan, "square") if "plan_devices" in line]
    assert line.strip() == "plan_devices: on device 'core1': --on 'mul=core1'"
    assert (
        "'square' on device 'core1' is in fast, and needed on device 'cpu'"
        in plan.buffers["square_on_cpu"].reason
    )
    assert plan.buffers["square"].place.name == "fast"
    assert "plan_devices" not in plan.buffers["a"].reason


@pytest.mark.parametrize("sanitize", [False, True])
@pytest.mark.parametrize(
    ("pattern", "num_steps"),
    # The first convolution reads the input, which the application has where core 1 reaches it.
    [("DEPTHWISE_CONV_2D", 4), ("CONV_2D", 5)],
)
def test_layers_on_the_second_core_are_exact(
    tmp_path: Path, pattern: str, num_steps: int, sanitize: bool
) -> None:
    options = Options(name="model", on=(parse_on_option(f"{pattern}=core1"),))
    compiled = compile_model(models.model_path(models.KWS), load_target(BOARD), options)
    write_bundle(compiled.files, tmp_path / "bundle")
    steps = read_plan(tmp_path / "bundle").steps
    asked = [step for step in steps if step.operators[0].partition(" ")[2] == f"({pattern})"]
    copies = [step for step in steps if is_copy(step)]
    assert (len(asked), copies) == (num_steps, [])
    assert [step for step in steps if step.device == "core1"] == asked
    batch = models.random_inputs(models.KWS, 3, seed=17)
    result = run_batch(tmp_path / "bundle", batch, options=host_build(sanitize=sanitize))
    reference = LiteRt(models.model_content(models.KWS, False))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


def test_the_documented_target_of_two_devices_takes_what_it_says(tmp_path: Path) -> None:
    """Without any option: the depthwise layer is on core 1, in memory that both reach, on lines of its own."""
    target = load_text(documented_target("two-devices"), "docs/targets.md")
    write_bundle(compile_model(DIGITS, target, Options()).files, tmp_path / "both")
    plan = read_plan(tmp_path / "both")
    lent = [step for step in plan.steps if step.device == "core1"]
    assert [step.operators[0].partition(" ")[2] for step in lent] == ["(DEPTHWISE_CONV_2D)"]
    assert not any(is_copy(step) for step in plan.steps)
    (step,) = lent
    for name in (*step.reads, *step.writes):
        buffer = plan.buffers[name]
        if plan.pools[buffer.place.name].role is not Role.PARAMETERS:
            assert buffer.place.name == "shared"
            assert buffer.place.offset % 32 == 0
    (region,) = [line for line in explanation_lines(plan, step.writes[0]) if "region" in line]
    assert "1 operators that device 'core1' takes" in region
    with np.load(DIGITS.parent / "heldout.npz") as stored:
        images = stored["images"][:20, np.newaxis]
    result = run_batch(
        tmp_path / "both", [[image] for image in images], options=BuildOptions(flags=("-O0",), sanitize=True)
    )
    reference = LiteRt(DIGITS)
    for image, outputs in zip(images, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(image)[0])
