"""The options of every command that compiles a model, declared once: what for, into which pools, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from bytewright.cli.option_types import parsed_by
from bytewright.storage.pin_buffers import Pin, parse_pin_option
from bytewright.target import (
    Overrides,
    PoolOption,
    ProviderOption,
    ResizeOption,
    Target,
    Unlimited,
    apply_overrides,
    load_target,
    parse_max_stack_alloca_size,
    parse_max_stack_size,
    parse_pool_option,
    parse_provider_option,
    parse_resize_option,
)

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the user asked for; each member is the option of its name."""

    name: str | None
    target: str
    workspace: tuple[PoolOption, ...]
    parameters: tuple[PoolOption, ...]
    resize: tuple[ResizeOption, ...]
    provider: tuple[ProviderOption, ...]
    pins: tuple[Pin, ...]
    io: str
    batch_max: int | None
    constants: Path | None
    numerics: str | None
    max_stack_size: int | Unlimited | None
    max_stack_alloca_size: int | Unlimited | None
    use_backend_alloc_workspace: bool | None

    def resolved_target(self) -> Target:
        """The target with the options that change it.

        Raises:
            CompileError: BW201 to BW204.
        """
        overrides = Overrides(
            workspace=self.workspace,
            parameters=self.parameters,
            resize=self.resize,
            provider=self.provider,
            max_stack_size=self.max_stack_size,
            max_stack_alloca_size=self.max_stack_alloca_size,
            use_backend_alloc_workspace=self.use_backend_alloc_workspace,
        )
        return apply_overrides(load_target(self.target), overrides)

    def for_lowering(self) -> dict[str, Any]:
        """The arguments of `pipeline.lower_model`."""
        from bytewright.ops.arithmetic.numerics import Numerics

        return {
            "name": self.name,
            "constants": self.constants,
            "numerics": None if self.numerics is None else Numerics(self.numerics),
            "batch_max": self.batch_max,
        }

    def for_storage(self) -> dict[str, Any]:
        """The arguments of `pipeline.plan_lowered`."""
        from bytewright.ir.border import Io

        return {"io": Io(self.io), "pins": self.pins}


_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--name", metavar="NAME", help="C identifier of the model; else from the file's name."),
    click.option(
        "--target", default="host", metavar="NAME|FILE", help="What to compile for.  [default: host]"
    ),
    click.option(
        "--workspace",
        callback=parsed_by(parse_pool_option),
        multiple=True,
        metavar="NAME[=SIZE][@MEMORY]",
        help="Replace all workspace pools, preferred first.",
    ),
    click.option(
        "--parameters",
        callback=parsed_by(parse_pool_option),
        multiple=True,
        metavar="NAME[=SIZE][@MEMORY]",
        help="Replace all parameter pools, preferred first.",
    ),
    click.option(
        "--resize",
        callback=parsed_by(parse_resize_option),
        multiple=True,
        metavar="POOL=SIZE",
        help="Change the size of one pool.",
    ),
    click.option(
        "--provider",
        callback=parsed_by(parse_provider_option),
        multiple=True,
        metavar="POOL=caller|generated",
        help="Who declares a pool's memory.",
    ),
    click.option(
        "--pin",
        "pins",
        callback=parsed_by(parse_pin_option),
        multiple=True,
        metavar="PATTERN=POOL[,POOL...|+OFFSET]",
        help="Put every buffer whose name matches into a pool: the first of several, or at an offset.",
    ),
    click.option(
        "--io",
        type=click.Choice(["caller", "workspace"]),
        default="caller",
        help="Where inputs and outputs are: the application brings them, or asks where they lie.  [default: caller]",
    ),
    click.option(
        "--batch-max",
        type=click.IntRange(min=1),
        metavar="N",
        help="Let each run compute 1 to N samples; the plan is made for N.",
    ),
    click.option(
        "--numerics",
        type=click.Choice(["litert-ref", "tflm"]),
        help="The reference that the output equals bit for bit.  [default: litert-ref]",
    ),
    click.option(
        "--constants",
        type=click.Path(path_type=Path),
        metavar="FILE.npz",
        help="The constants of a .bw text; else the file beside it.",
    ),
    click.option(
        "--max-stack-size",
        callback=parsed_by(parse_max_stack_size),
        metavar="SIZE",
        help="Limit of the stack along any call path.",
    ),
    click.option(
        "--max-stack-alloca-size",
        callback=parsed_by(parse_max_stack_alloca_size),
        metavar="SIZE",
        help="Largest scratch that may be a local array.",
    ),
    click.option(
        "--use-backend-alloc-workspace/--no-use-backend-alloc-workspace",
        default=None,
        help="Keep kernel scratch off the stack, and request it at run time.",
    ),
)


def given_model_options(context: click.Context) -> list[str]:
    """The options of a model that stand on the command line, as they are written there."""
    names = {field.name for field in fields(ModelOptions)}
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names
        and context.get_parameter_source(parameter.name) is click.core.ParameterSource.COMMANDLINE
    ]


def model_options(command: Command) -> Command:
    """Gives a command these options, as one argument called `options`."""
    names = [field.name for field in fields(ModelOptions)]

    @wraps(command)
    def with_options(*arguments: Any, **values: Any) -> Any:
        options = ModelOptions(**{name: values.pop(name) for name in names})
        return command(*arguments, options=options, **values)

    decorated: Any = with_options
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return cast("Command", decorated)
