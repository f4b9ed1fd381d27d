"""docs/cli.md names every command, every option and every exit status; its examples run at level `board`."""

from pathlib import Path

import click
import pytest

from bytewright.cli.main import COMMANDS, load_command
from bytewright.diagnostics import ExitCode

DOCUMENT = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str) -> None:
    command = load_command(name)
    assert f"| `{name}" in DOCUMENT
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for option in parameter.opts:
                assert f"`{option}" in DOCUMENT, f"{command.name} {option}"


def test_every_exit_status_is_documented() -> None:
    for status in ExitCode:
        assert f"| {int(status)} |" in DOCUMENT
