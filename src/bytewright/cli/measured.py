"""What `report` measures of a bundle besides its plan: the size of its C, as the application would compile it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from bytewright.cli.progress import shown_progress
from bytewright.diagnostics import CompileError
from bytewright.execute.code_size import code_size, compiler_of
from bytewright.execute.description import read_bundle
from bytewright.report.code import Code


@dataclass(frozen=True, slots=True)
class Building:
    """How the C is compiled, if it is.

    Attributes:
        flags: Of the compiler.
        compiler: `gcc`, `clang`, or a compiler's command; `None` for the usual one.
        with_code: Whether sizes are asked for.
    """

    flags: tuple[str, ...]
    compiler: str | None
    with_code: bool

    @classmethod
    def asked(cls, cflags: str, compiler: str | None, *, with_code: bool) -> Building:
        """As the options say.

        Raises:
            BadParameter: The flags are no command line.
        """
        return cls(split_flags(cflags), compiler, with_code)


def split_flags(cflags: str) -> tuple[str, ...]:
    """The words of `--cflags`.

    Raises:
        BadParameter: It is no command line.
    """
    try:
        return tuple(shlex.split(cflags))
    except ValueError as error:
        raise click.BadParameter(f"{cflags!r} is no command line: {error}", param_hint="--cflags") from error


def code_of(directory: Path, building: Building) -> Code | None:
    """The size of a bundle's C; or why that is not known, which is no failure of a report. None if nobody asked."""
    if not building.with_code:
        return None
    try:
        bundle = read_bundle(directory)
        gone = [path for path in bundle.plan.files if path not in bundle.files]
        if gone:
            return Code(None, "", f"{gone[0]} is missing in the bundle")
        with shown_progress(f"compiling the C of {bundle.plan.model}"):
            name = Path(compiler_of(bundle, building.compiler)[0]).name
            sizes = code_size(bundle, building.flags, building.compiler)
    except CompileError as error:
        first = error.diagnostics[0]
        return Code(None, "", "; ".join(filter(None, (first.message, first.help))))
    return Code(sizes, " ".join((name, *building.flags)))
