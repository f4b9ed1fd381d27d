"""`validate --on qemu`: many samples after one start of the board."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from bytewright.cli.main import bytewright as command
from support.digits_bundle import DIGITS, write_digits


def test_samples_run_on_the_board(tmp_path: Path) -> None:
    directory = write_digits(tmp_path / "digits")
    data = ["--data", str(DIGITS.parent / "heldout.npz"), "--labels", "labels", "--samples", "40"]
    arguments = ["validate", str(directory), *data, "--model", str(DIGITS), "--on", "qemu", "--json"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["on"], found["reference"]["num_exact"], found["num_right"]) == ("qemu", 40, 40)
