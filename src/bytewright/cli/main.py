"""`bytewright`: the group of all commands.

A command's module is loaded when the command is: to load all of them takes as long as to compile a small model.
"""

import gc
from functools import cache
from importlib import import_module
from typing import Any

import click

from bytewright import __version__
from bytewright.cli.failures import CommandLine

_EPILOG = (
    "Exit status: 0 fine; 1 the input is wrong; 2 option syntax; 3 it does not fit; 4 it does not verify; "
    "5 a tool failed; 70 a bug."
)

# A command makes much that lasts to its end and few cycles; to look for these more often takes a tenth of its time.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_HELP_OPTIONS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


# What each command is called in the module of its name.
COMMANDS = {
    "compile": "compile_command",
    "run": "run",
    "profile": "profile",
    "validate": "validate",
    "report": "report",
    "explain": "explain",
    "check": "check",
    "plan": "plan",
    "sweep": "sweep",
    "targets": "targets",
    "ops": "ops",
    "serial": "serial",
    "example": "example",
    "help": "help_command",
}


@cache
def load_command(name: str) -> click.Command:
    """The command of this name, which is one of COMMANDS, with the options that all commands have."""
    command: click.Command = getattr(import_module(f"bytewright.cli.{name}"), COMMANDS[name])
    command.context_settings.update(_HELP_OPTIONS)
    command.params.append(_debug_option())
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        inner.params.append(_debug_option())
    return command


class Commands(CommandLine):
    """The group, whose commands are loaded when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the help's list."""
        return sorted({*COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None if there is none of this name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else super().get_command(ctx, cmd_name)


def _debug_option() -> click.Option:
    """An option of the group and of each command: it works on both sides of the command's name."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        del parameter
        if value:
            context.find_root().meta["bytewright.debug"] = True

    return click.Option(
        ["--debug"], is_flag=True, expose_value=False, callback=remember, help="Show tracebacks of errors."
    )


@click.group(
    name="bytewright",
    cls=Commands,
    epilog=_EPILOG,
    context_settings=_HELP_OPTIONS,
)
@click.version_option(__version__, prog_name="bytewright")
def bytewright() -> None:
    """Neural networks to plain C99, with a proved home for every byte."""


bytewright.params.append(_debug_option())


def main() -> None:
    """The console script; ends the process."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    bytewright(prog_name="bytewright")
