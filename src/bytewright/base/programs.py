"""External programs: finding them, running them, and saying clearly what is missing or went wrong.

A missing program is BW501 and names the Debian package that has it; one that cannot be run is BW502. Every call has a
time limit.
"""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from bytewright.diagnostics import CompileError, compile_error


def missing_program(message: str, package: str) -> CompileError:
    """The error for a program that a Debian package has."""
    help_text = f"install it: apt-get install {package} (Debian's package name)"
    return compile_error("BW501", message, help=help_text)


def find_program(
    names: Sequence[str], package: str, missing: str, variable: str = "", chosen: str | None = None
) -> list[str]:
    """The command that is chosen, else that of the environment's variable, else the first program that is installed.

    Raises:
        CompileError: BW501 with the package; `missing` says that none is installed.
    """
    asked = chosen or os.environ.get(variable)
    words = shlex.split(asked or "")
    if words and shutil.which(words[0]) is not None:
        return words
    if asked:
        source = "the compiler asked for" if chosen else f"the environment's {variable}"
        raise missing_program(f"{source}, '{asked}', is not installed", package)
    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        raise missing_program(missing, package)
    return [path]


def execute(
    command: Sequence[str],
    *,
    what: str,
    timeout_seconds: float,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    limit: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its exit status.

    Args:
        command: The program and its arguments.
        what: What it is, for messages.
        timeout_seconds: When it is stopped.
        directory: Where it runs; here if None.
        environment: Variables besides those of this process.
        limit: What the new process does before; files that it writes may be bounded, what it says is one.

    Raises:
        CompileError: BW502 if it cannot be started or does not end in time.
    """
    try:
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
            done = subprocess.run(
                list(command),
                cwd=directory,
                timeout=timeout_seconds,
                stdout=said,
                stderr=complained,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **(environment or {})},
                check=False,
                preexec_fn=limit if os.name == "posix" else None,
            )
            return subprocess.CompletedProcess(command, done.returncode, _text(said), _text(complained))
    except subprocess.TimeoutExpired as error:
        message = f"{what} did not end within {timeout_seconds:g} s and was stopped"
        raise compile_error("BW502", message) from error
    except OSError as error:  # also where its output has no temporary file to go to
        message = f"{what} could not be started: {error.strerror}"
        raise compile_error("BW502", message) from error


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
