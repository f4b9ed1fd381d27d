"""Options whose values have a syntax of their own: parsed once, here; a malformed one is a usage error."""

from collections.abc import Callable
from typing import Any

import click

from bytewright.target import OptionSyntaxError


def parsed_by(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """An option's callback that parses its text, or each of its texts; exit status 2 if it has another form."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is None:
            return None
        try:
            return tuple(parse(text) for text in value) if isinstance(value, tuple) else parse(value)
        except OptionSyntaxError as error:
            raise click.BadParameter(str(error), context, parameter) from error

    return callback
