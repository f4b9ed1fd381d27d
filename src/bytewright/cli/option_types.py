"""What options of several commands share: paths, JSON instead of text, and values with a syntax of their own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from bytewright.base.c_names import is_c_name
from bytewright.base.option import OptionSyntaxError

PATH = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file for an input or output, and its name, if that was given."""

    name: str | None
    path: Path


def named_file(text: str) -> NamedFile:
    """`FILE` or `NAME=FILE`; of a file that has a `=` in its own name, the whole is the file."""
    name, separator, path = text.partition("=")
    is_named = bool(separator and path) and is_c_name(name) and not Path(text).exists()
    return NamedFile(name, Path(path)) if is_named else NamedFile(None, Path(text))


def completed_target(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """What a shell makes of the beginning of `NAME|FILE`: the targets that begin so, and else files."""
    from bytewright.target.registry import BUILTIN_TARGETS, NATIVE

    del context, parameter
    names = [CompletionItem(name) for name in (*BUILTIN_TARGETS, NATIVE) if name.startswith(begun)]
    return names or [CompletionItem(begun, type="file")]


def sources_option(use: str = "") -> Callable[[Any], Any]:
    """`--source`, with what it is for besides."""
    return click.option(
        "--source",
        "sources",
        type=PATH,
        multiple=True,
        metavar="FILE.c",
        help=f"C of the application, with functions that the model calls{use}.",
    )


def cflags_option(use: str = "") -> Callable[[Any], Any]:
    """`--cflags`, likewise."""
    return click.option(
        "--cflags", default="-O2", show_default=True, help=f"How the application compiles{use}."
    )


def compiler_option(use: str = ", of this machine or of the board") -> Callable[[Any], Any]:
    """`--compiler`, likewise."""
    return click.option(
        "--compiler",
        metavar="gcc|clang|COMMAND",
        help=f"The C compiler{use}.  [default: $CC or cc here, gcc for boards]",
    )


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
