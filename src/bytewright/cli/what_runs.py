"""What `run` and `profile` are given: a bundle, or a model that is compiled for the occasion, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

from bytewright.base.input_file import read_input
from bytewright.cli.option_types import (
    NamedFile,
    compiler_option,
    completed_target,
    named_file,
    parsed_by,
    sources_option,
)
from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import compile_error
from bytewright.execute.machine import SerialPort, machine_of

if TYPE_CHECKING:
    from bytewright.execute.machine import Machine
    from bytewright.execute.tensors import Array
    from bytewright.ops.arithmetic.numerics import Numerics
    from bytewright.record.plan import Plan

_Admitted = TypeVar("_Admitted")
_Command = TypeVar("_Command", bound=Callable[..., Any])

_TARGETS = {"host": "host", "qemu": "mps3-an547"}
ON = "host|qemu|serial:PORT[,BAUD]"


class Built(TypedDict):
    """What is built and where it runs, as click has it."""

    source: Path
    on: Machine
    timeout: float | None
    target: str | None
    signature: tuple[str, ...]
    sources: tuple[Path, ...]
    compiler: str | None


class Asked(Built):
    """What `run` and `profile` are asked besides."""

    input_files: tuple[NamedFile, ...]
    seed: int | None
    repeat: int | None


input_option = click.option(
    "--input",
    "input_files",
    type=named_file,
    multiple=True,
    metavar="[NAME=]X.npy",
    help="An input, by its name or in the model's order.",
)


def machine_options(
    on_help: str, repeat_help: str, most: int, default: int | None = None
) -> Callable[[_Command], _Command]:
    """`--seed`, `--on`, `--timeout`, and `--repeat` with its limit."""
    return _all_of(
        click.option(
            "--seed",
            type=click.IntRange(0, 2**32 - 1),
            metavar="N",
            help="Seed of random input, which is used if no input is given.  [default: 0]",
        ),
        on_option(on_help),
        timeout_option,
        click.option(
            "--repeat", type=click.IntRange(1, most), default=default, metavar="N", help=repeat_help
        ),
    )


def on_option(on_help: str) -> Callable[[_Command], _Command]:
    """`--on`."""
    return click.option(
        "--on",
        default="host",
        metavar=ON,
        callback=parsed_by(machine_of),
        help=f"{on_help}  [default: host]",
    )


timeout_option = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=1e6),
    metavar="SECONDS",
    help="Limit of a run; on a serial line, of the time between two requests of the board.  [default: 300]",
)


def build_options(command: _Command) -> _Command:
    """`--target`, `--signature`, `--source` and `--compiler`."""
    return _all_of(
        click.option(
            "--target",
            metavar="NAME|FILE",
            shell_complete=completed_target,
            help="Of a MODEL: what to compile for.  [default: host; in QEMU mps3-an547]",
        ),
        click.option(
            "--signature",
            "signature",
            multiple=True,
            metavar="PATTERN",
            help="Of a MODEL with several signatures: the one to compile, or those, each as an entry.",
        ),
        sources_option(),
        compiler_option(),
    )(command)


def _all_of(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """Options in the order in which the help shows them."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@contextmanager
def bundle_of(
    asked: Built, admit: Callable[[Plan], _Admitted], numerics: Numerics | None = None
) -> Generator[tuple[Path, _Admitted], None, None]:
    """The folder itself, or a temporary one that the model was compiled into, or the one of its signatures.

    Args:
        asked: A bundle or a model, and where it runs.
        admit: Looks at what else was given, knowing the plan: before C is generated, let alone compiled. What it
            returns comes beside the folder.
        numerics: What a model is compiled for.

    Raises:
        CompileError: What `admit` raises, and what reading or compiling does.
    """
    source = asked["source"]
    if isinstance(asked["on"], SerialPort):
        _require_built(asked)
    if source.is_dir():
        for name in ("target", "signature"):
            if asked[name] not in (None, ()):
                raise click.UsageError(f"--{name} is for a model: a bundle is compiled from one already")
        from bytewright.execute.description import read_bundle

        yield source, admit(read_bundle(source).plan)
        return
    with _compiled(asked, admit, numerics) as found:
        yield found


@contextmanager
def _compiled(
    asked: Built, admit: Callable[[Plan], _Admitted], numerics: Numerics | None
) -> Generator[tuple[Path, _Admitted], None, None]:
    from bytewright.bundle.write import write_bundle
    from bytewright.compiler.pipeline import compile_planned, plan_model
    from bytewright.compiler.run_passes import Runner
    from bytewright.execute.tools import build_folder
    from bytewright.options import Options
    from bytewright.target import load_target

    with build_folder() as folder:
        with shown_progress(f"compiling {asked['source'].name}") as progress:
            options = Options(signature=asked["signature"], numerics=numerics)
            target = load_target(asked["target"] or _TARGETS[f"{asked['on']}"])
            run = Runner(target, progress)
            planned = plan_model(asked["source"], target, options, run)
            admitted = admit(planned.plan)
            write_bundle(compile_planned(planned, options, run).files, folder / "bundle")
        yield folder / "bundle", admitted


def _require_built(asked: Built) -> None:
    """Refuses what concerns a build: the board has its program, which is of a bundle for its target.

    Raises:
        UsageError: There is something.
    """
    for name, option in (("sources", "--source"), ("compiler", "--compiler")):
        if asked[name]:
            raise click.UsageError(f"the board's program is built already: leave out {option}")
    if not asked["source"].is_dir() and asked["target"] is None:
        raise click.UsageError(
            "what the board's program was compiled for is not known: give --target, or its bundle"
        )


def inputs_of(asked: Asked) -> list[tuple[str | None, Array]]:
    """What the files hold, with the names that were given; nothing where random input is used.

    Raises:
        UsageError: There are files and a seed.
        CompileError: BW205.
    """
    if asked["seed"] is not None and asked["input_files"]:
        raise click.UsageError("--seed is for random input: give either --seed or --input")
    return [(file.name, _read_array(file.path)) for file in asked["input_files"]]


def files_of(asked: Asked) -> list[Path]:
    """What is read, which nothing that is written may replace."""
    return [asked["source"], *(file.path for file in asked["input_files"])]


def inputs_in_order(plan: Plan, given: list[tuple[str | None, Array]]) -> list[Array] | None:
    """The inputs as the model has them, of its shapes and types; None where random input is used.

    Raises:
        CompileError: BW205.
    """
    from bytewright.execute.by_name import in_order
    from bytewright.execute.tensors import check_inputs

    inputs = in_order([tensor.name for tensor in plan.inputs], given, "input")
    if not inputs:
        return None
    check_inputs(plan, inputs)
    return inputs


def _read_array(path: Path) -> Array:
    """The array of a .npy file.

    Raises:
        CompileError: BW205.
    """
    from bytewright.execute.tensors import array_from_npy

    try:
        return array_from_npy(read_input(path))
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:
        reason = f"it is not a .npy file of numbers ({error})"
    raise compile_error("BW205", f"cannot read input '{path}': {reason}")
