"""External programs that evaluate what is imported: the linker, the C preprocessor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import IO

from bytewright.diagnostics import CompileError, Diagnostic
from bytewright.target.importers import limits


def find_program(variable: str, names: Sequence[str], package: str, purpose: str) -> list[str]:
    """The command that the environment variable gives, else the first of the programs that is installed.

    Raises:
        CompileError: BW501 with the Debian package that has one.
    """
    asked = shlex.split(os.environ.get(variable, ""))
    if asked:
        if shutil.which(asked[0]) is None:
            raise _missing(f"the environment's {variable}, '{asked[0]}', is not installed", package)
        return asked
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return [path]
    raise _missing(f"{purpose} needs {names[0]!r}, which is not installed", package)


def _missing(message: str, package: str) -> CompileError:
    help_text = f"install it: apt-get install {package} (Debian's package name)"
    return CompileError(Diagnostic("BW501", message, help=help_text))


def run_program(command: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its exit status; its messages are in English.

    Raises:
        CompileError: BW502 if it cannot be started, does not end in time, writes without end, or dies of a signal.
    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        try:
            done = subprocess.run(
                list(command),
                timeout=limits.TIMEOUT_SECONDS,
                stdout=said,
                stderr=complained,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
                preexec_fn=_limited if os.name == "posix" else None,
            )
        except subprocess.TimeoutExpired:
            message = f"{what} did not end within {limits.TIMEOUT_SECONDS:g} s and was stopped"
            raise CompileError(Diagnostic("BW502", message)) from None
        except OSError as error:
            message = f"{what} could not be started: {error.strerror}"
            raise CompileError(Diagnostic("BW502", message)) from None
        if max(file.seek(0, os.SEEK_END) for file in (said, complained)) >= limits.OUTPUT_BYTES:
            message = f"{what} wrote {limits.OUTPUT_BYTES >> 20} MiB of output and was stopped"
            raise CompileError(Diagnostic("BW502", message))
        texts = [_text(file) for file in (said, complained)]
    if done.returncode < 0:
        message = f"{what} was ended by signal {-done.returncode}"
        raise CompileError(Diagnostic("BW502", message, tuple(texts[1].splitlines()[:4])))
    return subprocess.CompletedProcess(command, done.returncode, *texts)


def _limited() -> None:
    limits.limit_this_process(limits.MEMORY_BYTES)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
