"""What a command says, in the formats that are asked for: text, unless an option names another."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from bytewright.cli.option_types import PATH
from bytewright.cli.write_files import write_files
from bytewright.show.as_text import print_view
from bytewright.show.console import standard_output
from bytewright.show.formats import FORMATS, Format
from bytewright.show.view import View

_Command = TypeVar("_Command", bound=Callable[..., Any])
_ASKED = "bytewright.formats"


def format_options(command: _Command) -> _Command:
    """An option for each format but text, which `say` follows."""
    for form in reversed(FORMATS):
        command = _option(form)(command)
    return command


def _option(form: Format) -> Callable[[_Command], _Command]:
    def ask(context: click.Context, _parameter: click.Parameter, value: Any) -> None:
        if value:
            context.meta.setdefault(_ASKED, {})[form] = value

    if form.is_page:
        return click.option(
            f"--{form.name}", type=PATH, metavar="FILE", expose_value=False, callback=ask, help=form.help
        )
    return click.option(f"--{form.name}", is_flag=True, expose_value=False, callback=ask, help=form.help)


def say(view: View) -> None:
    """Prints a view, or writes it where the options of the command say.

    Raises:
        CompileError: BW206 for a file that cannot be written, or that the command has read.
    """
    context = click.get_current_context()
    asked: dict[Format, Any] = context.meta.get(_ASKED, {})
    pages = [(path, form.write(view)) for form, path in asked.items() if form.is_page]
    if pages:
        write_files(pages, _files_of(context))
    for form in asked:
        if not form.is_page:
            click.echo(form.write(view))
    if not asked:
        print_view(view, standard_output())


def _files_of(context: click.Context) -> Iterator[Path]:
    """The files that a command was given, and those of bundles."""
    for value in context.params.values():
        if isinstance(value, Path):
            yield from (file for file in value.rglob("*") if file.is_file()) if value.is_dir() else (value,)
