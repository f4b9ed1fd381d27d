import json
from pathlib import Path

from click.testing import CliRunner

from bytewright.cli.main import load_command
from bytewright.diagnostics import CompileError
from bytewright.target import BUILTIN_TARGETS, load_target, load_text


def _output(*arguments: str) -> str:
    result = CliRunner().invoke(load_command("targets"), arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_list_names_every_target() -> None:
    output = _output()
    for name in BUILTIN_TARGETS:
        assert name in output
    assert "dtcm 512KiB" in output


def test_json_of_the_list_is_all_targets() -> None:
    assert [entry["name"] for entry in json.loads(_output("--json"))] == list(BUILTIN_TARGETS)


def test_a_target_is_printed_as_a_file_that_loads() -> None:
    assert load_text(_output("mps3-an547"), "x.toml") == load_target("mps3-an547")
    output = _output("mps3-an547", "--json")
    assert json.loads(output)["memory"]["dtcm"]["size"] == 524288
    assert load_text(output, "x.json") == load_target("mps3-an547")


def test_a_file_in_the_printed_form_is_a_target(tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    path.write_text(_output("mps2-an500", "--json"), encoding="utf-8")
    assert _output(str(path), "--json") == _output("mps2-an500", "--json")


def test_an_unknown_target_is_left_to_the_main_command() -> None:
    result = CliRunner().invoke(load_command("targets"), ["nothing"])
    assert isinstance(result.exception, CompileError)
    assert result.exception.diagnostics[0].code == "BW203"
