"""What `run` and `profile` are given: a bundle, or a model that is compiled for the occasion, and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from bytewright.cli.option_types import PATH, NamedFile, named_file
from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import compile_error
from bytewright.input_file import read_input

if TYPE_CHECKING:
    from bytewright.execute.tensors import Array
    from bytewright.record.plan import Plan

_Admitted = TypeVar("_Admitted")

_TARGETS = {"host": "host", "qemu": "mps3-an547"}

input_option = click.option(
    "--input",
    "input_files",
    type=named_file,
    multiple=True,
    metavar="[NAME=]X.npy",
    help="An input, by its name or in the model's order.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    help="Seed of random input, which is used if no input is given.  [default: 0]",
)
signature_option = click.option(
    "--signature", metavar="NAME", help="Of a MODEL with several signatures: the one to compile."
)
sources_option = click.option(
    "--source",
    "sources",
    type=PATH,
    multiple=True,
    metavar="FILE.c",
    help="C of the application, with functions that the model calls.",
)
compiler_option = click.option(
    "--compiler",
    metavar="gcc|clang|COMMAND",
    help="The C compiler, of this machine or of the board.  [default: $CC or cc here, gcc for boards]",
)


@contextmanager
def bundle_of(
    source: Path, on: str, signature: str | None, admit: Callable[[Plan], _Admitted]
) -> Generator[tuple[Path, _Admitted], None, None]:
    """The folder itself, or a temporary one that the model was compiled into, or the one of its signatures.

    Args:
        source: A bundle or a model.
        on: "host" or "qemu".
        signature: Of a model: the one to compile.
        admit: Looks at what else was given, knowing the plan: before C is generated, let alone compiled. What it
            returns comes beside the folder.

    Raises:
        CompileError: What `admit` raises, and what reading or compiling does.
    """
    if source.is_dir():
        if signature is not None:
            raise click.UsageError("--signature is for a model: a bundle is compiled from one already")
        from bytewright.execute.description import read_bundle

        yield source, admit(read_bundle(source).plan)
        return
    from bytewright.bundle.write import write_bundle
    from bytewright.execute.tools import build_folder
    from bytewright.options import Options
    from bytewright.pipeline import compile_planned, plan_model
    from bytewright.run_passes import Runner
    from bytewright.target import load_target

    with build_folder() as folder:
        with shown_progress(f"compiling {source.name}") as progress:
            options = Options(signature=signature)
            target = load_target(_TARGETS[on])
            run = Runner(target, progress)
            planned = plan_model(source, target, options, run)
            admitted = admit(planned.plan)
            write_bundle(compile_planned(planned, options, run).files, folder / "bundle")
        yield folder / "bundle", admitted


def inputs_of(files: Sequence[NamedFile], seed: int | None) -> list[tuple[str | None, Array]]:
    """What the files hold, with the names that were given; nothing where random input is used.

    Raises:
        UsageError: There are files and a seed.
        CompileError: BW205.
    """
    if seed is not None and files:
        raise click.UsageError("--seed is for random input: give either --seed or --input")
    return [(file.name, _read_array(file.path)) for file in files]


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
