"""`explain DIR KERNEL`: the template that made a kernel, why better ones declined, and the steps that call it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

import bytewright
from bytewright.cli.main import bytewright as command
from support.digits_bundle import DIGITS


def explained(folder: Path, name: str, *options: str) -> str:
    return CliRunner().invoke(command, ["explain", str(folder), name, *options]).output


def test_the_template_of_the_core_and_the_portable_one(tmp_path: Path) -> None:
    for target in ("mps3-an547", "host"):
        bytewright.compile(DIGITS, target=target).write(tmp_path / target)
    text = explained(tmp_path / "mps3-an547", "digits_conv2d_2_rows")
    assert "made by  template mve." in text
    assert "2 (CONV_2D)" in text.partition("called by")[2]
    document = json.loads(explained(tmp_path / "host", "digits_conv2d_2_rows", "--json"))
    assert (document["template"], len(document["steps"])) == ("portable", 1)


def test_a_name_of_nothing(tmp_path: Path) -> None:
    bytewright.compile(DIGITS).write(tmp_path / "out")
    assert "did you mean 'digits_conv2d_" in explained(tmp_path / "out", "digits_conv2d_O")
