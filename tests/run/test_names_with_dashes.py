"""Names of a target that are no C identifiers go through every command: dashes, dots and capital letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright
from support.digits_bundle import DIGITS

pytestmark = pytest.mark.run

TARGET = """
name = "my-board.v2"
[memory.tight-ram]
size = "1280B"
[memory.Main-RAM]
size = "64KiB"
section = ".main-ram$0"
[memory.ext-flash]
size = "64KiB"
access = "r"
[device.app-core]
isa = "host"
reach = ["tight-ram", "Main-RAM", "ext-flash"]
stack = "Main-RAM"
max-stack-size = "8KiB"
stack-allowance-per-call = 1024
[[workspace]]
name = "fast-ram"
memory = "tight-ram"
[[workspace]]
name = "big-Ram"
memory = "Main-RAM"
size = "32KiB"
[[parameters]]
name = "few-weights"
memory = "ext-flash"
size = "512B"
[[parameters]]
name = "ext-flash"
memory = "ext-flash"
[[parameters]]
name = "hot-weights"
memory = "Main-RAM"
size = "1KiB"
load = "copy"
from = "ext-flash"
"""


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(bytewright, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output + result.stderr
    return result.stdout


@pytest.mark.parametrize(("provider", "io"), [("caller", "caller"), ("generated", "workspace")])
def test_names_with_dashes_go_through_every_command(tmp_path: Path, provider: str, io: str) -> None:
    (tmp_path / "my-board.v2.toml").write_text(TARGET)
    out = tmp_path / "bundle-1.2"
    pools = ("fast-ram", "big-Ram", "few-weights", "ext-flash", "hot-weights")
    providers = [word for pool in pools for word in ("--provider", f"{pool}={provider}")]
    options = ["--target", tmp_path / "my-board.v2.toml", "--io", io, *providers, "--name", "my_digits"]
    document: dict[str, Any] = json.loads(invoke("compile", DIGITS, "-o", out, "--json", *options))
    assert {pool["name"] for pool in document["pools"] if pool["used_bytes"]} >= {"few-weights", "ext-flash"}
    assert "verified" in invoke("check", out)
    assert "B promised" in invoke("check", out, "--stack")
    outputs = json.loads(invoke("run", out, "--seed", 3, "--json"))["outputs"]
    assert outputs == json.loads(invoke("run", DIGITS, "--seed", 3, "--json"))["outputs"]
    assert "no dead byte is read" in invoke("run", out, "--paranoid")
    assert "ext-flash" in invoke("report", out)
    for buffer in document["buffers"][::4]:
        assert buffer["name"] in invoke("explain", out, buffer["name"])
    invoke("compile", DIGITS, "-o", out, *options)
    assert "verified" in invoke("check", out)


def test_the_options_take_names_with_dashes(tmp_path: Path) -> None:
    pools = ["--workspace", "a-b=16KiB@ram", "--parameters", "ext-flash=1MiB@rom"]
    changes = ["--resize", "a-b=8KiB", "--provider", "ext-flash=caller", "--pin", "conv2d_0/out=a-b"]
    invoke("compile", DIGITS, "-o", tmp_path / "out", *pools, *changes)
    assert "verified" in invoke("check", tmp_path / "out")
    assert (tmp_path / "out" / "parameters" / "ext-flash.bin").is_file()
