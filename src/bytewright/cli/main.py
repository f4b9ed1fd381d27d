"""`bytewright`: the group of all commands."""

import click

from bytewright import __version__
from bytewright.cli.check import check
from bytewright.cli.compile import compile_command
from bytewright.cli.explain import explain
from bytewright.cli.failures import CommandLine
from bytewright.cli.ops import ops
from bytewright.cli.plan import plan
from bytewright.cli.report import report
from bytewright.cli.run import run
from bytewright.cli.targets import targets

_EPILOG = (
    "Exit status: 0 fine; 1 the input is wrong; 2 option syntax; 3 it does not fit; 4 it does not verify; "
    "5 a tool failed; 70 a bug."
)

COMMANDS: tuple[click.Command, ...] = (compile_command, run, report, explain, check, plan, targets, ops)


@click.group(
    name="bytewright",
    cls=CommandLine,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="bytewright")
def bytewright() -> None:
    """Neural networks to plain C99, with a proved home for every byte."""


def _debug_option() -> click.Option:
    """An option of the group and of each command: it works on both sides of the command's name."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        del parameter
        if value:
            context.find_root().meta["bytewright.debug"] = True

    return click.Option(
        ["--debug"], is_flag=True, expose_value=False, callback=remember, help="Show tracebacks of errors."
    )


def _register() -> None:
    bytewright.params.append(_debug_option())
    for command in COMMANDS:
        command.params.append(_debug_option())
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            inner.params.append(_debug_option())
        bytewright.add_command(command)


_register()


def main() -> None:
    """The console script; ends the process."""
    bytewright(prog_name="bytewright")
