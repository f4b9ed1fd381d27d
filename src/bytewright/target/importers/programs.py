"""External programs that evaluate what is imported: the linker, the C preprocessor."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

from bytewright.diagnostics import CompileError, Diagnostic

_TIMEOUT_SECONDS = 60.0


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
        CompileError: BW502 if it cannot be started or does not end in time.
    """
    try:
        return subprocess.run(
            list(command),
            timeout=_TIMEOUT_SECONDS,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{what} did not end within {_TIMEOUT_SECONDS:g} s and was stopped"
        raise CompileError(Diagnostic("BW502", message)) from None
    except OSError as error:
        raise CompileError(Diagnostic("BW502", f"{what} could not be started: {error.strerror}")) from None
