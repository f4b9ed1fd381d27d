"""Which compiler builds generated C in tests, and how: the quickest way to what a test looks for.

Results do not depend on the compiler, so where they alone count it is tcc, which compiles at once. Sanitizers see as
much in code that is not optimised, and take a tenth of the time to compile that. What does depend on the compiler
(warnings, undefined behaviour that an optimiser uses, instructions, sizes) is for tests that name one.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from bytewright.execute.build import BuildOptions

HAS_TCC = shutil.which("tcc") is not None
# For `many_models` and other commands: the compiler, and its flags.
QUICK_COMPILER = "tcc" if HAS_TCC else "gcc"
QUICK_FLAGS = ("-O0",)
QUICK = BuildOptions(flags=QUICK_FLAGS, compiler=QUICK_COMPILER)
# Where many parameters are included by the assembler, as tcc cannot, or much is computed.
UNOPTIMISED = BuildOptions(flags=("-O0",), compiler="gcc")


def host_build(*, sanitize: bool, flags: Sequence[str] = (), sources: Sequence[Path] = ()) -> BuildOptions:
    """Optimised, or with the sanitizers: both at once would cost most and see no more."""
    level = "-O0" if sanitize else "-O2"
    return BuildOptions(flags=(level, *flags), sanitize=sanitize, sources=tuple(sources))
