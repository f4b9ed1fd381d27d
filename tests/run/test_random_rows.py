"""Random programs with rings, loops and branches: what compiles is right, verifies, and keeps to its plan.

A program that compiles gives what the evaluator says, also of the same program with every tensor whole, so that no ring
loses a row. `check` verifies it, and a paranoid run finds nothing. `BYTEWRIGHT_TESTS=thorough` runs 2,000 programs, all
of them under watch; otherwise 40 that differ by the day, a few of them under watch. A quarter runs with sanitizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.paranoid import run_paranoid
from bytewright.inspect.check import check_bundle
from bytewright.ir.module import Module
from bytewright.ir.text.modules import module_data, print_module
from bytewright.options import Options, Rows
from bytewright.target.registry import load_target
from support.compilers import QUICK
from support.evaluate.evaluate import Evaluator
from support.many_models import SANITIZERS, Array, Job, build
from support.parsing import parse_module
from support.random_programs import random_arguments
from support.random_rows import RandomRowProgram, without_rings
from support.senseless import SENSELESS
from support.tiers import THOROUGH, share

PART = 40  # programs of one test, and in one executable
TODAY = 10_000 + PART * (datetime.now(tz=UTC).timetuple().tm_yday)
FIRST = range(0, 2000, PART) if THOROUGH else (TODAY,)
WATCHED = 1 if THOROUGH else 16  # each such program is watched
HOST = load_target("host")


@dataclass(frozen=True)
class _Case:
    """A program that compiles, and what it has to give."""

    module: Module
    job: Job
    expected: list[Array]

    def assert_gives(self, outputs: Sequence[Array]) -> None:
        """Compares outputs of the C with the right ones."""
        for port, array, wanted in zip(self.module.outputs, outputs, self.expected, strict=True):
            same = np.array_equal(array, wanted, equal_nan=wanted.dtype.kind == "f")
            assert same, f"{self.module.name}, {port.name}: {array} is not {wanted}"


def case(seed: int) -> _Case | None:
    """A program, or None if it is refused for its rows."""
    program = RandomRowProgram(seed)
    module = program.module()
    assert parse_module(print_module(module), module_data(module), {}) == module
    inputs = random_arguments(module, seed)
    try:
        compiled = compile_model(module, HOST, Options(rows=Rows.MAX if seed % 2 else Rows.AUTO))
    except CompileError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
        if codes != {"BW115"} or not program.is_changed:
            raise
        return None
    given = {port.name: array for port, array in zip(module.inputs, inputs, strict=True)}
    computed, whole = (Evaluator(m).run("main", given) for m in (module, without_rings(module)))
    for name, array in computed.items():
        same = np.array_equal(array, whole[name], equal_nan=array.dtype.kind == "f")
        assert same, f"{seed}: a ring loses rows of what '{name}' is made of\n{print_module(module)}"
    job = Job(compiled.files, compiled.document, [inputs])
    return _Case(module, job, [computed[port.name] for port in module.outputs])


@pytest.mark.parametrize("seed", [5, 26, 34])
def test_a_change_that_loses_a_row_is_refused(seed: int) -> None:
    assert case(seed) is None


@pytest.mark.run
@pytest.mark.slow
@pytest.mark.parametrize("first", FIRST)
def test_what_compiles_is_right(first: int, tmp_path: Path) -> None:
    found = [case(seed) for seed in range(first, first + PART)]
    cases = [made for made in found if made is not None]
    assert len(found) - len(cases) < PART // 2
    assert sum(any("ring" in b for b in made.job.document["buffers"]) for made in cases) >= PART // 4
    built = share(cases, every=4)
    program = build([made.job for made in built], tmp_path / "all", ("-O0", *SENSELESS, *SANITIZERS))
    for made, runs in zip(built, program.run(), strict=True):
        made.assert_gives(runs[0])
    for number, made in enumerate(cases):
        folder = tmp_path / made.module.name
        write_bundle(made.job.files, folder)
        assert check_bundle(folder).num_steps == len(made.job.document["steps"])
        if not number % WATCHED:
            outputs = run_paranoid(folder, made.job.batch[0], options=QUICK).result.outputs
            made.assert_gives(outputs)
