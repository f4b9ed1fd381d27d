"""The C preprocessor over a devicetree, as Zephyr's build runs it, with errors that keep file and line."""

import re
from collections.abc import Sequence
from pathlib import Path

from bytewright.base.programs import find_program
from bytewright.diagnostics import CompileError, Diagnostic, compile_error
from bytewright.target.importers.limits import run_program
from bytewright.target.isa.find import TRIPLES

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(?:include|define|undef|ifn?def|if|else|elif|endif)\b", re.MULTILINE)
_ERROR = re.compile(r"(.+?):(\d+)(?::\d+)?: (?:fatal )?error: (.*)")
_COMPILERS = ("gcc", "clang", *(f"{triple}-gcc" for triple in TRIPLES), "cc")


def first_directive(text: str) -> int | None:
    """The line of the first directive, if there is one."""
    match = _DIRECTIVE.search(text)
    return None if match is None else text.count("\n", 0, match.start()) + 1


def preprocess(path: Path, text: str, include: Sequence[Path], define: Sequence[str]) -> str:
    """The text with its directives followed; without directives, the text itself.

    Raises:
        CompileError: BW202 with file and line for a wrong directive or a missing file; BW501 without a compiler.
    """
    if _DIRECTIVE.search(text) is None:
        return text
    missing = "a devicetree with preprocessor directives needs 'gcc', which is not installed"
    compiler = find_program(_COMPILERS, "gcc", missing, "CC")
    command = [*compiler, "-E", "-nostdinc", "-undef", "-D__DTS__", "-x", "assembler-with-cpp"]
    command += [f"-I{folder}" for folder in include]
    command += [f"-D{definition}" for definition in define]
    done = run_program([*command, str(path)], "the C preprocessor")
    if done.returncode == 0:
        return done.stdout
    found = [match for line in done.stderr.splitlines() if (match := _ERROR.fullmatch(line.strip()))]
    if not found:
        notes = tuple(done.stderr.splitlines()[:4])
        raise compile_error("BW502", "the C preprocessor failed", notes)
    raise CompileError(
        Diagnostic("BW202", f"the C preprocessor: {m[3]}", help=_help(m[3]), where=f"{m[1]}:{m[2]}")
        for m in found
    )


def _help(message: str) -> str | None:
    if "No such file" in message or "file not found" in message:
        return (
            "name the folder with --include DIR, or import the build's own zephyr.dts, which includes nothing"
        )
    return None
