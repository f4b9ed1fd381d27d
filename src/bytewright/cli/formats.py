"""What a command says, in the formats that are asked for: text, unless an option names another."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from bytewright.base.frozen_mapping import FrozenMapping
from bytewright.cli.option_types import PATH
from bytewright.cli.write_files import write_files
from bytewright.show.as_text import print_view
from bytewright.show.console import standard_output
from bytewright.show.formats import FORMATS, Format
from bytewright.show.view import View

_Command = TypeVar("_Command", bound=Callable[..., Any])
_ASKED = "bytewright.formats"
STANDARD_OUTPUT = Path("-")


def format_options(command: _Command) -> _Command:
    """An option for each format but text, which `say` follows; of a command without pictures."""
    return _with_options(command, (form for form in FORMATS if not form.is_picture))


def picture_options(command: _Command) -> _Command:
    """The same of a command that has pictures."""
    return _with_options(command, FORMATS)


def _with_options(command: _Command, forms: Iterable[Format]) -> _Command:
    for form in reversed(tuple(forms)):
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


def page_options(command: _Command) -> _Command:
    """An option for each format that goes to a file, of a command that prints in its own way."""
    return _with_options(command, (form for form in FORMATS if form.is_page))


def asked_pages(view: Callable[[], View]) -> list[tuple[Path, str]]:
    """Where the options of the command ask for a view, and the text; the view is made if they do."""
    asked: dict[Format, Any] = click.get_current_context().meta.get(_ASKED, {})
    pages = [(form, path) for form, path in asked.items() if form.is_page]
    if not pages:
        return []
    made = view()
    return [(path, form.write(made)) for form, path in pages]


def say(
    view: View, read: Iterable[Path] = (), besides: Mapping[str, tuple[Path, str]] = FrozenMapping({})
) -> None:
    """Prints a view, or writes it where the options of the command say.

    Args:
        view: What is said.
        read: Files that nothing may be written over, besides those that the command was given.
        besides: Texts that are written with it, or in its place, by the parameters that say where; to `STANDARD_OUTPUT`
            as they are.

    Raises:
        CompileError: BW206 for a file that cannot be written, or that the command has read.
        UsageError: Two things are to be printed.
    """
    context = click.get_current_context()
    asked: dict[Format, Any] = context.meta.get(_ASKED, {})
    forms = [form for form in asked if not form.is_page]
    others = tuple(besides.values())
    printed = [text for path, text in others if path == STANDARD_OUTPUT]
    if len(forms) + len(printed) > 1:
        raise click.UsageError(
            "one format can go to standard output: give the others a file, or leave them out"
        )
    pages = [*((path, text) for path, text in others if path != STANDARD_OUTPUT), *asked_pages(lambda: view)]
    if pages:
        write_files(pages, (*_files_of(context, besides), *read))
    for text in (*(form.write(view) + "\n" for form in forms), *printed):
        click.echo(text, nl=False)
    if not asked and not others:
        print_view(view, standard_output())


def _files_of(context: click.Context, written: Container[str]) -> Iterator[Path]:
    """The files that a command was given, and those of bundles, but for parameters that say where to write."""
    for name, value in context.params.items():
        if isinstance(value, Path) and name not in written:
            yield from (file for file in value.rglob("*") if file.is_file()) if value.is_dir() else (value,)
