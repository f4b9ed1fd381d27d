"""The options of every command that compiles a model, as their declarations say (`options.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any, TypeVar, assert_never, cast

import click

from bytewright.base.option import Choice, Count, Declaration, File, Size, Switch, Text, Texts
from bytewright.cli.option_types import PATH, completed_target, parsed_by
from bytewright.options import DECLARATIONS, Options, options_of
from bytewright.target import Target, load_target

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the user asked for.

    Attributes:
        target_name: Of a built-in target, or the path of a file.
        compiling: Everything else.
    """

    target_name: str
    compiling: Options

    def target(self) -> Target:
        """The target, before the options.

        Raises:
            CompileError: BW201 to BW203.
        """
        return load_target(self.target_name)


def model_options(*, of_c: bool = True) -> Callable[[Command], Command]:
    """Gives a command these options, as one argument called `options`; on request without those of C alone."""
    known = [declaration for declaration in DECLARATIONS if of_c or not declaration.option.is_of_c]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_options(*arguments: Any, **values: Any) -> Any:
            given = {d.name: value for d in known if (value := values.pop(d.name)) is not None}
            options = ModelOptions(values.pop("target"), options_of(given))
            return command(*arguments, options=options, **values)

        decorated: Any = with_options
        for declaration in reversed(known):
            decorated = _option(declaration)(decorated)
        target = click.option(
            "--target",
            default="host",
            metavar="NAME|FILE",
            shell_complete=completed_target,
            help="What to compile for; native: what this machine has.  [default: host]",
        )
        return cast("Command", target(decorated))

    return decorate


def given_model_options(context: click.Context, besides: tuple[str, ...]) -> list[str]:
    """The options of a model that stand on the command line, as they are written there, but for some."""
    names = {"target", *(declaration.name for declaration in DECLARATIONS)} - {*besides}
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]


def _option(declaration: Declaration) -> Callable[[Any], Any]:
    """The option of click; without a value on the command line it is None, or no text where there may be many."""
    kind, default = declaration.option.kind, declaration.default
    default_text = default.value if isinstance(default, Enum) else default
    shown = (
        f"{declaration.option.help}  [default: {default_text}]"
        if isinstance(default_text, str)
        else declaration.option.help
    )
    names = (declaration.flag, declaration.name)
    match kind:
        case Text(metavar):
            return click.option(*names, metavar=metavar, help=shown)
        case Texts(parse, metavar):
            return click.option(*names, callback=parsed_by(parse), multiple=True, metavar=metavar, help=shown)
        case Size(parse, metavar):
            return click.option(*names, callback=parsed_by(parse), metavar=metavar, help=shown)
        case Choice(members):
            values = click.Choice([member.value for member in members])
            return click.option(*names, type=values, callback=parsed_by(members), help=shown)
        case Count(metavar):
            return click.option(*names, type=click.IntRange(min=1), metavar=metavar, help=shown)
        case File(metavar):
            return click.option(*names, type=PATH, metavar=metavar, help=shown)
        case Switch():
            flags = f"{declaration.flag}/--no-{declaration.flag.removeprefix('--')}"
            return click.option(flags, declaration.name, default=None, help=shown)
        case _:
            assert_never(kind)
