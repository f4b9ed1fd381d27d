"""Devices of a run on the host are processes that have what they are lent; what goes beyond is told as what it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bytewright.diagnostics import CompileError, Diagnostic, ExitCode
from bytewright.execute.build import BuildOptions
from bytewright.execute.host import HostModel
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch, run_bundle
from bytewright.execute.worker import commands, streams
from bytewright.options import Options, Pin
from bytewright.record.devices import PlannedDevice
from support.c_program import WARNINGS
from support.compilers import host_build
from support.two_devices import PROGRAM, STREAM_TARGET, bundle, evaluated, stream_program

X = (np.arange(32) * 997 - 9000).astype(np.int16)
Y = evaluated(PROGRAM, {"x": X})["y"]
KERNELS, ENTRY = "src/pair_core1_kernels.c", "src/pair.c"
# `shifted` behind `filtered`, which it would share bytes with: so there are others than those that a job is given.
APART = Options(pins=(Pin("shifted", "shared", offset=128),))
# The end of pair_filter, whose `y` is at the beginning of what core1 is lent of pool 'shared': 256 bytes.
END_OF_FILTER = "        y[row] = sum;\n    }\n"
FILTER = r"device 'core1' {} in job 1 \(kernel 'pair_filter', step 2\) of model 'pair' on the host"


def changed(folder: Path, file: str, before: str, after: str) -> Path:
    """The bundle with a line of its C changed."""
    directory = bundle(folder / "pair", options=APART)
    path = directory / file
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, after))
    return directory


def misbehaving(folder: Path, code: str) -> Path:
    """The bundle whose first kernel of core1 does something more at its end."""
    return changed(folder, KERNELS, END_OF_FILTER, END_OF_FILTER + code)


def refusal(directory: Path, **options: object) -> Diagnostic:
    """The one diagnostic of a run, the same in this process and as a program."""
    found: list[Diagnostic] = []
    for sanitize in (False, True):
        build = replace(host_build(sanitize=sanitize), **options)  # type: ignore[arg-type]
        with pytest.raises(CompileError) as caught:
            run_bundle(directory, [X], options=build)
        (diagnostic,) = caught.value.diagnostics
        found.append(diagnostic)
    assert [(f.code, f.message) for f in found[:1]] == [(f.code, f.message) for f in found[1:]]
    return found[0]


# What is right


@pytest.mark.parametrize("sanitize", [False, True])
def test_kernels_on_a_second_core_and_copies_of_a_dma_are_exact(tmp_path: Path, sanitize: bool):
    directory = bundle(tmp_path / "pair")
    inputs = [(X * factor).astype(np.int16) for factor in (1, 0, -1)]
    result = run_batch(
        directory, [[x] for x in inputs], repeat=3, options=host_build(flags=WARNINGS, sanitize=sanitize)
    )
    for x, (y,) in zip(inputs, result.outputs, strict=True):
        assert np.array_equal(y, evaluated(PROGRAM, {"x": x})["y"])


def test_a_paranoid_run_has_its_devices(tmp_path: Path):
    watched = run_paranoid(bundle(tmp_path / "pair"), [X])
    assert np.array_equal(watched.result.outputs[0], Y)


def test_the_kernels_of_a_device_are_in_its_process_alone(tmp_path: Path):
    """Without the definition of the function that runs them there is no device, but the model is whole."""
    directory = changed(
        tmp_path,
        KERNELS,
        "int32_t pair_core1_execute(",
        "int32_t pair_core1_executes(const void *, uint32_t, const pair_span *, uint32_t);\n"
        "int32_t pair_core1_executes(",
    )
    with pytest.raises(CompileError, match="undefined reference to `pair_core1_execute'"):
        run_bundle(directory, [X])


# What goes beyond


def test_a_write_to_constants(tmp_path: Path):
    error = refusal(misbehaving(tmp_path, "    ((volatile int16_t *)(uintptr_t)taps_of)[1] = 5;\n"))
    assert error.code == "BW730"
    assert re.fullmatch(FILTER.format("touched what it was not lent"), error.message)
    assert "byte 2 of 'taps' in pool 'flash', which it may only read" in error.notes[0]
    assert error.exit_code is ExitCode.NOT_VERIFIED


@pytest.mark.parametrize("access", ["{0} = 1", "sink = {0}"])
@pytest.mark.parametrize(
    ("index", "place"),
    [
        (256, "1 B behind the last byte of what it is lent of pool 'shared'"),
        (300, "45 B behind the last byte of what it is lent of pool 'shared'"),
    ],
)
def test_a_byte_past_the_pool(tmp_path: Path, access: str, index: int, place: str):
    statement = access.format(f"((volatile int8_t *)y)[{index}]")
    error = refusal(
        misbehaving(tmp_path, f"    volatile int8_t sink = 0;\n    (void)sink;\n    {statement};\n")
    )
    assert (error.code, place in error.notes[0]) == ("BW730", True), error.notes


def test_a_byte_before_the_pool_is_noticed_when_it_is_written(tmp_path: Path):
    error = refusal(misbehaving(tmp_path, "    ((volatile int8_t *)y)[-1] = 1;\n"))
    assert error.code == "BW730"
    assert "1 B before the first byte of what it is lent of pool 'shared'" in error.notes[0]


def test_a_byte_beside_what_the_job_was_given(tmp_path: Path):
    """It is lent for the run, and another kernel's, but not this job's."""
    error = refusal(misbehaving(tmp_path, "    ((volatile int8_t *)y)[129] ^= 1;\n"))
    assert error.code == "BW730"
    assert "it wrote byte 129 in pool 'shared', of which it was given other bytes" in error.notes[0]


# The numbers of a job carry an address of the model's process, in two halves, and a kernel follows it.
FOLLOWED = (
    "*(volatile int8_t *)(uintptr_t)(((uint64_t)(uint32_t)call.scalars[1] << 32) | (uint32_t)call.scalars[0])"
)


def leaking(folder: Path, address: str) -> Path:
    directory = changed(
        folder,
        ENTRY,
        "static const pair_core1_call call = {0u, {7, 1}};",
        (
            f"const pair_core1_call call = {{0u, {{(int32_t)(uint32_t)(uintptr_t){address}, "
            f"(int32_t)(uint32_t)((uint64_t)(uintptr_t){address} >> 32)}}}};"
        ),
    )
    path = directory / KERNELS
    before = "                pair_filter(\n"
    text = path.read_text()
    assert text.count(before) == 1
    path.write_text(text.replace(before, f"                {FOLLOWED} = 1;\n{before}"))
    return directory


def test_an_address_of_lent_memory_as_the_model_has_it(tmp_path: Path):
    error = refusal(leaking(tmp_path, "(shared_base + 3)"))
    assert error.code == "BW730"
    assert re.search(
        r"it wrote address 0x[0-9a-f]+, by which device 'cpu' knows byte 3 of 'lent'", error.notes[0]
    )
    assert error.notes[1] == "device 'core1' has that memory at another address"


@pytest.mark.parametrize("address", ["(near + 5)"])
def test_an_address_of_memory_that_the_device_does_not_reach(tmp_path: Path, address: str):
    error = refusal(leaking(tmp_path, address))
    assert error.code == "BW730"
    assert "byte 5 of workspace 'near' in the process of the model" in error.notes[0]


def test_a_null_pointer(tmp_path: Path):
    directory = leaking(tmp_path, "NULL")
    with pytest.raises(CompileError) as caught:
        run_bundle(directory, [X])
    (error,) = caught.value.diagnostics
    assert (error.code, error.notes) == (
        "BW730",
        ("it wrote address 0x0: nothing that the model has told it of",),
    )
    with pytest.raises(
        CompileError, match="its process ended with exit status 1"
    ):  # the sanitizer's, of the device
        run_bundle(directory, [X], options=BuildOptions(flags=("-O0",), sanitize=True))


# What fails


def test_a_kernel_that_does_not_end(tmp_path: Path):
    directory = misbehaving(tmp_path, "    for (volatile int forever = 1; forever;) {\n    }\n")
    error = refusal(directory, device_timeout_seconds=0.5)
    assert error.code == "BW733"
    assert re.fullmatch(
        FILTER.format("did not finish").replace(" in job", " job") + r" within 0\.5 s", error.message
    )


def test_a_process_that_ends(tmp_path: Path):
    directory = changed(tmp_path, KERNELS, "#include <string.h>", "#include <string.h>\n#include <stdlib.h>")
    path = directory / KERNELS
    path.write_text(path.read_text().replace(END_OF_FILTER, END_OF_FILTER + "    _Exit(9);\n"))
    error = refusal(directory)
    assert (error.code, error.notes) == ("BW731", ("its process ended with exit status 9",))


def test_a_job_that_the_bundle_refuses(tmp_path: Path):
    error = refusal(changed(tmp_path, KERNELS, "{8u, 2u, PAIR_SPAN_READ}", "{9u, 2u, PAIR_SPAN_READ}"))
    assert error.code == "BW731"
    assert re.fullmatch(FILTER.format("refused").replace(" in job", " job"), error.message)
    assert "PAIR_ERROR_SIZE" in error.notes[0]


def test_a_span_that_was_not_opened(tmp_path: Path):
    before = "lend(context->shared, 256u, PAIR_SPAN_READ | PAIR_SPAN_WRITE)"
    error = refusal(changed(tmp_path, ENTRY, before, before.replace("256u", "127u")))
    assert error.code == "BW732"
    assert "was not lent what it needs for job 1 (kernel 'pair_filter', step 2)" in error.message


def test_the_next_run_works_after_each_failure(tmp_path: Path):
    """What a kernel does depends on its input; the process begins again where it ended."""
    directory = misbehaving(
        tmp_path,
        "    if (x[31] == 1) {\n        ((volatile int16_t *)(uintptr_t)taps_of)[1] = 5;\n    }\n"
        "    if (x[31] == 2) {\n        ((volatile int8_t *)y)[129] ^= 1;\n    }\n"
        "    if (x[31] == 3) {\n        for (volatile int forever = 1; forever;) {\n        }\n    }\n",
    )
    # `y` lies on `x`: what decides has to be read before.
    path = directory / KERNELS
    text = path.read_text().replace(
        "    int16_t padded[35];\n", "    int16_t padded[35];\n    const int16_t mode = x[31];\n", 1
    )
    path.write_text(text.replace("if (x[31] ==", "if (mode =="))
    context = HostModel.build(directory, BuildOptions(device_timeout_seconds=0.5)).open()
    for mode, code in (
        (0, None),
        (1, "BW730"),
        (0, None),
        (2, "BW730"),
        (3, "BW733"),
        (1, "BW730"),
        (0, None),
    ):
        x = X.copy()
        x[31] = mode
        if code is None:
            (found,), _ = context.run([x])
            assert np.array_equal(found, evaluated(PROGRAM, {"x": x})["y"])
        else:
            with pytest.raises(CompileError, match=code):
                context.run([x])


def test_the_processes_end_with_the_model(tmp_path: Path):

    def processes() -> list[str]:
        found = [
            path
            for path in Path("/proc").glob("[0-9]*/stat")
            if _parent(path) == Path("/proc/self").resolve().name
        ]
        return [path.read_text().split()[1] for path in found]

    before = processes().count("(device)")
    model = HostModel.build(bundle(tmp_path / "pair"))
    model.run([X])
    assert processes().count("(device)") == before + 2
    del model
    assert processes().count("(device)") == before


def _parent(stat: Path) -> str:
    try:
        return stat.read_text().rpartition(")")[2].split()[1]
    except OSError:
        return ""


# Command streams

# The model of a made-up unit: halves of its first memory go to the second, and the stream's first byte says what else.
MODEL = """
from bytewright.execute.worker import stream, streams
import numpy as np

class Model:
    def execute(self, code, regions):
        if code[0] == 9:
            raise ValueError("an order that is none")
        if code[0] == 8:
            raise streams.OutOfReachError(1, 64, True)
        if code[0] == 7:
            regions[0].data[0] = 1
        source = regions[0].data.view("<i4")
        regions[1].data.view("<i2")[:] = (source // 2).astype("<i2")

streams.STREAM_MODELS["npu"] = lambda isa: Model()
stream.main("npu")
"""


class ElsewhereModel:
    """The model as the process of the test knows it, in which no stream is carried out."""

    def __init__(self, isa: str) -> None:
        self.isa = isa

    def execute(self, code: bytes, regions: Sequence[streams.StreamRegion]) -> None:
        raise AssertionError(f"{len(code)} bytes on {len(regions)} regions are for the process of {self.isa}")


def stream_bundle(folder: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(streams.STREAM_MODELS, "npu", ElsewhereModel)
    script = folder / "toy.py"
    script.write_text(MODEL)

    def command(device: PlannedDevice) -> tuple[str, ...]:
        assert device.isa == "npu"
        return (sys.executable, str(script))

    monkeypatch.setattr(commands, "stream_command", command)
    return bundle(folder / "pair", stream_program(mode), STREAM_TARGET, APART)


def test_a_stream_is_carried_out_by_the_model_of_its_instruction_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def execute(code: bytes, regions: list[np.ndarray]) -> None:
        del code
        regions[1].view("<i2")[:] = (regions[0].view("<i4") // 2).astype("<i2")

    directory = stream_bundle(tmp_path, 0, monkeypatch)
    expected = evaluated(stream_program(), {"x": X}, executors={"npu": execute})["y"]
    for sanitize in (False, True):
        (found,) = run_bundle(directory, [X], options=host_build(sanitize=sanitize)).outputs
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("mode", "code", "note"),
    [
        (8, "BW730", "it wrote byte 64 in pool 'shared', of which it was given other bytes"),
        (9, "BW731", "the model of 'npu' cannot carry out the stream"),
        (7, "BW731", "the model of 'npu' cannot carry out the stream"),
    ],
)
def test_a_stream_that_goes_beyond_its_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, code: str, note: str
):
    error = refusal(stream_bundle(tmp_path, mode, monkeypatch))
    assert (error.code, note in error.notes[0]) == (code, True), error.notes
    assert "(kernel 'pair_narrow', step 4)" in error.message


def test_without_a_model_the_run_is_refused(tmp_path: Path):
    directory = bundle(tmp_path / "pair", stream_program(), STREAM_TARGET)
    with pytest.raises(CompileError, match="no model of 'npu' is known here"):
        run_bundle(directory, [X])
