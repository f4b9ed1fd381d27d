"""Compilers and their tools: which there are, the folder in which they build, and what they say when they fail."""

import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bytewright.diagnostics import CompileError, compile_error
from bytewright.programs import execute, find_program
from bytewright.target.isa.isa import Isa

_SHOWN_LINES = 12
TIMEOUT_SECONDS = 300.0  # of a compiler, and of a run if nothing else is said


def find_tool(name: str, package: str) -> str:
    """The path of a program.

    Raises:
        CompileError: BW501 with the Debian package that has it.
    """
    return find_program((name,), package, f"'{name}' is not installed")[0]


def find_cross_tool(isa: Isa, name: str) -> str:
    """The path of one of the GNU tools for an instruction set: `gcc`, `nm`.

    Raises:
        CompileError: BW501 with the Debian package that has it.
    """
    return find_tool(f"{isa.triple}-{name}", f"{'gcc' if name == 'gcc' else 'binutils'}-{isa.triple}")


def find_cross_compiler(isa: Isa, chosen: str | None = None) -> list[str]:
    """The command of the C compiler for an instruction set, with the flags that choose it: `chosen`, else gcc."""
    compiler = find_tool(chosen, f"gcc-{isa.triple}") if chosen else find_cross_tool(isa, "gcc")
    return [compiler, *isa.flags]


def find_host_compiler(chosen: str | None = None) -> list[str]:
    """The command of the system's C compiler: `chosen`, else $CC, else cc, gcc or clang."""
    missing = "no C compiler is installed (looked for cc, gcc and clang)"
    return find_program(("cc", "gcc", "clang"), "gcc", missing, "CC", chosen)


@contextmanager
def build_folder() -> Generator[Path, None, None]:
    """A temporary folder for what is built.

    Raises:
        CompileError: BW502 if it cannot be made or written: the disk is full, say.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="bytewright-") as name:
            yield Path(name)
    except OSError as error:
        raise failure(
            f"the folder to build in cannot be written: {error.strerror or error}",
            help_text="TMPDIR=FOLDER names another place",
        ) from error


class CrashError(CompileError):
    """The built program itself ended badly: a signal, a fault of the board, a sanitizer's report."""


class ViolationError(Exception):
    """A paranoid run found that a step changed what it may not; the harness's report says what."""


def failure(message: str, output: str = "", help_text: str | None = None) -> CompileError:
    """A BW502 with the first lines of a program's output as notes."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    shown = lines[:_SHOWN_LINES]
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} more lines")
    return compile_error("BW502", message, notes=tuple(shown), help=help_text)


def ending_of(returncode: int) -> str:
    """How a process ended, in words."""
    return f"signal {-returncode}" if returncode < 0 else f"exit status {returncode}"


def compile_c(command: Sequence[str], *, directory: Path, what: str) -> str:
    """Runs a compiler, linker or binary tool; returns its standard output.

    Raises:
        CompileError: BW502 with the first lines it printed.
    """
    done = execute(command, directory=directory, timeout_seconds=TIMEOUT_SECONDS, what=what)
    if done.returncode != 0:
        raise failure(f"{what} failed with exit status {done.returncode}", done.stderr or done.stdout)
    return done.stdout
