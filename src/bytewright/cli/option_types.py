"""What options of several commands share: paths, JSON instead of text, and values with a syntax of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bytewright.option import OptionSyntaxError

PATH = click.Path(path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")


def echo_json(document: object) -> None:
    """Prints a document for programs."""
    click.echo(json.dumps(document, indent=1))


def parsed_by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that parses its text, or each of its texts, once; exit status 2 if it has another form."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is None:
            return None
        try:
            return tuple(parse(text) for text in value) if isinstance(value, tuple) else parse(value)
        except OptionSyntaxError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return callback
