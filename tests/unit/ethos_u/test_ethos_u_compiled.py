"""Files that Vela wrote, imported, lowered and planned: what they compute, where everything lies, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.compiler.pipeline import Planned, plan_model
from bytewright.compiler.run_passes import Runner
from bytewright.diagnostics import CompileError
from bytewright.ethos_u.accesses import accesses
from bytewright.ethos_u.payload import as_cop1, parse_payload
from bytewright.frontends.tflite.importer import import_content
from bytewright.ir.walk import walk_statements
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.ops.ethos_u import OUTPUTS, SCRATCH, EthosU
from bytewright.options import Options
from bytewright.report.lanes import lanes
from bytewright.target.isa.find import require_isa
from bytewright.target.model import Target
from bytewright.target.options import Overrides, parse_resize_option
from bytewright.target.registry import load_target
from support.ethos_u import (
    ADD_ON_CPU,
    DEDICATED,
    IN_LINES,
    LINE_BYTES,
    ONLY,
    SEPARATE,
    SHARED,
    U55,
    U65,
    VelaOperator,
    as_vela_executes,
    assert_equal_to_tflm,
    needs_vela,
    vela,
    vela_operators,
)
from support.evaluate.evaluate import Evaluator
from support.reference import TfLiteMicro
from support.shared_models import AD01, INT8, KWS, RESNET8, model_path
from support.tiers import THOROUGH

NUM_INPUTS = 10 if THOROUGH else 2


def target(accelerator: str) -> Target:
    """The built-in one, with this NPU in it."""
    found = load_target("corstone-300-u55")
    devices = (found.devices[0], replace(found.devices[1], isa=require_isa(accelerator)))
    return replace(found, devices=devices)


def coherent_target(accelerator: str) -> Target:
    """One on which no cache is between the processors."""
    found = target(accelerator)
    cpu, npu = found.devices
    reach = tuple(replace(entry, is_coherent=True) for entry in npu.reach)
    return replace(found, devices=(cpu, replace(npu, reach=reach, cache_line_bytes=0)))


def planned(
    content: bytes,
    folder: Path,
    accelerator: str,
    options: Options | None = None,
    target_for: Callable[[str], Target] = target,
) -> tuple[Planned, ir.Module]:
    """The planned model, and its module before storage decided anything."""
    path = folder / "m.tflite"
    path.write_bytes(content)
    after: dict[str, ir.Module] = {}
    run = Runner(target_for(accelerator), None, after.__setitem__)
    found = plan_model(path, run.target, options or Options(numerics=Numerics.TFLM), run)
    return found, after["name_symbols"]


def assert_equals_tflm(module: ir.Module, original: bytes) -> None:
    evaluator, reference = Evaluator(module, executors={"npu": as_vela_executes}), TfLiteMicro(original)
    parameter = module.main.buffer_parameters[0].buffer
    generator, shape = np.random.default_rng(5), module.inputs[0].type.fixed_shape
    inputs = [generator.integers(-128, 128, shape, dtype=np.int8) for _ in range(NUM_INPUTS)]
    found = [next(iter(evaluator.run(module.main.name, {parameter.name: x}).values())) for x in inputs]
    assert_equal_to_tflm([np.asarray(output) for output in found], [reference.run(x)[0] for x in inputs])


def workspace_of(found: Planned) -> dict[str, int]:
    return {pool.name: pool.used_bytes for pool in found.plan.pools.values() if pool.role == "workspace"}


@needs_vela
@pytest.mark.parametrize("mode", [SHARED, ONLY])
@pytest.mark.parametrize("accelerator", [U55, U65])
@pytest.mark.parametrize("name", INT8)
@pytest.mark.parametrize(
    ("options", "target_for"),
    [(IN_LINES, target), ((), coherent_target)],
    ids=["in lines of a cache", "without a cache"],
)
def test_a_planned_model_equals_tflm_in_no_more_than_velas_scratch(
    name: str,
    accelerator: str,
    mode: str,
    options: tuple[str, ...],
    target_for: Callable[[str], Target],
    tmp_path: Path,
) -> None:
    original = model_path(name).read_bytes()
    content = vela(original, accelerator, mode, *options)
    found, _ = planned(content, tmp_path, accelerator, target_for=target_for)
    assert_equals_tflm(found.module, original)
    (operator,) = vela_operators(content)
    assert workspace_of(found) == {"dtcm": 0, "isram": operator.scratch.size_bytes}


@needs_vela
@pytest.mark.parametrize("name", INT8)
def test_a_scratch_of_half_a_line_too_much_is_given_the_whole_line(name: str, tmp_path: Path) -> None:
    """Vela rounds its scratch to 16 bytes unless it is told more; the NPU touches the last of them."""
    content = vela(model_path(name).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    scratch_bytes = operator.scratch.size_bytes
    assert (
        max(access.last for access in accesses(operator.operations) if access.region == 1)
        == scratch_bytes - 1
    )
    lines_bytes = -(-scratch_bytes // LINE_BYTES) * LINE_BYTES
    found, _ = planned(content, tmp_path, U55)
    assert workspace_of(found) == {"dtcm": 0, "isram": lines_bytes}
    assert lines_bytes > scratch_bytes or name in {RESNET8, AD01}


@needs_vela
@pytest.mark.parametrize("mode", [SHARED, ONLY])
@pytest.mark.parametrize("accelerator", [U55, U65])
def test_a_model_of_both_processors_equals_tflm(accelerator: str, mode: str, tmp_path: Path) -> None:
    original = model_path(RESNET8).read_bytes()
    content = vela(original, accelerator, mode, *IN_LINES, *ADD_ON_CPU)
    found, _ = planned(content, tmp_path, accelerator)
    assert_equals_tflm(found.module, original)
    device_of = {kernel.name: kernel.device for kernel in found.module.kernels}
    devices = [device_of[call.callee] for call in calls(found.module)]
    assert devices.count("npu") == 4
    # The model's own input and output alone are copied: all else is written and read where it lies in the scratch.
    copies = [step.operators[0].startswith("device_copy") for step in found.plan.steps]
    assert copies == [True, *[False] * 7, True]
    scratch_bytes = vela_operators(content)[0].scratch.size_bytes
    assert workspace_of(found) == {"dtcm": 0, "isram": scratch_bytes}
    assert all(
        buffer.place.name != "dtcm" for buffer in found.plan.buffers.values() if "scratch" in buffer.name
    )


@needs_vela
def test_copies_into_a_block_and_out_of_it_are_copies_in_the_lanes(tmp_path: Path) -> None:
    found, _ = planned(vela(model_path(AD01).read_bytes(), U55, SHARED), tmp_path, U55)
    copies, work = ("device_copy for 0 (CUSTOM 'ethos-u')",), ("0 (CUSTOM 'ethos-u')",)
    assert [step.operators for step in found.plan.steps] == [copies, work, copies]
    cpu, npu = lanes(found.plan)
    assert (cpu.device, cpu.steps, cpu.copies, cpu.copied_bytes) == ("cpu", (0, 2), (0, 2), 640 + 640)
    assert (npu.device, npu.steps, npu.copies, npu.copied_bytes) == ("npu", (1,), (), 0)


@needs_vela
@pytest.mark.parametrize("options", [SEPARATE, (*ADD_ON_CPU, *SEPARATE)])
@pytest.mark.parametrize("accelerator", [U55, U65])
def test_separate_regions_are_ordinary_buffers(
    accelerator: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    original = model_path(RESNET8).read_bytes()
    content = vela(original, accelerator, SHARED, *options)
    asked = Options(numerics=Numerics.TFLM, io=ir.Io.WORKSPACE)
    found, module = planned(content, tmp_path, accelerator, asked)
    assert_equals_tflm(module, original)
    assert not any(call.callee.endswith(("place", "fetch")) for call in calls(module))
    sizes = [b.size_bytes for b in found.plan.buffers.values() if b.name.endswith("scratch")]
    streams = vela_operators(content)
    assert max(sizes) == streams[0].scratch.size_bytes
    assert len(sizes) == len(streams)


def most_live_bytes(operator: VelaOperator) -> int:
    """The bytes that hold something still wanted, at the operation where they are most, the inputs not counted.

    A byte does so from the operation that writes it to the last one that reads it, or to the end if it is a result.
    """
    num_operations = len(operator.operations)
    changes = np.zeros(num_operations + 1, np.int64)
    results = {(OUTPUTS, o.offset + byte) for o in operator.outputs for byte in range(o.size_bytes)}
    written: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}

    def close(byte: tuple[int, int]) -> None:
        changes[written[byte]] += 1
        changes[num_operations if byte in results else last[byte] + 1] -= 1

    for access in accesses(operator.operations):
        if access.region not in {SCRATCH, OUTPUTS}:
            continue
        for byte in ((access.region, offset) for offset in range(access.first, access.last + 1)):
            if access.writes:
                if byte in written and byte not in results:
                    close(byte)
                    del written[byte]
                written.setdefault(byte, access.operation)
            last[byte] = access.operation
    for byte in written:
        close(byte)
    return int(np.cumsum(changes).max())


@needs_vela
@pytest.mark.parametrize(
    ("options", "scratch_bytes", "live_bytes", "workspace_bytes"),
    [((), 21776, 51840, 57632), (("--optimise", "Size"), 16384, 49152, 52224)],
    ids=["for time", "for size"],
)
def test_resnet8_with_its_additions_on_the_cpu_has_at_most_60_percent_of_the_scratch(
    options: tuple[str, ...], scratch_bytes: int, live_bytes: int, workspace_bytes: int, tmp_path: Path
) -> None:
    """Of the scratch; of the whole workspace no plan of whole tensors can: one addition has more in its operands."""
    original = model_path(RESNET8).read_bytes()
    before = vela_operators(vela(original, U55, SHARED, *ADD_ON_CPU))[0].scratch.size_bytes
    content = vela(original, U55, SHARED, *ADD_ON_CPU, *SEPARATE, *options)
    asked = Options(numerics=Numerics.TFLM, io=ir.Io.WORKSPACE)
    found, module = planned(content, tmp_path, U55, asked)
    assert_equals_tflm(module, original)
    buffers = found.plan.buffers
    assert max(b.size_bytes for b in buffers.values() if b.name.endswith("scratch")) == scratch_bytes
    assert before == 51840
    assert scratch_bytes <= 0.6 * before
    first = vela_operators(content)[0]
    assert sum(output.size_bytes for output in first.outputs) == 32768 > 0.6 * before
    assert most_live_bytes(first) == live_bytes
    assert workspace_of(found) == {"dtcm": 0, "isram": workspace_bytes}
    (size_of_input,) = (tensor.size_bytes for tensor in first.inputs)
    assert workspace_bytes - size_of_input <= scratch_bytes + 32768 + LINE_BYTES


@needs_vela
def test_a_fast_scratch_is_a_block_of_its_own(tmp_path: Path) -> None:
    original = model_path(KWS).read_bytes()
    found, _ = planned(vela(original, U65, DEDICATED), tmp_path, U65)
    assert_equals_tflm(found.module, original)
    blocks = {b.name: b.size_bytes for b in found.plan.buffers.values() if "scratch" in b.name}
    assert sorted(blocks.values()) == [490, 22192]


@needs_vela
@pytest.mark.parametrize("options", [(), SEPARATE])
def test_the_stream_that_is_kept_is_what_the_core_driver_takes(options: tuple[str, ...]) -> None:
    content = vela(model_path(AD01).read_bytes(), U55, SHARED, *options)
    module = import_content(content, "m.tflite", numerics=Numerics.TFLM)
    (node,) = module.graph.nodes
    kept = {constant.name: constant.data.content for constant in module.constants}[node.inputs[0]]
    (operator,) = vela_operators(content)
    assert kept == as_cop1(parse_payload(operator.payload))
    assert kept[:4] == b"COP1"


@needs_vela
def test_a_pool_one_granule_short_of_the_scratch_is_refused(tmp_path: Path) -> None:
    content = vela(model_path(AD01).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    need = operator.scratch.size_bytes

    def with_room(size_bytes: int) -> Planned:
        overrides = Overrides(resize=(parse_resize_option(f"isram={size_bytes}B"),))
        return planned(content, tmp_path, U55, Options(numerics=Numerics.TFLM, overrides=overrides))[0]

    assert with_room(need).plan.pools["isram"].used_bytes == need
    with pytest.raises(CompileError, match="BW301"):
        with_room(need - 16)


@needs_vela
def test_a_stream_for_another_npu_is_refused(tmp_path: Path) -> None:
    content = vela(model_path(AD01).read_bytes(), U65, SHARED)
    with pytest.raises(CompileError, match="BW744") as error:
        planned(content, tmp_path, U55)
    (found,) = error.value.diagnostics
    assert (
        found.message == "the stream is for ethos-u65-256, of which target 'corstone-300-u55' has no device"
    )


@needs_vela
def test_all_streams_for_another_npu_are_refused_and_what_is_between_them_is_none_the_worse(
    tmp_path: Path,
) -> None:
    """The CPU's layer between two calls reads what the first one computes: it was a KeyError."""
    content = vela(model_path(RESNET8).read_bytes(), U65, DEDICATED, *ADD_ON_CPU)
    with pytest.raises(CompileError, match="BW744") as error:
        planned(content, tmp_path, U55)
    assert [found.code for found in error.value.diagnostics] == ["BW744"] * 4


@needs_vela
def test_a_stream_that_no_model_knows_is_refused_at_import() -> None:
    """It rounds towards minus infinity, which is decoded; it was refused when the bundle was run."""
    content = vela(model_path(AD01).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    words = np.frombuffer(operator.payload, "<u4").copy()
    precision = np.flatnonzero(words & 0xFFFF == 0x114)
    words[precision] |= 1 << 30
    with pytest.raises(CompileError, match="BW742") as error:
        import_content(
            damaged(content, operator.payload, words.tobytes()), "m.tflite", numerics=Numerics.TFLM
        )
    assert "rounds towards minus infinity" in error.value.diagnostics[0].message


@needs_vela
def test_other_numerics_are_refused_with_the_option_that_helps() -> None:
    content = vela(model_path(AD01).read_bytes(), U55, SHARED)
    with pytest.raises(CompileError, match="BW745") as error:
        import_content(content, "m.tflite")
    assert error.value.diagnostics[0].help == "--numerics tflm"


def damaged(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    assert len(old) == len(new)
    return content.replace(old, new)


def _with_registers(words: NDArray[np.uint32], changes: dict[int, int]) -> NDArray[np.uint32]:
    """The stream with a last output of two pixels: told where the distance of channels was, which it does not use."""
    words = words.copy()
    for command, value in changes.items():
        last = int(np.flatnonzero(words & 0xFFFF == command)[-1])
        if command & 0x4000:
            words[last + 1] = value
        else:
            words[last] = value << 16 | command
    room = int(np.flatnonzero(words & 0xFFFF == 0x4016)[-1])
    words[room : room + 2] = (1 << 16 | 0x111, 1 << 16 | 0x11A)
    return words


@needs_vela
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("shape", "BW743"),
        ("action", "BW741"),
        ("stop", "BW740"),
        ("activation", "BW742"),
        ("options", "BW741"),
        ("offset", "BW743"),
        ("hole", "BW743"),
    ],
)
def test_each_mistake_of_a_file_is_one_clear_error(change: str, code: str) -> None:
    content = vela(model_path(AD01).read_bytes(), U55, SHARED)
    (operator,) = vela_operators(content)
    payload, words = operator.payload, np.frombuffer(operator.payload, "<u4").copy()
    match change:
        case (
            "shape"
        ):  # the scratch tensor of 768 bytes is said to be 16 bytes shorter than what the stream touches
            broken = damaged(content, b"\x01\0\0\0\x00\x03\0\0", b"\x01\0\0\0\xf0\x02\0\0")
        case "options":
            broken = damaged(content, b"\x01\x04\x01", b"\x01\x04\x02")
        case "offset":  # of input and output, 128 of 768
            broken = damaged(
                content, np.array([0, 128, 128], "<i4").tobytes(), np.array([0, 752, 128], "<i4").tobytes()
            )
        case _:
            if change == "action":
                words[4] = 3
            elif change == "stop":
                words[-1] = 0x12
            elif (
                change == "hole"
            ):  # two pixels of 319 channels, 321 bytes from each other: from 0 to 639 but for two
                words = _with_registers(words, {0x113: 318, 0x4014: 321})
            else:
                words[words & 0xFFFF == 0x125] = 4 << 16 | 0x125
            broken = damaged(content, payload, words.tobytes())
    with pytest.raises(CompileError) as error:
        import_content(broken, "m.tflite", numerics=Numerics.TFLM)
    (found,) = error.value.diagnostics
    assert found.code == code
    assert found.where is not None
    assert "operator 0 (CUSTOM 'ethos-u')" in found.where


def calls(module: ir.Module) -> list[ir.Call]:
    return [statement for statement in walk_statements(module.main.body) if isinstance(statement, ir.Call)]


def test_an_operator_states_where_its_operands_lie() -> None:
    operation = EthosU(U55, (64, 0, 0, 0), (0,), (32,), ((1, 16),))
    stream, data = ir.TensorType((32,), ir.DType.U8), ir.TensorType((1, 16), ir.DType.I8)
    (result,) = operation.infer((stream, stream, data))
    assert (result.shape, result.dtype) == ((1, 16), ir.DType.I8)
    with pytest.raises(ValueError, match="bytes 32 to 48 lie beyond region 1 of 40"):
        replace(operation, region_bytes=(40, 0, 0, 0)).infer((stream, stream, data))
    with pytest.raises(ValueError, match="2 operands for a stream, its constants and 1 inputs"):
        operation.infer((stream, stream))
