"""The documents' commands, run as a reader would: in order, in one folder, with the output that they promise.

In a fenced block marked `console` a line that begins with `$ ` is a command, and the lines up to the next one are its
output, where `...` stands for anything. A block marked `c`, `ld`, `toml` or `ir` whose first line is a file name in a
comment is written to that file first. Commands of make are left out, because they are what runs these tests.

Commands of `bytewright` that need no shell are carried out by this process, all but the first of a document: most of
what one costs by itself is to load Python's modules.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from bytewright.cli.main import bytewright

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "examples/camera/README.md",
    *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))),
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAMES = {
    "c": re.compile(r"/\* ([\w.]+) \*/\n"),
    "ld": re.compile(r"/\* ([\w.]+\.ld) \*/\n"),
    "toml": re.compile(r"# ([\w.]+\.toml)\n"),
    "ir": re.compile(r"# ([\w.]+\.bw)\n"),
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a document, and the output that follows it there ("" if none is shown)."""

    text: str
    output: str


def commands_of(document: str) -> list[Command]:
    """The commands in the document's `console` blocks."""
    commands: list[Command] = []
    for language, body in _FENCE.findall(document):
        if language == "console":
            head, *entries = re.split(r"^\$ ", body, flags=re.MULTILINE)
            assert head == "", "a console block begins with a command"
            commands += (
                Command(text, output) for text, _, output in (entry.partition("\n") for entry in entries)
            )
    return commands


def files_of(document: str) -> Iterator[tuple[str, str]]:
    """Names and contents of the files that the document shows."""
    for language, body in _FENCE.findall(document):
        if language in _FILE_NAMES and (name := _FILE_NAMES[language].match(body)):
            yield name[1], body


def matches(shown: str, actual: str) -> bool:
    """Whether an output is the one that is shown; `...` stands for any text."""
    pattern = ".*".join(re.escape(part) for part in shown.strip().split("..."))
    return (
        re.fullmatch(pattern, "\n".join(line.rstrip() for line in actual.strip().splitlines()), re.DOTALL)
        is not None
    )


def run(command: Command, folder: Path, *, by_shell: bool = True) -> None:
    """Carries a command out in a folder, by the shell or, where that has nothing to do, by this process."""
    if by_shell or _NEEDS_SHELL.search(_QUOTED.sub("", command.text)) is not None:
        status, output = _by_shell(command.text, folder)
    else:
        status, output = _here(shlex.split(command.text)[1:], folder)
    refusal_expected = command.output.startswith("error[")
    assert (status != 0) == refusal_expected, f"$ {command.text}\n{output}"
    if command.output:
        assert matches(command.output, output), f"$ {command.text}\n{output}\nbut shown is\n{command.output}"


_ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "COLUMNS": "120",
    "NO_COLOR": "1",
}
_QUOTED = re.compile(r"'[^']*'|\"[^\"$`]*\"")
_NEEDS_SHELL = re.compile(r"^(?!bytewright )|[|&;<>()$`*?~#]")


def _by_shell(text: str, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={**os.environ, **_ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def _here(arguments: list[str], folder: Path) -> tuple[int, str]:
    with chdir(folder):
        done = CliRunner().invoke(bytewright, arguments, env=_ENVIRONMENT, prog_name="bytewright")
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


@pytest.mark.parametrize(
    "name", [name for name in DOCUMENTS if "```console" in (ROOT / name).read_text("utf-8")]
)
def test_the_commands_of_a_document_do_what_it_says(name: str, tmp_path: Path) -> None:
    document = (ROOT / name).read_text(encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    for file_name, content in files_of(document):
        (tmp_path / file_name).write_text(content, encoding="utf-8")
    commands = [command for command in commands_of(document) if not command.text.startswith("make ")]
    assert any(command.text.startswith("bytewright ") for command in commands)
    for position, command in enumerate(commands):
        run(command, tmp_path, by_shell=position == 0)


def test_the_readme_has_commands_of_the_whole_tour() -> None:
    commands = commands_of((ROOT / "README.md").read_text(encoding="utf-8"))
    named = {command.text.split()[1] for command in commands if command.text.startswith("bytewright ")}
    assert named >= {"compile", "run", "report", "explain", "check", "targets", "ops", "plan"}


def test_commands_and_outputs_are_told_apart() -> None:
    document = (
        "text\n```console\n$ first\none\ntwo\n$ second\n```\n```c\n/* a.c */\nint a;\n```\n```\n$ no\n```\n"
    )
    assert commands_of(document) == [Command("first", "one\ntwo\n"), Command("second", "")]
    assert list(files_of(document)) == [("a.c", "/* a.c */\nint a;\n")]


def test_dots_stand_for_anything_and_nothing_else_does() -> None:
    assert matches("used ... B\n...\nend", "used 12 B\nmore\nlines\nend\n")
    assert not matches("used ... B", "used 12 KiB")
    assert not matches("a.c", "abc")


def test_a_command_that_fails_or_prints_something_else_is_noticed(tmp_path: Path) -> None:
    run(Command("echo fine", "fine\n"), tmp_path)
    with pytest.raises(AssertionError):
        run(Command("false", ""), tmp_path)
    with pytest.raises(AssertionError):
        run(Command("echo other", "fine\n"), tmp_path)


def test_a_command_of_this_process_is_one_as_well(tmp_path: Path) -> None:
    run(Command("bytewright --version", "bytewright, version ...\n"), tmp_path, by_shell=False)
    run(Command("bytewright ops 'no such one'", "error[...]: ...\n"), tmp_path, by_shell=False)
    run(Command("bytewright --version | tr b B", "Bytewright, ...\n"), tmp_path, by_shell=False)
    with pytest.raises(AssertionError):
        run(Command("bytewright --version", "other\n"), tmp_path, by_shell=False)
    with pytest.raises(AssertionError):
        run(Command("bytewright no such command", ""), tmp_path, by_shell=False)
