"""How commands end that could not do their work: exit statuses, texts, and no traceback."""

import errno
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from bytewright.cli import failures, progress
from bytewright.cli.failures import CommandLine
from bytewright.cli.main import COMMANDS, bytewright, load_command
from bytewright.diagnostics import CompileError, Diagnostic, InternalError

ERRORS = Path(__file__).resolve().parents[3] / "docs" / "errors.md"


@click.command()
@click.argument("what")
def fail(what: str) -> None:
    raise {
        "input": CompileError(Diagnostic("BW101", "wrong input")),
        "two": CompileError([Diagnostic("BW301", "first"), Diagnostic("BW302", "second", help="--better")]),
        "plan": CompileError(Diagnostic("BW401", "bad plan")),
        "tool": CompileError(Diagnostic("BW501", "no [compiler]", ("a [note]",), where="here")),
        "bug": InternalError("an invariant\nwith details"),
        "other": KeyError("missing"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(errno.EPIPE, "Broken pipe"),
        "usage": click.UsageError("not so"),
    }[what]


@pytest.fixture
def failing() -> Iterator[None]:
    bytewright.add_command(fail)
    yield
    del bytewright.commands["fail"]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bytewright, arguments)


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("what", "status"),
    [
        ("input", 1),
        ("usage", 2),
        ("two", 3),
        ("plan", 4),
        ("tool", 5),
        ("bug", 70),
        ("other", 70),
        ("interrupt", 130),
        ("pipe", 141),
    ],
)
def test_each_failure_has_its_exit_status(what: str, status: int) -> None:
    result = invoke("fail", what)
    assert result.exit_code == status
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.usefixtures("failing")
def test_errors_are_printed_as_they_are_written() -> None:
    assert invoke("fail", "two").stderr == "error[BW301]: first\nerror[BW302]: second\nhelp: --better\n"
    assert invoke("fail", "tool").stderr == "error[BW501]: no [compiler]\n  --> here\n  a [note]\n"


@pytest.mark.usefixtures("failing")
def test_a_long_line_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    assert invoke("fail", "two").stderr.count("\n") == 3


@pytest.mark.usefixtures("failing")
def test_a_bug_asks_for_a_report_in_two_lines() -> None:
    text = invoke("fail", "bug").stderr
    assert text.splitlines()[0] == "internal error: InternalError: an invariant"
    assert "report it" in text.splitlines()[1]


@pytest.mark.usefixtures("failing")
def test_debug_shows_a_traceback_on_either_side_of_the_command() -> None:
    fail.params.append(next(p for p in load_command("compile").params if p.name == "debug"))
    assert "Traceback" in invoke("--debug", "fail", "bug").stderr
    assert "Traceback" in invoke("fail", "bug", "--debug").stderr
    assert "Traceback" in invoke("fail", "--debug", "input").stderr
    assert "Traceback" not in invoke("fail", "bug").stderr


def test_colours_are_for_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        failures, "_console", lambda: Console(stderr=True, force_terminal=True, soft_wrap=True)
    )
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    failures.show((Diagnostic("BW101", "wrong", help="better"),))
    assert "\x1b[" in capsys.readouterr().err
    monkeypatch.undo()
    failures.show((Diagnostic("BW101", "wrong", help="better"),))
    assert capsys.readouterr().err == "error[BW101]: wrong\nhelp: better\n"
    failures.show((Diagnostic("BW101", "tensor '\x1b[2J'"),))
    assert capsys.readouterr().err == "error[BW101]: tensor '\\u001b[2J'\n"


def test_progress_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown_progress("working") as tell:
        tell("plan")
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


def test_progress_on_a_terminal_says_what_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True))
    monkeypatch.setenv("TERM", "xterm-256color")
    with progress.shown_progress("compiling kws") as tell:
        tell("plan")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "compiling kws" in captured.err


def test_help_names_every_command_and_status() -> None:
    result = invoke("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"  {command}" in result.stdout
    assert "70 a bug" in " ".join(result.stdout.split())
    assert isinstance(bytewright, CommandLine)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str) -> None:
    result = invoke(command, "-h")
    assert result.exit_code == 0
    assert result.stdout.count("--debug") == 1
    assert load_command(command).name == command
    # Whichever asks first decides which options show the help: click keeps them.
    assert CliRunner().invoke(load_command(command), ["-h"]).exit_code == 0


def test_no_command_and_an_unknown_one_are_usage_errors() -> None:
    nothing, unknown = invoke(), invoke("compil")
    assert (nothing.exit_code, nothing.stderr.startswith("Usage: ")) == (2, True)
    assert (unknown.exit_code, unknown.stderr.startswith("error[BW200]: no such command 'compil'")) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("arguments", "helps"),
    [
        (["compile", "m.tflite", "-o", "out", "--package", "conan"], "bytewright compile"),
        (["targets", "import"], "bytewright targets import"),
        (["report", "m.tflite", "--no-such"], "bytewright report"),
        (["--frob"], "bytewright"),
    ],
)
def test_a_bad_command_line_has_a_code_and_the_command_that_says_more(
    arguments: list[str], helps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = invoke(*arguments, "--json")
    text, _, last = refused.stderr.rstrip().rpartition("\n")
    assert (refused.exit_code, text.partition(":")[0]) == (2, "error[BW200]")
    (error,) = json.loads(last)["errors"]
    assert text.splitlines()[0] == f"error[BW200]: {error['message']}"
    assert error["help"] == f"`{helps} --help` lists what there is"
    assert invoke(*helps.split()[1:], "--help").exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_the_documents_example_of_a_bad_command_line() -> None:
    shown = invoke("compile", "m.tflite", "-o", "out", "--package", "conan").stderr
    assert shown in ERRORS.read_text(encoding="utf-8")


def test_the_version_is_the_packages() -> None:
    import bytewright as package

    assert invoke("--version").stdout.strip() == f"bytewright, version {package.__version__}"


def test_the_module_runs_as_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import runpy

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["bytewright", "explain", "nothing", "x"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("bytewright", run_name="__main__")
    assert ended.value.code == 1


def test_of_long_names_people_see_the_ends_and_programs_all() -> None:
    """Exporters write names of up to 900 characters; help is a command that works, so nothing is left out there."""
    long, short, path = "a" * 40 + ";" + "b" * 45, "c" * 38 + ";" + "d" * 40, "/" + "e" * 90
    notes = (f"'{short}' is not", f"it lies in '{path}'")
    diagnostic = Diagnostic("BW101", f"'{long}' is odd", notes, f"--pin '{long}=ram'", f"'{long}'")
    shown = f"'{'a' * 32}...{'b' * 32}'"
    assert diagnostic.render().splitlines() == [
        f"error[BW101]: {shown} is odd",
        f"  --> {shown}",
        f"  '{short}' is not",
        f"  it lies in '{path}'",
        f"help: --pin '{long}=ram'",
    ]
    assert long in diagnostic.message
