"""`bytewright help`, `bytewright example`, errors as JSON, and names and sizes as vendors write them."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bytewright.base import shipped
from bytewright.cli.main import bytewright as command
from bytewright.diagnostics import CODES
from bytewright.target.isa.find import find_isa
from support.digits_bundle import DIGITS

ROOT = Path(__file__).resolve().parents[3]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [*map(str, arguments)])


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_error_is_explained(code: str) -> None:
    done = invoke("help", code.lower())
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{code}: ")
    assert "What to do" in done.stdout
    assert not re.search(rf"^#|BW(?!{code[2:]})\d\d\d: ", done.stdout, re.MULTILINE)


def test_help_of_commands_and_of_nothing() -> None:
    assert invoke("help", "report").stdout == invoke("report", "--help").stdout
    assert invoke("help").stdout == invoke("--help").stdout
    done = invoke("help", "BW999")
    assert (done.exit_code, "BW999" in done.stderr) == (1, True)


def test_the_example_is_written_and_nothing_is_overwritten(tmp_path: Path) -> None:
    assert invoke("example", "digits", "-o", tmp_path / "a").exit_code == 0
    assert (tmp_path / "a/digits.tflite").read_bytes() == DIGITS.read_bytes()
    assert (tmp_path / "a/heldout.npz").read_bytes() == (DIGITS.parent / "heldout.npz").read_bytes()
    assert invoke("example", "digits", "-o", tmp_path / "a").exit_code == 0
    (tmp_path / "a/digits.tflite").write_bytes(b"mine")
    (tmp_path / "a/heldout.npz").unlink()
    done = invoke("example", "digits", "-o", tmp_path / "a")
    assert (done.exit_code, "BW206" in done.stderr) == (1, True)
    assert (tmp_path / "a/digits.tflite").read_bytes() == b"mine"
    assert not (tmp_path / "a/heldout.npz").exists()


def test_what_is_shipped_is_what_the_build_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setuptools.setup", lambda **_: None)
    spec = importlib.util.spec_from_file_location("bytewright_setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bytewright_setup", module)
    spec.loader.exec_module(module)
    assert module.SHIPPED == shipped.SHIPPED
    for path in shipped.SHIPPED:
        assert shipped.shipped(path) == (ROOT / path).read_bytes()


def test_errors_are_json_where_json_is_asked_for(tmp_path: Path) -> None:
    done = invoke("compile", DIGITS, "-o", tmp_path / "out", "--workspace", "ram=100", "--json")
    assert (done.exit_code, done.stdout) == (3, "")
    document = json.loads(done.stderr.splitlines()[-1])
    assert document["exit_status"] == 3
    (error,) = document["errors"]
    assert error["code"] == "BW301"
    assert error["help"].startswith("--resize ram=")
    assert set(error) == {"code", "message", "notes", "help", "where", "changes"}
    assert invoke("compile", DIGITS, "-o", tmp_path / "out", "--workspace", "ram=100").stderr.startswith(
        "error[BW301]"
    )


def test_usage_errors_are_json_too(tmp_path: Path) -> None:
    done = invoke("run", tmp_path, "--json", "--signature", "a")
    document = json.loads(done.stderr.splitlines()[-1])
    assert (done.exit_code, document["exit_status"], document["errors"][0]["code"]) == (2, 2, "BW200")
    assert "--signature is for a model" in document["errors"][0]["message"]
    written: tuple[tuple[str, ...], ...] = (
        ("compile", "x", "--package", "bazel", "--json"),
        ("compile", "x", "--pakage", "cmake", "--json"),
        ("compil", "--json"),
    )
    for words in written:  # also what is wrong before the option is read
        (error,) = json.loads(invoke(*words).stderr.splitlines()[-1])["errors"]
        assert error["message"]
        assert set(error) == {"code", "message", "notes", "help", "where", "changes"}
    assert "exit_status" not in invoke("example", "--", "--json").stderr


def test_a_bug_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken\nand more")

    monkeypatch.setattr("bytewright.cli.report.verified_plan", fail)
    done = invoke("report", "x", "--json")
    assert done.exit_code == 70
    assert (
        json.loads(done.stderr.splitlines()[-1])["errors"][0]["message"]
        == "internal error: RuntimeError: broken"
    )


@pytest.mark.parametrize("size", ["64K", "64k", "0x10000", "64KiB", "65536"])
def test_sizes_of_options(size: str, tmp_path: Path) -> None:
    options = ("--workspace", f"ram={size}", "--max-stack-size", size, "--json")
    done = invoke("compile", DIGITS, "-o", tmp_path / "out", *options)
    pools = {pool["name"]: pool for pool in json.loads(done.stdout)["pools"]}
    assert pools["ram"]["capacity_bytes"] == 65536
    pinned = invoke("compile", DIGITS, "-o", tmp_path / "pin", "--pin", f"conv2d_4/out=ram+{size}", "--json")
    buffers = {buffer["name"]: buffer for buffer in json.loads(pinned.stdout)["buffers"]}
    assert buffers["conv2d_4/out"]["place"]["offset"] == 65536
    (tmp_path / "b.csv").write_text("id,lower,upper,size\na,0,2,64\n", encoding="utf-8")
    assert invoke("plan", tmp_path / "b.csv", "--capacity", size).exit_code == 0
    assert invoke("plan", tmp_path / "b.csv", "--capacity", "0x3f").exit_code == 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("cortex-m4f", "cortex-m4"),
        ("Cortex-M7F", "cortex-m7"),
        ("cortex-m33f", "cortex-m33"),
        ("cortex-m0+", "cortex-m0plus"),
        ("CORTEX-M55", "cortex-m55"),
        ("cortex-m4ff", None),
        ("m4f", None),
        ("cortex-m9f", None),
    ],
)
def test_cores_as_vendors_write_them(text: str, name: str | None) -> None:
    isa = find_isa(text)
    assert (None if isa is None else isa.name) == name


def test_shells_are_told_how_to_complete() -> None:
    """As docs/cli.md says; the script asks the command again, which answers with names of commands."""
    environment = {"_BYTEWRIGHT_COMPLETE": "bash_source"}
    script = CliRunner().invoke(command, [], prog_name="bytewright", env=environment)
    assert "complete -o nosort -F _bytewright_completion bytewright" in script.output
    environment = {"_BYTEWRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": "bytewright sw", "COMP_CWORD": "1"}
    answer = CliRunner().invoke(command, [], prog_name="bytewright", env=environment)
    assert answer.output.split() == ["plain,sweep"]
    environment |= {"COMP_WORDS": "bytewright help bw10", "COMP_CWORD": "2"}
    answer = CliRunner().invoke(command, [], prog_name="bytewright", env=environment)
    assert answer.output.split() == [f"plain,{code}" for code in CODES if code.startswith("BW10")]
    for words in ("compile", "run", "targets"):
        begun = "" if words == "targets" else " --target"
        for name, found in (("mps2-an3", ["plain,mps2-an386"]), ("./board", ["file,./board"])):
            environment["COMP_WORDS"] = f"bytewright {words}{begun} {name}"
            environment["COMP_CWORD"] = f"{environment['COMP_WORDS'].count(' ')}"
            answer = CliRunner().invoke(command, [], prog_name="bytewright", env=environment)
            assert (words, answer.output.split()) == (words, found)
