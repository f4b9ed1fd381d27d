"""Vela is run where the target has an Ethos-U, and only there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bytewright import ir
from bytewright.diagnostics import CompileError, ExitCode
from bytewright.frontends.registry import import_model
from bytewright.frontends.tflite import vela as runner
from bytewright.frontends.tflite.vela import content_for
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.ethos_u import IN_LINES, SEPARATE, SHARED, U55, needs_vela, vela, vela_operators
from support.shared_models import AD01, KWS, model_path


def kinds(module: ir.Module) -> set[str]:
    return {node.operation.name for node in module.graph.nodes}


def imported(path: Path, target: str, numerics: Numerics | None = None) -> ir.Module:
    return import_model(path, load_target(target), Options(numerics=numerics)).module


@needs_vela
def test_a_plain_model_goes_through_vela_for_the_targets_npu() -> None:
    module = imported(model_path(AD01), "corstone-300-u55")
    assert kinds(module) == {"ethos_u"}
    assert module.numerics == "tflm"
    assert imported(model_path(AD01), "corstone-300-u55") == module  # the same each time


@needs_vela
@pytest.mark.parametrize(("cache_line", "options"), [(32, IN_LINES), (0, ())])
def test_vela_is_told_the_cache_line_that_the_npu_does_not_see(
    cache_line: int, options: tuple[str, ...]
) -> None:
    target = load_target("corstone-300-u55")
    npu = replace(target.devices[1], cache_line_bytes=cache_line)
    path = model_path(KWS)
    content, _, _ = content_for(path, replace(target, devices=(target.devices[0], npu)), wanted=True)
    assert content == vela(path.read_bytes(), U55, SHARED, *options)
    (operator,) = vela_operators(content)
    assert operator.scratch.size_bytes == (22208 if cache_line else 22192)


@needs_vela
@pytest.mark.parametrize(
    ("target", "numerics"),
    [("corstone-300-u55", Numerics.LITERT_REF), ("mps3-an547", None), ("mps3-an547", Numerics.TFLM)],
)
def test_without_an_npu_or_with_other_numerics_the_model_is_as_it_was(
    target: str, numerics: Numerics | None
) -> None:
    module = imported(model_path(AD01), target, numerics)
    assert "ethos_u" not in kinds(module)
    assert module.numerics == (numerics or Numerics.LITERT_REF).value


@needs_vela
def test_what_vela_made_is_not_given_to_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(vela(model_path(AD01).read_bytes(), U55, SHARED, *SEPARATE))
    monkeypatch.setattr(runner, "run_vela", lambda *_: pytest.fail("Vela was run"))
    assert kinds(imported(path, "corstone-300-u55")) == {"ethos_u"}


def test_a_model_of_floats_stays_on_the_cpu() -> None:
    module = imported(model_path("ad01_fp32"), "corstone-300-u55")
    assert "ethos_u" not in kinds(module)
    assert module.numerics == "litert-ref"


def test_without_vela_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "find_spec", lambda _: None)
    with pytest.raises(CompileError, match="BW501") as error:
        imported(model_path(AD01), "corstone-300-u55")
    (found,) = error.value.diagnostics
    assert found.exit_code is ExitCode.TOOL_FAILED
    assert found.help is not None
    assert found.help.startswith('install it: pip install "bytewright[ethos-u]"')


def test_a_failure_of_vela_is_said_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho first; echo 'no memory mode' >&2; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(runner, "find_spec", lambda _: object())
    with pytest.raises(CompileError, match="BW502") as error:
        imported(model_path(AD01), "corstone-300-u55")
    (found,) = error.value.diagnostics
    assert "status 3" in found.message
    assert found.notes[-1] == "no memory mode"
