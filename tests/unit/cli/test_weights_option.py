"""`--weights expand`: what becomes of integer weights under float activations, and where that is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from support.hybrid_layers import EXACT

WIDENED = "bit for bit {}, integer weights widened to float32, float32 to 1e-5 of the largest"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "layer.tflite"
    path.write_bytes(EXACT["layer"].model())
    return path


def test_summary_report_and_header_say_it_and_the_plan_has_it(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = invoke("compile", model, "-o", out, "--weights", "expand")
    assert result.exit_code == 0, result.stderr
    said = WIDENED.format("litert-ref")
    assert said in result.stdout
    assert said in " ".join((out / "include" / "layer.h").read_text().replace("*", " ").split())
    assert said in " ".join(invoke("report", out).stdout.split())
    assert json.loads((out / "plan.json").read_text())["options"] == ["--weights expand"]
    assert invoke("check", out).exit_code == 0


def test_the_weights_are_four_times_as_large(model: Path, tmp_path: Path) -> None:
    """5 x 21 weights; a bias, and as they are stored scales, a zero bias and two numbers beside."""
    sizes: dict[str, int] = {}
    for choice in ("stored", "expand"):
        assert invoke("compile", model, "-o", tmp_path / choice, "--weights", choice).exit_code == 0
        plan = json.loads((tmp_path / choice / "plan.json").read_text())
        sizes[choice] = sum(b["size_bytes"] for b in plan["buffers"] if "weights" in b["name"])
    assert sizes == {"stored": 105, "expand": 420}


def test_tflm_refuses_hybrid_layers_and_each_advice_works(model: Path, tmp_path: Path) -> None:
    refused = invoke("compile", model, "-o", tmp_path / "out", "--numerics", "tflm")
    assert refused.exit_code == 1
    assert "BW108" in refused.stderr
    assert "operator 0 (FULLY_CONNECTED)" in refused.stderr
    for advice in (("--numerics", "litert-ref"), ("--weights", "expand")):
        assert " ".join(advice) in " ".join(refused.stderr.split())
        others = () if advice[0] == "--numerics" else ("--numerics", "tflm")
        result = invoke("compile", model, "-o", tmp_path / "out", *others, *advice)
        assert result.exit_code == 0, result.stderr


def test_validate_asks_for_outputs_where_the_reference_computes_otherwise(
    model: Path, tmp_path: Path
) -> None:
    out, data = tmp_path / "out", tmp_path / "x.npy"
    np.save(data, np.random.default_rng(1).normal(size=(2, *EXACT["layer"].source)).astype(np.float32))
    assert invoke("compile", model, "-o", out, "--weights", "expand").exit_code == 0
    result = invoke("validate", out, "--data", data, "--model", model)
    assert result.exit_code == 1
    assert "BW204" in result.stderr
    assert "--reference litert-ref" in result.stderr


def test_ir_text_has_no_weights_to_choose_for(tmp_path: Path) -> None:
    text = tmp_path / "m.bw"
    text.write_text("module m\n")
    result = invoke("compile", text, "-o", tmp_path / "out", "--weights", "expand")
    assert result.exit_code == 1
    assert "leave out --weights" in result.stderr
