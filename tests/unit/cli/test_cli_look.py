"""The commands that look at a bundle or list what there is: report, explain, check, ops."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bytewright.cli.main import bytewright
from bytewright.frontends.tflite.shape_arithmetic import FOLDED
from bytewright.frontends.tflite.table import SUPPORTED
from support.digits_bundle import digits_document, write_digits, write_document


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(bytewright, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("look") / "digits")


def test_report_shows_pools_stack_chart_buffers_and_steps(digits: Path) -> None:
    result = invoke("report", digits)
    assert (result.exit_code, result.stderr) == (0, "")
    for heading in ("Pools", "Stack", "alive at the peak", "Largest buffers", "Steps"):
        assert heading in result.stdout
    used = digits_document()["pools"][0]["used_bytes"]
    assert f"dtcm: {used} B alive at the peak" in result.stdout


def test_report_json_is_json_alone(digits: Path) -> None:
    result = invoke("report", digits, "--json")
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert document["plan_hash"] == digits_document()["plan_hash"]
    assert document["pools"][0]["peak_bytes"] == document["pools"][0]["used_bytes"]


def test_explain_says_why(digits: Path) -> None:
    result = invoke("explain", digits, "conv2d_0/out")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("conv2d_0/out\n")
    assert "why not in" in result.stdout
    assert json.loads(invoke("explain", digits, "conv2d_0/out", "--json").stdout)["name"] == "conv2d_0/out"


def test_explain_suggests_names(digits: Path) -> None:
    result = invoke("explain", digits, "conv2d_0/uot")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error[BW204]" in result.stderr
    assert "did you mean 'conv2d_0/out'" in result.stderr


def test_check_says_what_was_proved(digits: Path) -> None:
    result = invoke("check", digits)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("digits: verified")
    document = json.loads(invoke("check", digits, "--json").stdout)
    assert document["verified"] is True
    assert document["num_steps"] == len(digits_document()["steps"])


def test_check_fails_with_status_4_and_prints_no_json(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits")
    document = digits_document()
    document["pools"][0]["used_bytes"] += 16
    write_document(folder, document)
    result = invoke("check", folder, "--json")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "error[BW401]" in result.stderr
    assert "error[BW402]" in result.stderr


@pytest.mark.parametrize("wrong", [None, 0, 10**6, "x", [], [0, 1]])
def test_a_damaged_plan_is_never_a_bug(tmp_path: Path, wrong: Any) -> None:
    folder = write_digits(tmp_path / "digits")
    original = digits_document()
    places = [(original, key) for key in original]
    for part in ("pools", "buffers", "steps"):
        places += [(original[part][0], key) for key in original[part][0]]
    places += [(original["buffers"][2]["place"], key) for key in ("kind", "name", "offset")]
    for owner, key in places:
        right, owner[key] = owner[key], wrong
        write_document(folder, original)
        for arguments in (("report", folder), ("explain", folder, "conv2d_0/out")):
            result = invoke(*arguments)
            assert result.exit_code in (0, 1, 4), (key, result.stderr)
        owner[key] = right


@pytest.mark.parametrize("command", ["report", "check"])
def test_a_folder_that_is_no_bundle_is_wrong_input(command: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        result = invoke(command, folder)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "error[BW207]" in result.stderr


def test_ops_lists_every_operator() -> None:
    listed = json.loads(invoke("ops", "--json").stdout)
    assert [entry["name"] for entry in listed] == [operator.name for operator in SUPPORTED]
    text = invoke("ops").stdout
    assert all(f" {operator.name} " in text for operator in SUPPORTED)
    assert {word.strip(",.") for word in text.split()} >= {*FOLDED}


def test_ops_against_tflm_says_what_is_missing_by_type() -> None:
    listed = json.loads(invoke("ops", "--against", "tflm", "--json").stdout)
    rows = {row["name"]: row for row in listed["operators"]}
    assert len(rows) == 117
    assert listed["date"] == "2026-11-26"
    assert "tflite-micro 0.dev20261023182759" in listed["source"]
    whole = {name for name, row in rows.items() if row["is_compiled"] and not row["missing_types"]}
    assert whole >= {"LOGICAL_AND", "SIN", "FLOOR"}
    missing = {name for name, row in rows.items() if row["missing_types"] and not row["is_folded"]}
    assert all(name.startswith("CUSTOM 'Signal") for name in missing)
    assert {name for name, row in rows.items() if row["wrong_types"]} == {"GREATER"}
    assert not any(set(row["missing_types"]) & set(row["own_types"]) for row in rows.values())
    text = invoke("ops", "--against", "tflm").stdout
    assert all(f" {name} " in text for name in rows)
    assert f"{len(whole)} for all of their types" in text
    assert "int16, which it computes wrongly" in text


def test_ops_against_a_library_that_is_not_known_is_refused() -> None:
    assert invoke("ops", "--against", "onnx").exit_code == 2


def test_targets_of_the_group_refuses_an_unknown_name() -> None:
    result = invoke("targets", "hots")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "did you mean 'host'?" in result.stderr


def test_plan_is_a_command(tmp_path: Path) -> None:
    (tmp_path / "buffers.csv").write_text("id,lower,upper,size\na,0,2,64\nb,1,3,32\nc,2,4,64\n")
    assert invoke("plan", tmp_path / "buffers.csv").exit_code == 0
    assert invoke("plan", tmp_path / "buffers.csv", "--capacity", 95).exit_code == 3
    assert invoke("plan", tmp_path / "missing.csv").exit_code == 1
