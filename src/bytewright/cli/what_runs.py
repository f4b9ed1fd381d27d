"""What `run` and `profile` are given: a bundle, or a model that is compiled for the occasion, and its inputs."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import compile_error
from bytewright.input_file import read_input

if TYPE_CHECKING:
    from bytewright.execute.tensors import Array

_TARGETS = {"host": "host", "qemu": "mps3-an547"}


@contextmanager
def bundle_of(source: Path, on: str) -> Generator[Path, None, None]:
    """The folder itself, or a temporary one that the model was compiled into."""
    if source.is_dir():
        yield source
        return
    from bytewright.bundle.write import write_bundle
    from bytewright.execute.tools import build_folder
    from bytewright.pipeline import compile_model
    from bytewright.target import load_target

    with build_folder() as folder:
        with shown_progress(f"compiling {source.name}") as progress:
            compiled = compile_model(source, load_target(_TARGETS[on]), progress=progress)
            write_bundle(compiled.files, folder / "bundle")
        yield folder / "bundle"


def read_array(path: Path) -> Array:
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
