"""Compiles every file of a folder, each in bounded time and all in bounded memory; run as a program of its own.

    python compile_damaged.py FOLDER TARGET SECONDS_A_FILE MEBIBYTES

Prints a line for each file: its name, the seconds that it took, and what came out: `plan`, the codes of a
CompileError, or `BUG` with what happened. Address space is limited after the libraries are loaded, so the limit
is on what compiling asks for.
"""

from __future__ import annotations

import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from bytewright.diagnostics import CompileError
from bytewright.options import Options
from bytewright.pipeline import Compiled, compile_model
from bytewright.target.model import Target
from bytewright.target.registry import load_target


class OutOfTimeError(Exception):
    """The file took longer than it may."""


def _ring(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise OutOfTimeError


def _current_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    return pages * resource.getpagesize()


def overlapping(compiled: Compiled) -> str | None:
    """Two buffers of the plan that share bytes while both are alive, found from plan.json alone."""
    placed = [
        (b["place"]["name"], b["place"]["offset"], b["size_bytes"], b["live"], b["name"])
        for b in compiled.document["buffers"]
        if b["place"]["kind"] == "planned"
    ]
    for index, (pool, offset, size, live, name) in enumerate(placed):
        for other_pool, other_offset, other_size, other_live, other in placed[index + 1 :]:
            together = live[0] < other_live[1] and other_live[0] < live[1]
            apart = offset + size <= other_offset or other_offset + other_size <= offset
            if pool == other_pool and together and not apart and size and other_size:
                return f"'{name}' and '{other}' overlap"
    return None


def outcome(path: Path, target: Target, seconds: float) -> str:
    """What compiling one file gives."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        compiled = compile_model(path, target, Options(name="damaged"))
        signal.setitimer(signal.ITIMER_REAL, 0)
    except CompileError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return " ".join(diagnostic.code for diagnostic in error.diagnostics)
    except OutOfTimeError:
        return f"BUG more than {seconds} s: " + " | ".join(traceback.format_exc().splitlines()[-6:])
    except BaseException:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return "BUG " + " | ".join(traceback.format_exc().splitlines()[-6:])
    overlap = overlapping(compiled)
    return "plan" if overlap is None else f"BUG {overlap}"


def main(folder: str, target_name: str, seconds: str, mebibytes: str) -> None:
    """Compiles the files in the order of their names."""
    target = load_target(target_name)
    signal.signal(signal.SIGALRM, _ring)
    limit = _current_bytes() + (int(mebibytes) << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for path in sorted(Path(folder).iterdir()):
        begin = time.perf_counter()
        text = outcome(path, target, float(seconds))
        print(f"{path.name} {time.perf_counter() - begin:.3f} {text}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
