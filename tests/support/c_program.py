"""Small C programs that use a bundle as an application does: compiled with the sanitizers, run, their numbers read.

In a program `@m@` and `@M@` stand for the model's name, and `SHOW("what", expression)` prints a number.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bytewright.diagnostics import CompileError
from bytewright.execute.build import staged
from bytewright.execute.description import Bundle, read_bundle
from bytewright.execute.objects import compile_object

LANGUAGE = ("-std=c99", "-ffp-contract=off", "-fno-strict-aliasing")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZED = ("-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
TIMEOUT_SECONDS = 120

_PRELUDE = """\
#define _POSIX_C_SOURCE 200112L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "@m@.h"

#define SHOW(what, value) printf("%s %ld\\n", what, (long)(value))

/* Memory of exactly this size, so that the sanitizers see one byte too much. */
static inline void *block(size_t alignment, size_t size_bytes)
{
    void *memory = NULL;

    if (posix_memalign(&memory, alignment < sizeof(void *) ? sizeof(void *) : alignment, size_bytes) != 0) {
        abort();
    }
    memset(memory, 0x5A, size_bytes);
    return memory;
}
"""


def run_command(
    command: Sequence[str | Path], folder: Path, environment: dict[str, str] | None = None
) -> str:
    """A program's standard output; the test fails with its error output if it does not end well."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stderr}{done.stdout}"
    return done.stdout


def build_program(
    bundle_folder: Path, source: str, folder: Path, flags: Sequence[str] = SANITIZED, compiler: str = "gcc"
) -> Path:
    """Compiles a program together with a bundle; the program's own warnings are errors too."""
    bundle = read_bundle(bundle_folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = (_PRELUDE + source).replace("@m@", bundle.plan.model).replace("@M@", bundle.plan.model.upper())
    (folder / "main.c").write_text(text)
    command = [compiler, *LANGUAGE, *WARNINGS, *flags]
    objects, includes = _objects(bundle, Path(tempfile.mkdtemp(dir=folder)), command)
    run_command([*command, *includes, "main.c", *objects, "-o", "program", "-lm", "-lpthread"], folder)
    return folder / "program"


def _objects(bundle: Bundle, folder: Path, command: Sequence[str]) -> tuple[list[Path], list[str]]:
    """A bundle's objects in a folder, those of an equal bundle if there was one, and where its headers are."""
    bundle = staged(bundle, folder)
    includes = [f"-I{path}" for path in bundle.include_directories]
    for source in bundle.sources:
        try:
            compile_object(
                [*command, *includes, "-c"], source, f"{source.stem}.o", folder=folder, what=command[0]
            )
        except CompileError as error:
            raise AssertionError(f"{source.name}: {error}") from error
    return [folder / f"{source.stem}.o" for source in bundle.sources], includes


def run_c(
    bundle_folder: Path,
    source: str,
    folder: Path,
    flags: Sequence[str] = SANITIZED,
    compiler: str = "gcc",
) -> dict[str, int]:
    """What a program shows, by name."""
    program = build_program(bundle_folder, source, folder, flags, compiler)
    shown: dict[str, int] = {}
    for line in run_command([program], folder).splitlines():
        name, _, number = line.rpartition(" ")
        assert name not in shown, f"'{name}' is shown twice"
        shown[name] = int(number)
    return shown
