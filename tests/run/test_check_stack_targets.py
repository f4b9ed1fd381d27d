"""`check --stack` gives its verdict on every built-in target, and counts what leaf functions have in the red zone."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import bytewright
from bytewright.bundle.write import write_bundle
from bytewright.cli.check import prove_stacks
from bytewright.cli.main import bytewright as command_line
from bytewright.compiler.pipeline import compile_model
from bytewright.ir.scope import LOCAL
from bytewright.record.plan_file import read_plan
from bytewright.target import BUILTIN_TARGETS, load_target
from bytewright.target.importers import ImportOptions, import_target
from support.digits_bundle import DIGITS
from support.hand_built import chain, reverse_kernel


@pytest.mark.parametrize("target", BUILTIN_TARGETS)
def test_the_command_works_on_every_built_in_target(target: str, tmp_path: Path) -> None:
    folder = bytewright.compile(DIGITS, target=target).write(tmp_path / "out")
    result = CliRunner().invoke(command_line, ["check", str(folder), "--stack"])
    assert result.exit_code == 0, result.output
    assert "worst path: digits_run" in result.stdout


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O3",)])
@pytest.mark.parametrize("size_bytes", [8, 100, 120, 128])
def test_arrays_in_the_red_zone_are_counted(flags: tuple[str, ...], size_bytes: int, tmp_path: Path) -> None:
    """Leaf kernels with up to 128 B: gcc for x86-64 states frames without them, unless it is told otherwise."""
    target = load_target("host")
    target = replace(target, devices=(replace(target.devices[0], stack_allowance_per_call_bytes=256),))
    module = chain("leaf", [reverse_kernel("k", size_bytes, LOCAL)], size_bytes)
    write_bundle(compile_model(module, target).files, tmp_path / "out")
    plan = read_plan(tmp_path / "out")
    assert plan.stack["cpu"].planned_bytes == size_bytes
    (proof,) = prove_stacks(tmp_path / "out", plan, flags)
    if platform.machine() == "x86_64" and flags == ("-O0",):
        assert proof.in_memory is None
        assert proof.measured.total_bytes >= size_bytes


def test_an_imported_target_is_proved_at_once(tmp_path: Path) -> None:
    script = tmp_path / "app.ld"
    script.write_text(
        "MEMORY { RAM (rw) : ORIGIN = 0x20000000, LENGTH = 64K\nFLASH (rx) : ORIGIN = 0x08000000, LENGTH = 512K }\n"
        "_Min_Stack_Size = 0x800;\n"
    )
    for isa in ("cortex-m0", "cortex-m4"):
        target = import_target(script, ImportOptions(isa=isa)).target
        folder = bytewright.compile(DIGITS, target=target).write(tmp_path / isa)
        result = CliRunner().invoke(command_line, ["check", str(folder), "--stack"])
        assert result.exit_code == 0, result.output
