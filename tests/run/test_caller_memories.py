"""With `--io caller` the application is told in which memories it may have what devices touch, and runs check it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Border, Io
from bytewright.options import Options, parse_on_option
from bytewright.target import Target, load_text
from support.reference import LiteRt
from tflite_writer import ModelBuilder

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
# Only a DMA engine joins the two devices, and it does not reach all that the CPU does.
FAR = """
name = "far"
default-device = "cpu"
[memory.itcm]
base = 0x10000000
size = "64KiB"
[memory.ram]
base = 0x20000000
size = "256KiB"
[memory.local]
size = "64KiB"
[memory.flash]
size = "1MiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["itcm", "ram", "flash"]
stack = "ram"
[device.core1]
isa = "host"
reach = ["local", "flash"]
stack = "local"
max-stack-size = "8KiB"
[device.dma]
isa = "dma"
reach = ["ram", "local", "flash"]
[[workspace]]
name = "ram"
memory = "ram"
size = "64KiB"
[[workspace]]
name = "local"
memory = "local"
size = "32KiB"
[[parameters]]
name = "flash"
memory = "flash"
"""

# Each core has a memory of its own, which the CPU reaches too, and pools in it that the CPU may not use.
APART = """
name = "apart"
default-device = "cpu"
[memory.own]
size = "64KiB"
[memory.left]
size = "64KiB"
[memory.right]
size = "64KiB"
[memory.flash]
size = "64KiB"
access = "r"
[device.cpu]
isa = "host"
reach = ["own", "left", "right", "flash"]
stack = "own"
[device.core1]
isa = "host"
reach = ["left", "flash"]
stack = "left"
max-stack-size = "4KiB"
[device.core2]
isa = "host"
reach = ["right", "flash"]
stack = "right"
max-stack-size = "4KiB"
[[workspace]]
name = "own"
memory = "own"
size = "16KiB"
devices = ["cpu"]
[[workspace]]
name = "left"
memory = "left"
size = "16KiB"
devices = ["core1"]
[[workspace]]
name = "right"
memory = "right"
size = "16KiB"
devices = ["core2"]
[[parameters]]
name = "flash"
memory = "flash"
"""


def bundle(folder: Path, target: Target, io: Io = Io.CALLER) -> Path:
    options = Options(io=io, on=(parse_on_option("*=core1"),))
    write_bundle(compile_model(DIGITS, target, options).files, folder / "b")
    return folder / "b"


def test_ports_keep_to_memories_that_all_reach_who_touch_them(tmp_path: Path) -> None:
    """It was BW703: the application might have had the input where the DMA engine does not reach."""
    directory = bundle(tmp_path, load_text(FAR, "far.toml"))
    plan = check_bundle(directory).plan
    assert plan.caller_memories(Border.INPUT, plan.inputs[0]) == ("ram", "flash")
    assert plan.caller_memories(Border.OUTPUT, plan.outputs[0]) == ("ram",)
    header = (directory / "include" / "digits.h").read_text()
    assert "zero point 0; in memory ram or flash */" in header
    assert "zero point -128; in memory ram */" in header
    x = np.random.default_rng(1).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
    (y,) = run_bundle(directory, [x]).outputs
    assert np.array_equal(y, LiteRt(DIGITS).run(x)[0])


def test_a_run_refuses_what_lies_elsewhere(tmp_path: Path) -> None:
    """On the host nothing lies at the target's addresses, so that with the check each run is refused."""
    directory = bundle(tmp_path, load_text(FAR, "far.toml"))
    x = np.zeros((1, 8, 8, 1), np.int8)
    with pytest.raises(CompileError, match="RANGE"):
        run_bundle(directory, [x], options=BuildOptions(flags=("-O1", "-DDIGITS_CHECK_RANGE=1")))


def test_where_nobody_can_copy_the_memory_that_is_missing_is_named() -> None:
    """The DMA engine reaches none of the CPU's memory that the application could have an output in."""
    text = FAR.replace('reach = ["ram", "local", "flash"]', 'reach = ["local", "flash"]')
    with pytest.raises(CompileError, match="BW703") as error:
        compile_model(DIGITS, load_text(text, "far.toml"), Options(on=(parse_on_option("*=core1"),)))
    (found,) = [each for each in error.value.diagnostics if "'image'" in each.message]
    missing = "the application may have it in memory 'itcm' or 'ram', which 'dma' does not reach"
    assert missing in found.notes


@pytest.fixture
def two_readers(tmp_path: Path) -> Path:
    """Two operators that read one input; each makes an output."""
    builder = ModelBuilder()
    x, y, z = (builder.tensor(name, (1, 8), "float32") for name in "xyz")
    builder.operator("ABS", [x], [y])
    builder.operator("RELU", [x], [z])
    path = tmp_path / "two.tflite"
    path.write_bytes(builder.build([x], [y, z]))
    return path


def test_a_core_writes_an_output_where_the_application_is_told_to_have_it(
    two_readers: Path, tmp_path: Path
) -> None:
    """Nobody could copy it from the core's pool."""
    options = Options(on=(parse_on_option("ABS=core1"),))
    write_bundle(compile_model(two_readers, load_text(APART, "apart.toml"), options).files, tmp_path / "b")
    plan = check_bundle(tmp_path / "b").plan
    assert [plan.caller_memories(Border.OUTPUT, each) for each in plan.outputs] == [("left",), ()]
    x = np.linspace(-2, 2, 8, dtype=np.float32)[None]
    for found, wanted in zip(
        run_bundle(tmp_path / "b", [x]).outputs, LiteRt(two_readers).run(x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_an_input_in_flash_alone_could_not_be_written(two_readers: Path) -> None:
    """The two cores have no other memory in common."""
    options = Options(on=tuple(map(parse_on_option, ("ABS=core1", "RELU=core2"))))
    with pytest.raises(CompileError) as error:
        compile_model(two_readers, load_text(APART, "apart.toml"), options)
    (found,) = error.value.diagnostics
    assert (found.code, found.message) == (
        "BW703",
        "'x' is needed on device 'core2', and no device can copy it there",
    )
    assert (
        "the application may have it in memory 'own' or 'left', which 'core2' does not reach" in found.notes
    )
    assert found.help == "a device of the target that copies and reaches own or left, and right"
    for device, before, more in (
        ("core1", "left", "right"),
        ("core2", "right", "left"),
        ("core2", "right", "own"),
    ):
        text = APART.replace(f'reach = ["{before}", "flash"]', f'reach = ["{before}", "{more}", "flash"]')
        owner = {"right": "core2", "left": "core1", "own": "cpu"}[more]
        text = text.replace(f'devices = ["{owner}"]', f'devices = ["{owner}", "{device}"]')
        assert compile_model(two_readers, load_text(text, "apart.toml"), options).files  # with the help
