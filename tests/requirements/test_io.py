"""Requirement P8: inputs and outputs in the workspace, seen in the plan, in the C that is run, and by `check`."""

from __future__ import annotations

import dataclasses
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright as command_line
from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.description import read_bundle
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.execute.tensors import random_inputs as random_run_inputs
from bytewright.inspect.check import check_bundle
from bytewright.inspect.check_files import faults_of_files
from bytewright.inspect.check_plan import faults_of_plan
from bytewright.ir.border import Io
from bytewright.options import Options, parse_pin_option
from bytewright.record.buffers import BufferRole, Place, PlaceKind, PlannedBuffer
from bytewright.record.plan import Plan
from bytewright.target.options import Overrides, apply_overrides, parse_resize_option
from bytewright.target.registry import load_target
from support.c_program import run_c
from support.kws_program import NOT_SET, NULL, OK, expected_output, output_of, two_workspaces
from support.random_networks import random_network
from support.reference import LiteRt
from support.shared_models import (
    AD01,
    BOARD,
    HOST,
    KWS,
    VWW,
    Array,
    bundle,
    compiled,
    model_content,
    model_path,
    new_folder,
    random_inputs,
    target_with,
)
from tflite_writer import ModelBuilder

COUNT = 4
SEED = 8
NUM_NETWORKS = 8
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


@cache
def three_inputs() -> bytes:
    """A chain from `first`; `late` is read in the last step alone, `unread` in none. `early` is a result too."""
    builder = ModelBuilder()
    pool = {"padding": "SAME", "filter_width": 2, "filter_height": 2, "stride_w": 1, "stride_h": 1}
    first, late, unread, *chain = (
        builder.tensor(name, [1, 8, extent, 1], "int8", scale=0.5, zero_point=3)
        for name, extent in (("first", 8), ("late", 8), ("unread", 80), ("early", 8), ("a", 8), ("b", 8))
    )
    total = builder.tensor("total", [1, 8, 8, 1], "int8", scale=1.0, zero_point=0)
    for source, result in zip((first, *chain), chain, strict=False):
        builder.operator("MAX_POOL_2D", [source], [result], **pool)
    builder.operator("ADD", [chain[-1], late], [total])
    return builder.build([first, late, unread], [total, chain[0]])


@cache
def three_inputs_compiled() -> Compiled:
    path = new_folder() / "three.tflite"
    path.write_bytes(three_inputs())
    return compile_model(path, load_target(HOST), Options(io=Io.WORKSPACE))


def three_inputs_plan() -> Plan:
    return three_inputs_compiled().plan


def border(plan: Plan) -> dict[str, PlannedBuffer]:
    """The buffers of inputs and outputs, by the tensor's name."""
    return {tensor.name: plan.buffers[tensor.buffer] for tensor in (*plan.inputs, *plan.outputs)}


def alive_together(first: PlannedBuffer, second: PlannedBuffer) -> bool:
    assert first.live is not None
    assert second.live is not None
    return first.live[0] < second.live[1] and second.live[0] < first.live[1]


def share_bytes(first: PlannedBuffer, second: PlannedBuffer) -> bool:
    a, b = first.place, second.place
    assert a.offset is not None
    assert b.offset is not None
    return (
        a.name == b.name
        and a.offset < b.offset + second.size_bytes
        and b.offset < a.offset + first.size_bytes
    )


def assert_protected(plan: Plan) -> None:
    """Inputs from the first tick to their last read, outputs from their first write to the end, all disjoint."""
    assert plan.io == "workspace"
    for tensors, role in ((plan.inputs, "input"), (plan.outputs, "output")):
        for tensor in tensors:
            buffer = plan.buffers[tensor.buffer]
            assert (buffer.role, buffer.place.kind, buffer.size_bytes) == (role, "planned", tensor.size_bytes)
            reads = [step.ticks for step in plan.steps if buffer.name in step.reads]
            writes = [step.ticks for step in plan.steps if buffer.name in step.writes]
            if role == "input":  # dies within the body of the last call that reads it
                first, end = max(reads, default=(0, 2))
                assert writes == []
                assert buffer.live[0] == 0
                assert first < buffer.live[1] < end
            else:
                first, end = min(writes)
                assert first < buffer.live[0] < end
                assert buffer.live[1] == plan.num_ticks
    placed = [buffer for buffer in plan.buffers.values() if buffer.place.kind == "planned"]
    # An output may lie over an input that dies in its step, no nearer than the step's contract says.
    agreed = {
        frozenset((pair.source, pair.output))
        for step in plan.steps
        for pair in step.overlaps
        if not -pair.below_bytes
        < offset_of(plan, pair.output) - offset_of(plan, pair.source)
        < pair.above_bytes
    }
    for index, first in enumerate(placed):
        for second in placed[index + 1 :]:
            if frozenset((first.name, second.name)) not in agreed:
                assert not (alive_together(first, second) and share_bytes(first, second))


def offset_of(plan: Plan, name: str) -> int:
    offset = plan.buffers[name].place.offset
    assert offset is not None
    return offset


@pytest.mark.parametrize("name", [KWS, VWW, AD01])
def test_p8_inputs_live_from_the_start_and_outputs_to_the_end(name: str) -> None:
    assert_protected(compiled(name, load_target(HOST), io=Io.WORKSPACE).plan)


def test_p8_inputs_may_be_overwritten_after_their_last_read() -> None:
    """kws needs no byte more for having inputs and outputs in the workspace, vww fewer than the input has."""
    for name in (KWS, VWW):
        caller, workspace = (
            compiled(name, load_target(HOST), io=io).plan for io in (Io.CALLER, Io.WORKSPACE)
        )
        assert caller.io == "caller"
        (source,) = workspace.inputs
        buffer = workspace.buffers[source.buffer]
        more_bytes = workspace.workspace_bytes - caller.workspace_bytes
        assert more_bytes == 0 if name == KWS else more_bytes < buffer.size_bytes
        assert any(
            share_bytes(buffer, other) for other in workspace.buffers.values() if is_later(other, buffer)
        )


def is_later(other: PlannedBuffer, buffer: PlannedBuffer) -> bool:
    return other.place.kind == "planned" and other is not buffer and not alive_together(other, buffer)


def test_p8_two_inputs_are_apart_even_if_one_is_first_read_late_or_never() -> None:
    """A public planner let inputs live from their first read on: two of them got one address."""
    plan = three_inputs_plan()
    assert_protected(plan)
    first, late, unread = (border(plan)[name] for name in ("first", "late", "unread"))
    assert late.first_step == len(plan.steps) - 1 == 2
    assert not any(unread.name in step.touched for step in plan.steps)
    assert not share_bytes(first, late)
    assert not share_bytes(first, unread)
    assert not share_bytes(late, unread)


def test_p8_a_plan_with_two_inputs_at_one_address_does_not_verify() -> None:
    """What the test above excludes is also refused by `check`, with the lifetimes right or wrong."""
    plan = three_inputs_plan()
    assert faults_of_plan(plan) == []
    first, late = border(plan)["first"], border(plan)["late"]
    assert late.live is not None
    moved = dataclasses.replace(late, place=first.place)
    assert any(fault.endswith("share bytes: first, late") for fault in faults_of_plan(changed(plan, moved)))
    younger = dataclasses.replace(moved, live=(late.live[1] - 2, late.live[1]))
    assert "input 'late' does not live from the start" in faults_of_plan(changed(plan, younger))


def test_p8_a_plan_whose_border_is_elsewhere_does_not_verify() -> None:
    plan = three_inputs_plan()
    late = border(plan)["late"]
    with_caller = dataclasses.replace(late, place=Place(PlaceKind.CALLER, "late", None))
    assert any(fault.startswith("input 'late'") for fault in faults_of_plan(changed(plan, with_caller)))
    unnamed = {name: buffer for name, buffer in plan.buffers.items() if name != "unread"}
    missing = faults_of_plan(dataclasses.replace(plan, buffers=unnamed))
    assert "input 'unread' has no place in the workspace" in missing
    shorter = dataclasses.replace(late, role=BufferRole.TENSOR)
    assert any(fault.startswith("input 'late'") for fault in faults_of_plan(changed(plan, shorter)))


def changed(plan: Plan, buffer: PlannedBuffer) -> Plan:
    return dataclasses.replace(plan, buffers={**plan.buffers, buffer.name: buffer})


def test_p8_check_compares_the_functions_with_the_plan(tmp_path: Path) -> None:
    compiled_model = three_inputs_compiled()
    write_bundle(compiled_model.files, tmp_path / "three")
    plan = check_bundle(tmp_path / "three").plan
    source = tmp_path / "three" / "src" / "three.c"
    text = source.read_text()
    offset = "THREE_AT_RAM_LATE"
    assert text.count(f"(context->ram + {offset})") == 1
    source.write_text(text.replace(f"(context->ram + {offset})", "(context->ram + THREE_AT_RAM_FIRST)"))
    faults = faults_of_files(tmp_path / "three", compiled_model.document, plan, plan_verifies=False)
    assert f"src/three.c: three_input_late does not return context->ram + {offset}" in faults


@pytest.mark.run
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
@pytest.mark.parametrize("name", [KWS, VWW, AD01])
def test_p8_outputs_are_the_references_in_both_modes(name: str, io: Io) -> None:
    """Each inference runs twice: what overwrote the inputs does not reach the second run's output."""
    batch = random_inputs(name, COUNT, SEED)
    folder = bundle(name, load_target(HOST), io=io)
    check_bundle(folder)
    reference = LiteRt(model_content(name))
    # Bundles whose inputs and outputs the caller brings meet the sanitizers in tests/run.
    builds = [(BuildOptions(), COUNT), *([(SANITIZED, 1)] if io is Io.WORKSPACE else [])]
    for options, count in builds:
        result = run_batch(folder, batch[:count], options=options, repeat=2)
        for inputs, outputs in zip(batch[:count], result.outputs, strict=True):
            np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])


@pytest.mark.run
def test_p8_floats_are_aligned_and_the_same_in_both_modes() -> None:
    name = "ad01_fp32"
    batch = random_inputs(name, COUNT, SEED)
    by_mode = [
        run_batch(bundle(name, load_target(HOST), io=io), batch, options=SANITIZED).outputs
        for io in (Io.CALLER, Io.WORKSPACE)
    ]
    for caller, workspace in zip(*by_mode, strict=True):
        np.testing.assert_array_equal(caller[0], workspace[0])


@pytest.mark.run
def test_p8_several_inputs_and_outputs_give_the_references_outputs(tmp_path: Path) -> None:
    write_bundle(three_inputs_compiled().files, tmp_path / "three")
    generator = np.random.default_rng(SEED)
    batch = [
        [generator.integers(-128, 128, (1, 8, extent, 1)).astype(np.int8) for extent in (8, 8, 80)]
        for _ in range(COUNT)
    ]
    assert_reference(tmp_path / "three", three_inputs(), batch)


@pytest.mark.run
@pytest.mark.parametrize("seed", range(NUM_NETWORKS))
def test_p8_random_networks_in_the_workspace(seed: int, tmp_path: Path) -> None:
    """Results that are inputs, constants or stated twice, inputs that are read late or never."""
    network = random_network(seed, "int8")
    (tmp_path / "network.tflite").write_bytes(network.content)
    made = compile_model(tmp_path / "network.tflite", load_target(HOST), Options(io=Io.WORKSPACE))
    assert_protected(made.plan)
    write_bundle(made.files, tmp_path / "network")
    check_bundle(tmp_path / "network")
    assert_reference(tmp_path / "network", network.content, [network.inputs(seed) for seed in range(2, 5)])


def assert_reference(folder: Path, content: bytes, batch: list[list[Array]]) -> None:
    reference = LiteRt(content)
    result = run_batch(folder, batch, options=SANITIZED, repeat=2)
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        for actual, expected in zip(outputs, reference.run(*inputs), strict=True):
            np.testing.assert_array_equal(actual, expected)


@pytest.mark.run
def test_p8_a_paranoid_run_finds_inputs_and_outputs_where_the_plan_has_them(tmp_path: Path) -> None:
    """Dead bytes are poisoned before the first step: an input that is read late must be alive then."""
    write_bundle(three_inputs_compiled().files, tmp_path / "three")
    for folder in (tmp_path / "three", bundle(KWS, load_target(HOST), io=Io.WORKSPACE)):
        ran = run_paranoid(folder, seed=SEED)
        (plain, *_) = run_batch(folder, [random_run_inputs(read_bundle(folder).plan, SEED)]).outputs
        for paranoid, expected in zip(ran.result.outputs, plain, strict=True):
            np.testing.assert_array_equal(paranoid, expected)


PROGRAM = """
static inline void write_input(int8_t *input)
{
    for (int i = 0; i < 490; ++i) {
        input[i] = (int8_t)(((i * 37 + 11 * (i >> 5)) & 255) - 128);
    }
}

static inline void show_output(const int8_t *output)
{
    for (int i = 0; i < 12; ++i) {
        printf("output %d %d\\n", i, output[i]);
    }
}
"""


@pytest.mark.run
def test_p8_functions_return_the_addresses_once_the_workspaces_are_set(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    char *const base = block(@M@_RAM_WORKSPACE_ALIGN, @M@_RAM_WORKSPACE_SIZE);
    const @m@_workspaces workspaces = {{base, @M@_RAM_WORKSPACE_SIZE}};
    const @m@_workspaces small = {{base, @M@_RAM_WORKSPACE_SIZE - 1}};
    int num_changed = 0;
    int8_t *input;

    SHOW("input of nothing", @m@_input_input_1(NULL) == NULL);
    SHOW("output of nothing", @m@_output_identity(NULL) == NULL);
    SHOW("run nothing", @m@_run(NULL));
    SHOW("run before", @m@_run(&context));
    SHOW("refused", @m@_set_workspaces(&context, &small) < 0);
    SHOW("input before", @m@_input_input_1(&context) == NULL);
    SHOW("output before", @m@_output_identity(&context) == NULL);
    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    input = @m@_input_input_1(&context);
    SHOW("input", (char *)input - base);
    SHOW("output", (const char *)@m@_output_identity(&context) - base);
    for (int i = 0; i < 2; ++i) {
        write_input(input);
        SHOW(i == 0 ? "first run" : "second run", @m@_run(&context));
    }
    show_output(@m@_output_identity(&context));
    for (int i = 0; i < 490; ++i) {
        num_changed += input[i] != (int8_t)(((i * 37 + 11 * (i >> 5)) & 255) - 128);
    }
    SHOW("changed", num_changed);
    free(base);
    return 0;
}
"""
    folder = bundle(KWS, load_target(HOST), io=Io.WORKSPACE)
    plan = compiled(KWS, load_target(HOST), io=Io.WORKSPACE).plan
    shown = run_c(folder, PROGRAM + source, tmp_path)
    assert all(shown[what] == 1 for what in ("input of nothing", "output of nothing", "refused"))
    assert (shown["run nothing"], shown["run before"]) == (NULL, NOT_SET)
    assert (shown["input before"], shown["output before"]) == (1, 1)
    assert (shown["set"], shown["first run"], shown["second run"]) == (OK, OK, OK)
    assert shown["input"] == border(plan)["input_1"].place.offset
    assert shown["output"] == border(plan)["identity"].place.offset
    assert output_of(shown) == expected_output()
    assert shown["changed"] > 0, "the input's bytes serve other buffers later"


@pytest.mark.run
def test_p8_inputs_and_outputs_can_be_pinned_to_pools(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};
    char *const fast = block(@M@_FAST_WORKSPACE_ALIGN, @M@_FAST_WORKSPACE_SIZE);
    char *const slow = block(@M@_SLOW_WORKSPACE_ALIGN, @M@_SLOW_WORKSPACE_SIZE);
    const @m@_workspaces workspaces = {{fast, @M@_FAST_WORKSPACE_SIZE}, {slow, @M@_SLOW_WORKSPACE_SIZE}};

    SHOW("set", @m@_set_workspaces(&context, &workspaces));
    SHOW("input", (char *)@m@_input_input_1(&context) - slow);
    SHOW("output", (const char *)@m@_output_identity(&context) - fast);
    write_input(@m@_input_input_1(&context));
    SHOW("run", @m@_run(&context));
    show_output(@m@_output_identity(&context));
    free(fast);
    free(slow);
    return 0;
}
"""
    pins = (parse_pin_option("input_1=slow"), parse_pin_option("softmax*/out=fast"))
    made = compile_model(model_path(KWS), two_workspaces(), Options(io=Io.WORKSPACE, pins=pins))
    write_bundle(made.files, tmp_path / "kws")
    shown = run_c(tmp_path / "kws", PROGRAM + source, tmp_path)
    places = {name: buffer.place for name, buffer in border(made.plan).items()}
    assert (places["input_1"].name, places["identity"].name) == ("slow", "fast")
    assert (shown["set"], shown["run"]) == (OK, OK)
    assert (shown["input"], shown["output"]) == (places["input_1"].offset, places["identity"].offset)
    assert output_of(shown) == expected_output()


@pytest.mark.run
def test_p8_addresses_in_a_generated_workspace_need_no_call_before(tmp_path: Path) -> None:
    source = """
int main(void)
{
    @m@_context context = {0};

    SHOW("input of nothing", @m@_input_input_1(NULL) == NULL);
    write_input(@m@_input_input_1(&context));
    SHOW("run", @m@_run(&context));
    show_output(@m@_output_identity(&context));
    return 0;
}
"""
    folder = bundle(KWS, target_with(HOST, "ram=generated"), io=Io.WORKSPACE)
    shown = run_c(folder, PROGRAM + source, tmp_path)
    assert (shown["input of nothing"], shown["run"]) == (1, OK)
    assert output_of(shown) == expected_output()


@pytest.mark.run
def test_p8_the_python_interface_and_the_command_line_know_both_modes(tmp_path: Path) -> None:
    (inputs,) = random_inputs(KWS, 1, SEED)
    model = bytewright.compile(model_path(KWS), io="workspace")
    np.testing.assert_array_equal(model.run(*inputs), LiteRt(model_content(KWS)).run(*inputs)[0])
    assert model.plan.io == "workspace"
    with pytest.raises(ValueError, match="nowhere"):
        bytewright.compile(model_path(KWS), io="nowhere")
    arguments = ["compile", str(model_path(KWS)), "-o", str(tmp_path / "kws"), "--json", "--io"]
    done = CliRunner().invoke(command_line, [*arguments, "workspace"])
    assert (done.exit_code, json.loads(done.stdout)["io"]) == (0, "workspace")
    assert check_bundle(tmp_path / "kws").plan.plan_hash == model.plan.plan_hash
    assert CliRunner().invoke(command_line, [*arguments, "nowhere"]).exit_code == 2


def test_p8_the_header_has_functions_in_place_of_structs() -> None:
    header = compiled(KWS, load_target(HOST), io=Io.WORKSPACE).files["include/kws_ref_model.h"].decode()
    assert "\nint8_t *kws_ref_model_input_input_1(const kws_ref_model_context *context);\n" in header
    assert "\nconst int8_t *kws_ref_model_output_identity(const kws_ref_model_context *context);\n" in header
    assert "\nint32_t kws_ref_model_run(kws_ref_model_context *context);\n" in header
    assert "kws_ref_model_inputs" not in header
    assert "kws_ref_model_outputs" not in header


@pytest.mark.board
@pytest.mark.skipif(shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("io", [Io.CALLER, Io.WORKSPACE])
def test_p8_on_the_board_in_both_modes(io: Io) -> None:
    """Half of the workspace in DTCM, the rest in ISRAM; each inference runs twice in one image."""
    overrides = Overrides(resize=(parse_resize_option("dtcm=8KiB"),))
    folder = bundle(KWS, apply_overrides(load_target(BOARD), overrides), io=io)
    batch = random_inputs(KWS, COUNT, SEED)
    result = run_batch(folder, batch, on="qemu", repeat=2)
    reference = LiteRt(model_content(KWS))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
    assert len(result.instructions) == 2 * COUNT
    assert result.instructions[0] == result.instructions[1]
