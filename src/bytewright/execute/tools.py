"""Compilers and their tools: which there are, the folder in which they build, and what they say when they fail."""

import os
import re
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bytewright.base.programs import execute, find_program, missing_program
from bytewright.diagnostics import CompileError, compile_error
from bytewright.target.isa.find import require_isa
from bytewright.target.isa.isa import Isa
from bytewright.target.isa.this_machine import this_machine
from bytewright.target.registry import NATIVE

_SHOWN_LINES = 12
_TRIED_BYTES = 1 << 20  # to learn whether there is room
TIMEOUT_SECONDS = 300.0  # of a compiler, and of a run if nothing else is said


def find_tool(name: str, package: str) -> str:
    """The path of a program.

    Raises:
        CompileError: BW501 with the Debian package that has it.
    """
    return find_program((name,), package, f"'{name}' is not installed")[0]


def _find_gcc(isa: Isa) -> str:
    """The path of the GNU compiler for an instruction set.

    Raises:
        CompileError: BW501 with the Debian package that has it.
    """
    return find_tool(f"{isa.triple}-gcc", f"gcc-{isa.triple}")


def is_clang(command: str) -> bool:
    """Whether a compiler's command is clang, by its name: `clang`, `llvm/bin/clang-14`."""
    return re.fullmatch(r"clang(-[0-9.]+)?", Path(command).name) is not None


def find_cross_compiler(isa: Isa, chosen: str | None = None) -> list[str]:
    """The command of the C compiler for an instruction set, with the flags that choose it.

    Args:
        isa: One that has a triple.
        chosen: `gcc`, which is the usual one; clang, by its name or path, with the headers of gcc's C library; or
            the command of another gcc.

    Raises:
        CompileError: BW501 with the Debian package that has it.
    """
    if chosen is None or chosen == "gcc":
        return [_find_gcc(isa), *isa.flags]
    if not is_clang(chosen):
        return [find_tool(chosen, f"gcc-{isa.triple}"), *isa.flags]
    clang = find_tool(chosen, "clang")
    return [clang, f"--target={isa.triple}", *_bare_sysroot(isa), *isa.flags]


def flags_on_this_machine(isa: Isa) -> tuple[str, ...]:
    """The compiler's flags for code of an instruction set that is to run here.

    They are its own if it is one of this machine's architecture. C for any other is compiled as the portable C that it
    is without flags.

    Raises:
        CompileError: BW505 if this machine's processor does not have what the instruction set has.
    """
    machine = this_machine()
    if not machine.executes(isa):
        return ()
    missing = machine.lacks(isa)
    if missing:
        elsewhere = "" if isa.emulator is None else "--on qemu, or "
        raise compile_error(
            "BW505",
            f"code for {isa.name} needs what this machine's processor does not have: {', '.join(missing)}",
            help=f"{elsewhere}compile again for what it has: --target {NATIVE}",
        )
    return isa.flags


def find_cross_linker(isa: Isa, chosen: str | None = None) -> list[str]:
    """The command that links objects of `find_cross_compiler`: a gcc, which knows its C library and libgcc."""
    return find_cross_compiler(isa, None if chosen is not None and is_clang(chosen) else chosen)


def _bare_sysroot(isa: Isa) -> list[str]:
    """Where clang finds the C library's headers of a machine without an operating system: beside gcc's library."""
    if "-none-" not in f"{isa.triple}":
        return []
    gcc = _find_gcc(isa)
    question = [gcc, "-print-file-name=libc.a"]
    path = Path(execute(question, timeout_seconds=60, what=f"'{gcc}'").stdout.strip())
    if not path.is_absolute():  # gcc answers with the bare name if there is none
        raise missing_program(f"'{gcc}' has no C library", f"libnewlib-{isa.triple}")
    return [f"--sysroot={path.parent.parent}"]


def find_host_compiler(chosen: str | None = None) -> list[str]:
    """The command of the system's C compiler: `chosen`, else $CC, else cc, gcc or clang."""
    missing = "no C compiler is installed (looked for cc, gcc and clang)"
    return find_program(("cc", "gcc", "clang"), "gcc", missing, "CC", chosen)


def cores_of(isa: Isa) -> tuple[Isa, ...]:
    """The cores that code for an instruction set may run on, for each of which the compiler makes other code."""
    return tuple(require_isa(name) for name in isa.cores) or (isa,)


def find_compiler(isa: Isa, chosen: str | None = None) -> list[str]:
    """The command of the C compiler that makes code for an instruction set, whether it runs here or not.

    Args:
        isa: Of a core, which may be this machine's.
        chosen: `gcc`, `clang`, or a compiler's command; `None` for the usual one.

    Raises:
        CompileError: BW204 if it names no core that a compiler is known for, BW501 for the compiler.
    """
    if isa.is_host:
        return find_host_compiler(chosen)
    if this_machine().executes(isa):
        return [*find_host_compiler(chosen), *isa.flags]
    if isa.triple is None:
        raise compile_error(
            "BW204",
            f"no compiler is known without the core, and the ISA '{isa.name}' names none",
            help="set the device's isa in the target file: host, or a core such as cortex-m4",
        )
    return find_cross_compiler(isa, chosen)


@contextmanager
def build_folder() -> Generator[Path, None, None]:
    """A temporary folder for what is built.

    Raises:
        CompileError: BW502 if it cannot be made or written: the disk is full, say. What else fails while it is there is
            raised as it is.
    """
    is_of_others = False
    try:
        with tempfile.TemporaryDirectory(prefix="bytewright-") as name:
            try:
                yield Path(name)
            except OSError as error:
                is_of_others = not _concerns(error, Path(name))
                raise
    except OSError as error:
        if is_of_others:
            raise
        raise failure(
            f"the folder to build in cannot be written: {error.strerror or error}",
            help_text="TMPDIR=FOLDER names another place",
        ) from error


def _concerns(error: OSError, folder: Path) -> bool:
    """Whether a folder is the reason of an error; a write that fails names no file, so another is tried."""
    if error.filename is not None:
        return Path(os.fsdecode(error.filename)).is_relative_to(folder)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIED_BYTES))
    except OSError:
        return True
    return False


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


def compile_c(command: Sequence[str], *, directory: Path, what: str) -> None:
    """Runs a compiler or linker.

    Raises:
        CompileError: BW502 with the first lines it printed.
    """
    done = execute(command, directory=directory, timeout_seconds=TIMEOUT_SECONDS, what=what)
    if done.returncode != 0:
        raise failure(f"{what} failed with exit status {done.returncode}", done.stderr or done.stdout)
