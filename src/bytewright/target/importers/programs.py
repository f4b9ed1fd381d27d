"""External programs that evaluate what is imported, the linker and the C preprocessor, which may not take too much."""

import subprocess
from collections.abc import Sequence

from bytewright.diagnostics import compile_error
from bytewright.programs import execute
from bytewright.target.importers import limits


def run_program(command: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its exit status; its messages are in English.

    Raises:
        CompileError: BW502 if it cannot be started, does not end in time, writes without end, or dies of a signal.
    """
    done = execute(
        command,
        what=what,
        timeout_seconds=limits.TIMEOUT_SECONDS,
        environment={"LC_ALL": "C"},
        limit=lambda: limits.limit_this_process(limits.MEMORY_BYTES),
    )
    if max(len(text.encode()) for text in (done.stdout, done.stderr)) >= limits.OUTPUT_BYTES:
        message = f"{what} wrote {limits.OUTPUT_BYTES >> 20} MiB of output and was stopped"
        raise compile_error("BW502", message)
    if done.returncode < 0:
        message = f"{what} was ended by signal {-done.returncode}"
        raise compile_error("BW502", message, tuple(done.stderr.splitlines()[:4]))
    return done
