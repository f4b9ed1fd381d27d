"""Builds the example's program with a bundle of the model, and runs it, on this machine and on an emulated board."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from bytewright.base.programs import execute
from bytewright.diagnostics import CompileError
from bytewright.execute.boards.facts import BOARDS
from bytewright.execute.build import LANGUAGE_FLAGS
from bytewright.execute.description import read_bundle
from bytewright.execute.tools import compile_c, failure, find_cross_compiler, find_host_compiler, find_tool

HERE = Path(__file__).resolve().parent
BOARD = BOARDS["mps3-an547"]
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow")
BOARD_FLAGS = ("-nostartfiles", "--specs=nano.specs", "--specs=rdimon.specs", "-T", str(HERE / "board.ld"))
USUAL_SHIFT = 2
"""An instruction takes 2^shift nanoseconds: the processor runs at 250 MHz."""
TIMEOUT_SECONDS = 120.0
_READ = re.compile(r"^frame (\d+): \d, scores((?: \d+)+)$", re.MULTILINE)


def _sources(bundle: Path, port: str) -> list[str]:
    own = [str(HERE / name) for name in ("app.c", "sensor.c", port)]
    found = read_bundle(bundle)
    return [*(f"-I{path}" for path in found.include_directories), *own, *map(str, found.sources)]


def build_for_host(bundle: Path, product: Path, flags: Sequence[str] = ("-O2",)) -> None:
    """The program for this machine."""
    command = [*find_host_compiler(), *LANGUAGE_FLAGS, *WARNINGS, *flags, *_sources(bundle, "port_host.c")]
    compile_c([*command, "-lm", "-o", str(product)], directory=HERE, what="the compiler")


def build_for_board(bundle: Path, product: Path, flags: Sequence[str] = ("-O2",)) -> None:
    """The image for the board."""
    command = [*find_cross_compiler(BOARD.isa), *LANGUAGE_FLAGS, *WARNINGS, *flags]
    command += [*_sources(bundle, "port_board.c"), *BOARD_FLAGS, "-lm", "-o", str(product)]
    compile_c(command, directory=HERE, what="the cross compiler")


def run_here(program: Path, recording: Iterable[bytes], folder: Path) -> str:
    """What the program prints of a recording, which is put into the folder that it runs in."""
    return _run([str(program.resolve())], recording, folder)


def run_on_board(image: Path, recording: Iterable[bytes], folder: Path, shift: int = USUAL_SHIFT) -> str:
    """The same in QEMU.

    It counts instructions for its clock (`-icount`), so that the camera's interrupts come after the same instruction
    each time, however busy this machine is.
    """
    absent = [word for device in ("display", "monitor", "serial", "nic") for word in (f"-{device}", "none")]
    command = [find_tool("qemu-system-arm", "qemu-system-arm"), "-M", BOARD.name, *absent]
    command += ["-kernel", str(image.resolve()), "-semihosting-config", "enable=on,target=native"]
    return _run([*command, "-icount", f"shift={shift},sleep=off"], recording, folder)


def _run(command: Sequence[str], recording: Iterable[bytes], folder: Path) -> str:
    (folder / "recording.bin").write_bytes(b"".join(recording))
    done = execute(command, directory=folder, timeout_seconds=TIMEOUT_SECONDS, what="the program")
    if done.returncode != 0:
        raise _ended_badly(done.returncode, done.stderr + done.stdout)
    return done.stdout


def _ended_badly(returncode: int, output: str) -> CompileError:
    return failure(f"the program ended with exit status {returncode}", output)


def scores_of(printed: str) -> dict[int, list[int]]:
    """By the number of its frame, the scores of each that was read, out of 255."""
    return {
        int(number): [int(score) for score in scores.split()] for number, scores in _READ.findall(printed)
    }
