"""What one device has alone takes no more memory than on the CPU: rows, and outputs over inputs that die.

`core1` of mps2-an521 has instructions that core 0 lacks, whose kernels take scratch; so it is compared with a core 0 of
the same kind.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_bundle
from bytewright.inspect.check import check_bundle
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options, Rows, parse_on_option
from bytewright.record.plan import Plan
from bytewright.target import Target, load_text
from bytewright.target.registry import load_target
from support.ethos_u import U55, needs_vela, npu_bundle, vela
from support.reference import LiteRt
from support.shared_models import AD01, KWS, RESNET8, VWW, model_path
from support.tiers import some

DATA = Path(__file__).resolve().parents[1] / "data"
DOCS = Path(__file__).resolve().parents[2] / "docs"
DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.tflite"
TARGETS = Path(__file__).resolve().parents[2] / "src" / "bytewright" / "target" / "builtin"
BOARD = (TARGETS / "mps2-an521.toml").read_text()
EQUAL_CORES = BOARD.replace("cortex-m33+nodsp", "cortex-m33").replace('"mps2-an521"', '"equal"')
ON_CORE1 = (parse_on_option("*=core1"),)
BUT_THE_FIRST = (*ON_CORE1, parse_on_option("conv2d_0/out=cpu"))


def not_coherent() -> Target:
    """Where core 1 has a cache of its own."""
    seen = BOARD.replace("base = 0x20010000 }", "base = 0x20010000, coherent = false }")
    return load_text(
        seen.replace("touch-alignment = 32 ", "cache-line = 32\ntouch-alignment = 32 "), "board.toml"
    )


FILES = {"digits": DIGITS.stem, "ad01": AD01, "kws": KWS, "vww": VWW, "ResNet8": RESNET8}
WHERE = ("CPU", "core1", "NPU")
QUICK = [(model, io, where) for model in ("digits", "ad01", "kws") for io in Io for where in WHERE[:2]]


def documented_bytes() -> dict[tuple[str, Io, str], int]:
    """The workspaces that docs/devices.md states."""
    lines = re.findall(r"^\| (\w+) \| `(\w+)` \| (.*) \|$", (DOCS / "devices.md").read_text(), re.MULTILINE)
    return {
        (model, Io(io), where): int(figure.replace(",", ""))
        for model, io, figures in lines
        if model in FILES
        for where, figure in zip(WHERE, figures.split(" | "), strict=True)
    }


DOCUMENTED = documented_bytes()


@pytest.mark.parametrize(
    ("model", "io", "where"),
    some(DOCUMENTED, every=18, always=[cell for cell in QUICK if cell in DOCUMENTED]),
)
def test_workspaces_are_those_that_the_documentation_states(
    model: str, io: Io, where: str, tmp_path: Path
) -> None:
    path = DIGITS if model == "digits" else model_path(FILES[model])
    options = Options(io=io, on=ON_CORE1 if where == "core1" else ())
    target = load_text(EQUAL_CORES, "equal.toml") if where == "CPU" else load_target("mps2-an521")
    if where == "NPU":
        stream = tmp_path / "stream.tflite"
        stream.write_bytes(vela(path.read_bytes()))
        path, target = stream, load_target("corstone-300-u55")
        options = Options(io=io, numerics=Numerics.TFLM)
    plan = compile_model(path, target, options).plan
    assert sum(pool.used_bytes for pool in plan.workspaces) == DOCUMENTED[model, io, where]


def test_what_the_documentation_states_is_no_more_than_on_the_cpu() -> None:
    """It was 60 % more: each tensor was whole on the second core, none lay over another, and inputs were copied."""
    assert set(DOCUMENTED) == set(product(FILES, (Io.CALLER, Io.WORKSPACE), WHERE))
    for model in FILES:
        for io in (Io.CALLER, Io.WORKSPACE):
            more = DOCUMENTED[model, io, "core1"] - DOCUMENTED[model, io, "CPU"]
            assert more <= 0.02 * DOCUMENTED[model, io, "CPU"]
        assert DOCUMENTED[model, Io.WORKSPACE, "NPU"] <= DOCUMENTED[model, Io.CALLER, "NPU"]


@pytest.mark.parametrize("is_coherent", [True, False])
def test_rows_on_a_device_are_right_and_verify(is_coherent: bool, tmp_path: Path) -> None:
    """Each turn of the loop hands one row over."""
    target = load_target("mps2-an521") if is_coherent else not_coherent()
    options = Options(on=BUT_THE_FIRST, rows=Rows.MAX)
    write_bundle(compile_model(DIGITS, target, options).files, tmp_path / "b")
    plan: Plan = check_bundle(tmp_path / "b").plan
    rings = [buffer for buffer in plan.buffers.values() if buffer.ring is not None]
    assert any("core1" in buffer.devices and "cpu" in buffer.devices for buffer in rings)
    assert any(buffer.devices == ("core1",) for buffer in rings)
    assert any(step.overlaps for step in plan.steps if step.device == "core1")
    assert is_coherent is not any(buffer.line_bytes for buffer in rings)
    x = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
    (y,) = run_bundle(tmp_path / "b", [x], options=BuildOptions(flags=("-O1",))).outputs
    assert np.array_equal(y, LiteRt(DIGITS).run(x)[0])


@pytest.mark.parametrize(
    ("on", "is_coherent"), [("DEPTHWISE_CONV_2D=core1", True), ("*=core1", False)], ids=["one-layer", "all"]
)
def test_an_input_by_rows_beside_a_device(on: str, is_coherent: bool, tmp_path: Path) -> None:
    """The device is in use after the last row alone: what reads the input is the CPU's."""
    target = load_target("mps2-an521") if is_coherent else not_coherent()
    options = Options(io=Io.ROWS, on=(parse_on_option(on),))
    write_bundle(compile_model(DIGITS, target, options).files, tmp_path / "b")
    check_bundle(tmp_path / "b")
    header = (tmp_path / "b" / "include" / "digits.h").read_text()
    assert "int32_t digits_finish(digits_context *context, const digits_devices *devices);" in header
    assert "int32_t digits_begin(digits_context *context, const digits_outputs *outputs);" in header
    x = np.random.default_rng(3).integers(-128, 128, (1, 8, 8, 1), dtype=np.int8)
    (wanted,) = LiteRt(DIGITS).run(x)
    assert np.array_equal(run_bundle(tmp_path / "b", [x]).outputs[0], wanted)
    assert np.array_equal(run_paranoid(tmp_path / "b", [x]).result.outputs[0], wanted)


@pytest.mark.parametrize(
    ("file", "before", "after", "what"),
    [
        ("digits.c", r"call = \{0u, \{", "call = {0u, {1 + ", ", step 1 asks for rows '"),
        (
            "digits_core1_kernels.c",
            r"max_i32\(row_begin, 0\)",
            "max_i32(row_begin, -1)",
            "does not leave out rows",
        ),
        ("digits_core1_kernels.c", r" % \d+", " % 77", "otherwise than in the"),
    ],
)
def test_other_rows_in_a_job_are_noticed(
    file: str, before: str, after: str, what: str, tmp_path: Path
) -> None:
    options = Options(on=BUT_THE_FIRST, rows=Rows.MAX)
    write_bundle(compile_model(DIGITS, load_target("mps2-an521"), options).files, tmp_path / "b")
    path = tmp_path / "b" / "src" / file
    changed, count = re.subn(before, after, path.read_text())
    assert count
    path.write_text(changed)
    with pytest.raises(CompileError, match="BW402") as error:
        check_bundle(tmp_path / "b")
    assert any(what in note for found in error.value.diagnostics for note in found.notes)


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (
            r"(context->is_begun = 1;)",
            r"\1 (void)run_steps(context, outputs, NULL);",
            "runs the steps 2 times",
        ),
        (r"begin_devices\(uses, 1u\)", "begin_devices(uses, 0u)", "does not begin and end the use"),
        (r"row < 9; \+\+row", "row < 8; ++row", "digits_finish runs passes"),
    ],
)
def test_other_calls_around_the_last_row_are_noticed(
    before: str, after: str, what: str, tmp_path: Path
) -> None:
    options = Options(io=Io.ROWS, on=(parse_on_option("DEPTHWISE_CONV_2D=core1"),))
    write_bundle(compile_model(DIGITS, load_target("mps2-an521"), options).files, tmp_path / "b")
    path = tmp_path / "b" / "src" / "digits.c"
    changed, count = re.subn(before, after, path.read_text())
    assert count == 1
    path.write_text(changed)
    with pytest.raises(CompileError, match="BW402") as error:
        check_bundle(tmp_path / "b")
    assert any(what in note for found in error.value.diagnostics for note in found.notes)


@needs_vela
@pytest.mark.parametrize("file", ["5.2_ethos-u55-128_shared_sram", "3.11_ethos-u55-128_shared_sram"])
def test_what_is_copied_to_the_block_of_an_npu_lies_in_it(file: str, tmp_path: Path) -> None:
    """With `--io workspace` input and output had buffers of their own beside their places in the scratch."""
    content = (DATA / "vela" / f"{file}.tflite").read_bytes()
    used: dict[Io, int] = {}
    for io in (Io.CALLER, Io.WORKSPACE):
        (tmp_path / io.value).mkdir()
        plan = check_bundle(npu_bundle(tmp_path / io.value, content, U55, io)).plan
        used[io] = sum(pool.used_bytes for pool in plan.workspaces)
    assert used[Io.WORKSPACE] == used[Io.CALLER]
    assert Numerics.TFLM.value == plan.numerics
