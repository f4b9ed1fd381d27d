"""Modules as text, compiled to C and run with the sanitizers, against the evaluator of their IR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_bundle
from bytewright.ir.module import Module
from bytewright.ir.verify.stages import Stage, verify
from bytewright.target.registry import load_target
from support.c_program import LANGUAGE, WARNINGS, run_command
from support.evaluate.evaluate import Evaluator
from support.parsing import parse_module

Array = NDArray[np.generic]
SANITIZED = BuildOptions(flags=("-O0",), sanitize=True)


def read_module(text: str) -> Module:
    """A lowered module without constants; it verifies."""
    module = parse_module(text, {}, {})
    verify(module, Stage.LOWERED)
    return module


def write_module(module: Module, folder: Path, target: str = "host") -> Path:
    """The bundle of a module, which compiles without a warning."""
    write_bundle(compile_model(module, load_target(target)).files, folder)
    for source in sorted((folder / "src").glob("*.c")):
        for compiler in ("gcc", "clang"):
            flags = [*LANGUAGE, *WARNINGS, "-pedantic", "-fsyntax-only", "-Iinclude"]
            run_command([compiler, *flags, source.relative_to(folder)], folder)
    return folder


def outputs_in_c(module: Module, folder: Path, inputs: list[Array]) -> list[Array]:
    """What a run of the bundle gives."""
    return list(run_bundle(write_module(module, folder), inputs, options=SANITIZED).outputs)


def expected_outputs(module: Module, inputs: list[Array]) -> list[Array]:
    """What the module means."""
    names = [parameter.buffer.name for parameter in module.main.buffer_parameters]
    arguments = dict(zip(names, inputs, strict=False))
    return list(Evaluator(module).run(module.main.name, arguments).values())


def assert_c_is_the_module(text: str, folder: Path, inputs: list[Array]) -> list[Array]:
    """Compares the two bit for bit; gives the outputs."""
    module = read_module(text)
    actual, expected = outputs_in_c(module, folder / "bundle", inputs), expected_outputs(module, inputs)
    assert [(a.dtype, a.shape, a.tobytes()) for a in actual] == [
        (e.dtype, e.shape, e.tobytes()) for e in expected
    ]
    return actual
