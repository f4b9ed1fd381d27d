"""What is said of channels that were removed: by compile, report, explain and plan.json; and of none, nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.bundle.write import write_bundle
from bytewright.cli.main import bytewright
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from bytewright.record.plan_file import document_of, hash_document, plan_of
from bytewright.target.registry import load_target
from support.narrowed_models import written
from support.plan_mutations import write_consistently

LINE = "constant channels: 36 of 48 multiply-accumulates (75.0 %) and 9 of 12 B of weights (75.0 %) removed"


def test_plan_json_says_it_and_the_hash_does_not(tmp_path: Path) -> None:
    plan = compile_model(
        written(tmp_path / "m.tflite", empty=(1, 2, 3)), load_target("generic-cortex-m")
    ).plan
    document = document_of(plan)
    assert document["narrowed"] == {
        "macs": 4 + 8,
        "macs_before": 48,
        "weight_bytes": 1 + 2,
        "weight_bytes_before": 12,
    }
    assert plan_of(document) == plan
    before = {buffer["name"]: buffer.get("shape_before") for buffer in document["buffers"]}
    assert {name: shape for name, shape in before.items() if shape} == {
        "conv2d_0/out": [1, 2, 2, 4],
        "conv2d_0/weights": [4, 1, 1, 1],
        "conv2d_1/weights": [2, 1, 1, 4],
    }
    kept = {buffer["name"]: buffer.get("kept_channels") for buffer in document["buffers"]}
    assert {name: channels for name, channels in kept.items() if channels} == {"conv2d_0/out": [0]}
    constant = {buffer["name"]: buffer.get("constant_channels") for buffer in document["buffers"]}
    assert {name: channels for name, channels in constant.items() if channels} == {"conv2d_0/out": [1, 2, 3]}
    without = {key: value for key, value in document.items() if key != "narrowed"}
    unhashed = ("shape_before", "kept_channels", "constant_channels", "work")
    for kind in ("buffers", "steps"):
        without[kind] = [
            {key: value for key, value in each.items() if key not in unhashed} for each in document[kind]
        ]
    assert [step["work"]["weight_bytes_before"] for step in document["steps"]] == [4, 8]
    assert hash_document(without) == plan.plan_hash


def run(*arguments: str) -> str:
    result = CliRunner().invoke(bytewright, arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_commands_say_it(tmp_path: Path) -> None:
    model, bundle = written(tmp_path / "m.tflite", empty=(1, 2, 3)), str(tmp_path / "out")
    assert f"  {LINE}\n" in run("compile", str(model), "-o", bundle, "--target", "generic-cortex-m")
    assert LINE in run("report", bundle)
    assert json.loads(run("report", bundle, "--json"))["narrowed"]["macs_before"] == 48
    assert "  narrowed 1x2x2x4 in the model: channels" in run("explain", bundle, "conv2d_0/out")
    assert "  narrowed 2x1x1x4 in the model: channels" in run("explain", bundle, "conv2d_1/weights")
    explained = json.loads(run("explain", bundle, "conv2d_0/out", "--json"))
    assert (explained["shape"], explained["shape_before"]) == ([1, 2, 2, 1], [1, 2, 2, 4])
    assert explained["kept_channels"] == [0]


def test_of_a_model_that_lost_nothing_nothing_is_said(tmp_path: Path) -> None:
    model, bundle = written(tmp_path / "m.tflite", empty=()), str(tmp_path / "out")
    assert "constant channels" not in run("compile", str(model), "-o", bundle)
    assert "constant channels" not in run("report", bundle)
    assert "narrowed" not in json.loads(run("report", bundle, "--json"))
    assert "narrowed" not in run("explain", bundle, "conv2d_0/out")
    assert "shape_before" not in (tmp_path / "out" / "plan.json").read_text()


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("conv2d_0/out", "kept_channels", [2, 0]),
        ("conv2d_0/out", "kept_channels", [0, 4]),
        ("conv2d_0/out", "kept_channels", [0, 0]),
        ("conv2d_0/out", "kept_channels", [0]),
        ("conv2d_0/out", "kept_channels", []),
        ("conv2d_0/out", "shape_before", [1, 2, 3, 4]),
        ("conv2d_0/out", "shape_before", []),
        ("conv2d_0/out", "shape_before", None),
        ("conv2d_1/weights", "kept_channels", [0, 2]),
        ("y", "kept_channels", [0, 1]),
        ("y", "constant_channels", [0]),
        ("conv2d_0/out", "constant_channels", [3, 1]),
        ("conv2d_0/out", "constant_channels", [1, 4]),
    ],
)
def test_channels_that_cannot_be_those_that_are_left_are_refused(
    tmp_path: Path, name: str, key: str, value: list[int] | None
) -> None:
    files = compile_model(written(tmp_path / "m.tflite"), load_target("generic-cortex-m")).files
    document = json.loads(files["plan.json"])
    buffers = {buffer["name"]: buffer for buffer in document["buffers"]}
    assert buffers["conv2d_0/out"]["kept_channels"] == [0, 2]
    write_bundle(files, tmp_path / "out")
    check_bundle(tmp_path / "out")
    buffers.get(name, document["buffers"][-1])[key] = value
    write_consistently(tmp_path / "out", files, document)
    with pytest.raises(CompileError, match="BW401"):
        check_bundle(tmp_path / "out")
