"""What a command's failure looks like: text on standard error, and an exit status by kind of failure.

Here and nowhere else exceptions become exit statuses, so that no command can end in a traceback or in a status
that means something else.
"""

import difflib
import json
import os
import sys
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import takewhile
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from bytewright.base.visible import visible
from bytewright.diagnostics import CompileError, Diagnostic, ExitCode, compile_error

_ALIKE, _ALIKE_IF_SHORT, _SHORT = 0.8, 0.66, 4  # parts of a name's letters, of names of so many letters
_AS_JSON = "bytewright.json"  # what a context has where errors are for programs
_INTERRUPTED = 130  # what shells report for SIGINT
_BROKEN_PIPE = 141  # and for SIGPIPE


class CommandLine(click.Group):
    """A group whose commands fail as the exit codes of the project say."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parses the group's own options; whether errors are for programs is known before the command's are parsed."""
        if "--json" in takewhile(lambda word: word != "--", args):
            ctx.meta[_AS_JSON] = True
        try:
            return super().parse_args(ctx, args)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.UsageError as error:
            raise _BadCommandLine(error, ctx, ctx.command_path) from None

    def invoke(self, ctx: click.Context) -> object:
        """Runs the command; whatever it raises ends as an exit status."""
        try:
            with _written_output():
                return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, click.exceptions.NoArgsIsHelpError):
            raise
        except click.UsageError as error:
            raise _BadCommandLine(error, ctx, f"{ctx.command_path} {ctx.invoked_subcommand}") from None
        except CompileError as error:
            status = int(error.exit_code)
            show(error.diagnostics)
            _show_traceback(ctx)
            if _AS_JSON in ctx.meta:
                _show_json([asdict(diagnostic) for diagnostic in error.diagnostics], status)
        except BrokenPipeError:
            status = _BROKEN_PIPE
            _abandon_output()
        except KeyboardInterrupt:
            status = _INTERRUPTED
            _console().print("interrupted")
        except Exception as error:  # a bug, whatever it is
            status = int(ExitCode.INTERNAL)
            _show_bug(error)
            _show_traceback(ctx)
            if _AS_JSON in ctx.meta:
                _show_json([_without_code(f"internal error: {_first_line(error)}")], status)
        return ctx.exit(status)


class _BadCommandLine(click.ClickException):
    """A usage error of click's, which is shown as all refusals are."""

    exit_code = ExitCode.USAGE

    def __init__(self, error: click.UsageError, ctx: click.Context, command: str) -> None:
        meant = _with_what_was_meant(error) if isinstance(error, click.NoSuchOption) else error
        message = meant.format_message().rstrip(".")
        super().__init__(message)
        command = command if error.ctx is None else error.ctx.command_path
        self._is_json = _AS_JSON in ctx.meta
        self._diagnostic = Diagnostic(
            "BW200", message[:1].lower() + message[1:], help=f"`{command} --help` lists what there is"
        )

    def show(self, file: object = None) -> None:  # noqa: ARG002
        """Prints the refusal on standard error."""
        show((self._diagnostic,))
        if self._is_json:
            _show_json([asdict(self._diagnostic)], self.exit_code)


@contextmanager
def _written_output() -> Generator[None, None, None]:
    """Has written all of standard output at the end.

    Raises:
        CompileError: BW206 if it cannot be: the disk is full, say.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        try:
            # What could not be written is gone if nothing is buffered, so one line more is tried.
            print(flush=True)
        except OSError as error:
            _abandon_output()
            raise compile_error(
                "BW206", f"cannot write standard output: {error.strerror or error}"
            ) from error
        raise


def _with_what_was_meant(error: click.NoSuchOption) -> click.NoSuchOption:
    """The usage error with the one option that is nearly what was written, or with none."""
    parameters = [] if error.ctx is None else error.ctx.command.params
    names = {
        name.lstrip("-"): name
        for p in parameters
        for name in (*p.opts, *p.secondary_opts)
        if name[:2] == "--"
    }
    written = error.option_name.lstrip("-").lower()
    cutoff = _ALIKE if len(written) > _SHORT else _ALIKE_IF_SHORT
    meant = [names[name] for name in difflib.get_close_matches(written, names, 1, cutoff)]
    advice = f" Did you mean '{meant[0]}'?" if meant else ""  # click drops what differs in case
    return click.NoSuchOption(
        error.option_name, f"No such option '{error.option_name}'.{advice}", ctx=error.ctx
    )


def _without_code(message: str) -> dict[str, Any]:
    """A failure that has no code, with the keys of those that have one."""
    return {"code": None, "message": message, "notes": [], "help": None, "where": None, "changes": []}


def _show_json(errors: Sequence[dict[str, Any]], status: int) -> None:
    """Refusals for programs, in the last line of standard error."""
    click.echo(json.dumps({"errors": errors, "exit_status": status}), err=True)


def show(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Prints refusals, coloured on a terminal."""
    console = _console()
    for diagnostic in diagnostics:
        head, _, rest = visible(diagnostic.render()).partition("]: ")
        text = Text.assemble((f"{head}]", "bold red"), ": ", (rest.partition("\n")[0], "bold"))
        for line in rest.split("\n")[1:]:
            is_help = line.startswith("help: ")
            text.append("\n")
            text.append("help: " if is_help else "", style="bold cyan")
            text.append(line.removeprefix("help: ") if is_help else line)
        console.print(text)


def _console() -> Console:
    """Standard error as it is now: lines are never broken, because programs read them too."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def _first_line(error: Exception) -> str:
    first_line = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {first_line}"


def _show_bug(error: Exception) -> None:
    console = _console()
    console.print(Text(f"internal error: {_first_line(error)}", style="bold red"))
    console.print(
        "This is a bug in Bytewright. Please report it with the command and the model; --debug adds a traceback.",
        markup=False,
    )


def _show_traceback(ctx: click.Context) -> None:
    if ctx.find_root().meta.get("bytewright.debug"):
        click.echo(traceback.format_exc(), err=True, nl=False)


def _abandon_output() -> None:
    """Nobody reads standard output any more: what is buffered must not fail again when Python ends."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except OSError:  # a stream without a descriptor has nothing to lose
        return
