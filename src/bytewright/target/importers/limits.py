"""What evaluates other people's files, under limits: programs, and a parser that computes whatever it is told to.

A linker script, a macro or an expression in a devicetree can ask for any amount of time and memory. What it may have
is far more than any real file needs.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

from bytewright.base.programs import execute
from bytewright.diagnostics import compile_error

_Result = TypeVar("_Result")

TIMEOUT_SECONDS = 20.0
MEMORY_BYTES = 1 << 30  # of address space, above what the process has when it begins
OUTPUT_BYTES = 64 << 20  # of any file that is written


class LimitError(Exception):
    """What was run took more than it may have, or died; the text says what."""


def limit_this_process(memory_bytes: int) -> None:
    """Sets the limits for this process and those that it starts. Where the system has none, it does nothing."""
    if sys.platform == "win32":
        return
    import resource

    for kind, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, int(TIMEOUT_SECONDS) + 1),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        with suppress(ValueError, OSError):  # a system that does not take it
            resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))


def run_program(command: Sequence[str], what: str) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, whatever its exit status; its messages are in English.

    Raises:
        CompileError: BW502 if it cannot be started, does not end in time, writes without end, or dies of a signal.
    """
    done = execute(
        command,
        what=what,
        timeout_seconds=TIMEOUT_SECONDS,
        environment={"LC_ALL": "C"},
        limit=lambda: limit_this_process(MEMORY_BYTES),
    )
    if max(len(text.encode()) for text in (done.stdout, done.stderr)) >= OUTPUT_BYTES:
        raise compile_error("BW502", f"{what} wrote {OUTPUT_BYTES >> 20} MiB of output and was stopped")
    if done.returncode < 0:
        message = f"{what} was ended by signal {-done.returncode}"
        raise compile_error("BW502", message, tuple(done.stderr.splitlines()[:4]))
    return done


def run_limited(function: Callable[[], _Result]) -> _Result:
    """What a function returns or raises, worked out in a process of its own that has limits.

    Its result and its exceptions are pickled. Without `fork` it runs here.

    Raises:
        LimitError: It took more time or memory than it may have.
    """
    if not hasattr(os, "fork"):
        return function()
    receiving, sending = Pipe(duplex=False)
    process = os.fork()
    if process == 0:
        receiving.close()
        _answer(function, sending)
    sending.close()
    try:
        if not receiving.poll(TIMEOUT_SECONDS):
            raise LimitError(f"it did not end within {TIMEOUT_SECONDS:g} s")
        has_failed, value = receiving.recv()  # written by this very program
    except (EOFError, OSError):
        raise LimitError(
            f"it needs more than {MEMORY_BYTES >> 20} MiB of memory, or more than {TIMEOUT_SECONDS:g} s"
        ) from None
    finally:
        receiving.close()
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    if has_failed:
        raise value
    return value


def _answer(function: Callable[[], Any], sending: Connection) -> None:
    """The child's part: never returns, and never reaches what the parent would do at its end."""
    try:
        limit_this_process(_own_memory_bytes() + MEMORY_BYTES)
        try:
            answer = (False, function())
        except MemoryError:
            return  # without an answer: the end of the pipe says it
        except Exception as error:
            answer = (True, error)
        sending.send(answer)
    finally:
        os._exit(0)


def _own_memory_bytes() -> int:
    """The address space that this process has already; a guess where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 1 << 30
