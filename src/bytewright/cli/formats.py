"""What a command says, in the format that is asked for: text, unless an option names another."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bytewright.show.as_text import print_view
from bytewright.show.console import standard_output
from bytewright.show.formats import FORMATS
from bytewright.show.view import View

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_options(command: _Command) -> _Command:
    """An option for each format but text; the command is given the name of the last one, or None, as `form`."""
    for form in reversed(FORMATS):
        option = click.option(f"--{form.name}", "form", flag_value=form.name, help=form.help)
        command = option(command)
    return command


def say(view: View, form: str | None) -> None:
    """Prints a view."""
    if form is None:
        print_view(view, standard_output())
        return
    (found,) = (each for each in FORMATS if each.name == form)
    click.echo(found.write(view))
