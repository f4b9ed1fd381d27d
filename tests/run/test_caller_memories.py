"""With `--io caller` the application is told in which memories it may have what devices touch, and runs check it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Border, Io
from bytewright.options import Options, parse_on_option
from bytewright.pipeline import compile_model
from bytewright.target import Target, load_text
from support.reference import LiteRt

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
