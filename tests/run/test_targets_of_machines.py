"""Targets of this machine: code for what its processor has, and a clear refusal of code for what it has not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command_line
from bytewright.diagnostics import CompileError
from bytewright.execute import tools
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.execute.tools import flags_on_this_machine
from bytewright.record.plan_file import read_plan
from bytewright.target import load_target
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.this_machine import Machine, this_machine
from bytewright.target.registry import native_target
from support.digits_bundle import DIGITS
from support.reference import LiteRt

pytestmark = pytest.mark.run
TARGETS = ("x86-64-v3", "x86-64-v4-vnni", "aarch64", "native")


@cache
def digits_for(name: str) -> bytewright.CompiledModel:
    return bytewright.compile(DIGITS, target=native_target().name if name == "native" else name)


def runs_here(name: str) -> bool:
    isa = load_target(name).default_device.isa
    return not (this_machine().executes(isa) and this_machine().lacks(isa))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("name", TARGETS)
def test_the_output_is_that_of_the_reference(name: str, compiler: str, tmp_path: Path) -> None:
    if not runs_here(name):
        pytest.skip(f"this machine does not run code for {name}")
    folder = digits_for(name).write(tmp_path / "digits")
    reference = LiteRt(DIGITS)
    x = np.random.default_rng(3).integers(-128, 128, reference.inputs[0]["shape"], np.int8)
    for options in (
        BuildOptions(compiler=compiler),
        BuildOptions(("-O0",), sanitize=True, compiler=compiler),
    ):
        result = run_bundle(folder, [x], options=options)
        np.testing.assert_array_equal(result.outputs[0], reference.run(x)[0])
        assert result.target == (native_target().name if name == "native" else name)


def test_the_plan_has_the_name_that_native_stands_for(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        command_line, ["compile", str(DIGITS), "--target", "native", "-o", str(tmp_path / "digits")]
    )
    assert result.exit_code == 0, result.output
    name = native_target().name
    assert f"for {name}, " in result.output
    assert read_plan(tmp_path / "digits").hardware.name == name


def test_code_for_the_processor_of_another_machine_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = digits_for("x86-64-v4-vnni").write(tmp_path / "digits")
    v3 = require_isa("x86-64-v3")
    monkeypatch.setattr(tools, "this_machine", lambda: Machine("x86_64", frozenset(v3.processor_flags)))
    result = CliRunner().invoke(command_line, ["run", str(folder)])
    assert result.exit_code == 5
    assert (
        "error[BW505]: code for x86-64-v4-vnni needs what this machine's processor does not have: avx512f, "
        in (result.stderr)
    )
    assert "--target native" in result.stderr
    assert flags_on_this_machine(v3) == v3.flags
    assert flags_on_this_machine(require_isa("cortex-m55")) == ()
    assert flags_on_this_machine(require_isa("aarch64-dotprod")) == ()
    monkeypatch.setattr(tools, "this_machine", lambda: Machine("x86_64"))
    with pytest.raises(CompileError) as caught:
        flags_on_this_machine(v3)
    assert "--on qemu" in (caught.value.diagnostics[0].help or "")
