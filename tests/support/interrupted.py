"""Does a piece of work again and again, and lets each of its file-system calls in turn end the process, or fail.

This runs as a program with `interrupt_calls.c` preloaded. The work is done by a forked child; `Outcome` is what it
leaves, and what the same work makes of that when it is done once more, undisturbed.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from bytewright.diagnostics import CompileError
from support.bundle_files import tree

KILL, FAIL_ONCE, FULL = 1, 2, 3
_REFUSED, _FAILED = 10, 11
Tree = dict[str, bytes | str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an interrupted piece of work left.

    Attributes:
        call: Which call was interrupted, from 1.
        ending: "killed", "refused" (by a CompileError) or "done".
        left: The scene afterwards.
        again: The scene after the same work was done once more; None if nothing was killed.
    """

    call: int
    ending: str
    left: Tree
    again: Tree | None


def interruptions(
    scene: Path, prepare: Callable[[], None], work: Callable[[], None], mode: int, number: int = errno.ENOSPC
) -> Generator[Outcome, None, None]:
    """One outcome for each call: the scene is made anew and emptied before every one of them."""
    library = ctypes.CDLL(None)
    call = 0
    while True:
        call += 1
        shutil.rmtree(scene, ignore_errors=True)
        scene.mkdir()
        prepare()
        ending, was_reached = _in_a_child(library, work, call, mode, number)
        if not was_reached:
            return
        left = tree(scene)
        if mode == KILL:
            ending_again, _ = _in_a_child(library, work, 0, 0, 0)
            assert ending_again == "done", f"after call {call} it cannot be done again"
        yield Outcome(call, ending, left, tree(scene) if mode == KILL else None)


def _in_a_child(
    library: ctypes.CDLL, work: Callable[[], None], call: int, mode: int, number: int
) -> tuple[str, bool]:
    """How the work ended, and whether the call was reached."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = _FAILED
        try:
            library.interrupt_at(ctypes.c_long(call), mode, number)
            try:
                work()
                status = 0
            except CompileError:
                status = _REFUSED
            finally:
                reached = library.interrupt_count() >= call
            os.write(writing, b"1" if reached else b"0")
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    said = os.read(reading, 1)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return "killed", True
    ending = {0: "done", _REFUSED: "refused"}.get(os.WEXITSTATUS(status), "failed")
    assert ending != "failed", f"the work failed when call {call} was interrupted"
    return ending, said == b"1"


@functools.cache
def _library(folder: Path) -> Path:
    library = folder / "interrupt_calls.so"
    source = Path(__file__).with_name("interrupt_calls.c")
    command = ["gcc", "-O1", "-Wall", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


def run_interrupted(program: Path, *arguments: str, folder: Path, timeout_seconds: int = 300) -> None:
    """Runs a Python program with the calls of the C library interrupted as it asks; it must end well."""
    paths = [str(Path(__file__).resolve().parents[1]), *sys.path]
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=folder,
        env={**os.environ, "LD_PRELOAD": str(_library(folder)), "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
