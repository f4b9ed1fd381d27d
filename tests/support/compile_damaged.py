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
from itertools import combinations
from pathlib import Path
from types import FrameType
from typing import Any

from bytewright.compiler.pipeline import Compiled, compile_model
from bytewright.diagnostics import CompileError
from bytewright.options import Options
from bytewright.target.model import Target
from bytewright.target.registry import load_target

JsonObject = dict[str, Any]


class OutOfTimeError(Exception):
    """The file took longer than it may."""


def _ring(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise OutOfTimeError


def _current_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    return pages * resource.getpagesize()


def overlapping(compiled: Compiled) -> str | None:
    """Two buffers of the plan that share bytes while both are alive, found from plan.json alone.

    They may in the one step that reads the one and writes the other, as far apart as its kernel asks.
    """
    document = compiled.document
    placed = [b for b in document["buffers"] if b["place"]["kind"] == "planned" and b["size_bytes"]]
    for first, second in combinations(placed, 2):
        (pool, offset), (other_pool, other_offset) = (_place(b) for b in (first, second))
        begin = max(b["live"][0] for b in (first, second))
        end = min(b["live"][1] for b in (first, second))
        apart = offset + first["size_bytes"] <= other_offset or other_offset + second["size_bytes"] <= offset
        if pool != other_pool or begin >= end or apart:
            continue
        if not any(_allows(step, pair, (begin, end)) for step, pair in _pairs(document, first, second)):
            return f"'{first['name']}' and '{second['name']}' overlap"
    return None


def _place(buffer: JsonObject) -> tuple[str, int]:
    return buffer["place"]["name"], buffer["place"]["offset"]


def _pairs(
    document: JsonObject, first: JsonObject, second: JsonObject
) -> list[tuple[JsonObject, JsonObject]]:
    """The steps that let two buffers overlap, each with the pair and how far above the input the output begins."""
    by_name = {buffer["name"]: buffer for buffer in (first, second)}
    found: list[tuple[JsonObject, JsonObject]] = []
    for step in document["steps"]:
        for pair in step.get("overlaps", ()):
            if {pair["source"], pair["output"]} == set(by_name):
                above = _place(by_name[pair["output"]])[1] - _place(by_name[pair["source"]])[1]
                found.append((step, {**pair, "above": above}))
    return found


def _allows(step: JsonObject, pair: JsonObject, together: tuple[int, int]) -> bool:
    begin, end = step["ticks"]
    asked = -pair["above"] >= pair["below_bytes"] or pair["above"] >= pair["above_bytes"]
    roles = pair["source"] in step["reads"] and pair["output"] in step["writes"]
    return asked and roles and begin <= together[0] and together[1] <= end


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
