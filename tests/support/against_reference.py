"""Compiles random models, runs the C, and compares with LiteRT or TensorFlow Lite Micro."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import NOTHING_ASKED, Options
from bytewright.target.registry import load_target
from support.compilers import QUICK_COMPILER, QUICK_FLAGS
from support.many_models import Job, build
from support.random_draft import FLOAT_TOLERANCE
from support.random_models import RandomModel
from support.reference import LiteRt, TfLiteMicro
from support.tiers import share

# exp(-x) loses x times the precision of x: what a closed gate leaves of a value (e^-40) is right to fewer digits
CLOSED_GATE = 1e-16
_EXAMPLES_A_SEED = 5


def drawn(strategy: SearchStrategy[RandomModel], count: int, first_seed: int = 0) -> list[RandomModel]:
    """Examples of a strategy, the same each time, from many seeds, because those of one seed resemble each other."""
    return list(islice(draws(strategy, first_seed), count))


def draws(strategy: SearchStrategy[RandomModel], first_seed: int = 0) -> Iterator[RandomModel]:
    """The examples of `drawn`, made as they are asked for."""
    for number in count_from(first_seed):
        own = _examples(strategy, number)
        yield from own[1:] or own  # the first one of a seed is always the least


def _examples(strategy: SearchStrategy[RandomModel], number: int) -> list[RandomModel]:
    found: list[RandomModel] = []

    @seed(number)
    @settings(
        max_examples=_EXAMPLES_A_SEED,
        phases=[Phase.generate],
        database=None,
        derandomize=False,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(model=strategy)
    def collect(model: RandomModel) -> None:
        found.append(model)

    collect()
    return found


def assert_equals_reference(
    models: Sequence[RandomModel],
    folder: Path,
    *,
    target: str = "host",
    numerics: Numerics = Numerics.LITERT_REF,
    flags: Sequence[str] = QUICK_FLAGS,
    compiler: str = "",
    every: int = 1,
    num_inputs: int = 4,
    io: Io = Io.CALLER,
    options: Options = NOTHING_ASKED,
) -> None:
    """Every model compiles, builds without a warning, and computes what the reference does.

    The first two inputs are the extremes. Without flags models are built as is quickest, by a compiler that warns of
    nothing; with flags and `every`, one model in so many by these flags, another one each day, and the others quickly.
    `options` are what else is asked for, beside numerics and io.
    """
    folder.mkdir(parents=True, exist_ok=True)
    asked = replace(options, numerics=numerics, io=io)
    jobs: list[Job] = []
    problems: list[str] = []
    for index, model in enumerate(models):
        path = folder / f"m{index}.tflite"
        path.write_bytes(model.content)
        try:
            compiled = compile_model(path, load_target(target), asked)
        except CompileError as error:
            problems.append(f"{model.description}: refused: {error}")
            continue
        batch = [model.inputs(number) for number in range(num_inputs)]
        jobs.append(Job(compiled.files, compiled.document, batch))
    assert not problems, "\n".join(problems)
    slow = set(share(range(len(jobs)), every))
    quick = [index for index in range(len(jobs)) if index not in slow]
    is_quick = compiler == "" and tuple(flags) == QUICK_FLAGS
    results: dict[int, list[list[NDArray[Any]]]] = {}
    for part, own_compiler, own_flags in (
        (sorted(slow), QUICK_COMPILER if is_quick else compiler or "gcc", flags),
        (quick, QUICK_COMPILER, QUICK_FLAGS),
    ):
        own = [jobs[index] for index in part]
        found = _run(models, own, folder / f"build_{own_compiler}", own_compiler, own_flags) if own else []
        results |= dict(zip(part, found, strict=True))
    for index, (model, job) in enumerate(zip(models, jobs, strict=True)):
        reference = LiteRt(model.content) if numerics is Numerics.LITERT_REF else TfLiteMicro(model.content)
        for inputs, outputs in zip(job.batch, results[index], strict=True):
            wanted = [np.array(array) for array in reference.run(*inputs)]
            problems += [
                f"{model.description}: {text}" for text in differences(outputs, wanted, model.tolerance)
            ]
    assert not problems, "\n".join(problems[:10])


def _run(
    models: Sequence[RandomModel], jobs: Sequence[Job], folder: Path, compiler: str, flags: Sequence[str]
) -> list[list[list[NDArray[Any]]]]:
    """The outputs of some of the models; a failure names the one that it is of."""
    try:
        return build(jobs, folder, flags, compiler=compiler).run()
    except RuntimeError as error:
        name = re.search(r"running m(\d+)|/m(\d+)_all", str(error))
        guilty = models[int(name.group(1) or name.group(2))].description if name else "unknown"
        raise AssertionError(f"{guilty}\n{error}") from error


def differences(
    found: Sequence[NDArray[Any]], wanted: Sequence[NDArray[Any]], tolerance: float = FLOAT_TOLERANCE
) -> list[str]:
    """What is wrong with the outputs of one inference."""
    problems: list[str] = []
    for index, (own, reference) in enumerate(zip(found, wanted, strict=True)):
        if own.shape != reference.shape or own.dtype != reference.dtype:
            problems.append(f"output {index}: {own.dtype}{own.shape}, not {reference.dtype}{reference.shape}")
        elif reference.dtype.kind != "f":
            wrong = own != reference
            if wrong.any():
                first = f"{own[wrong][:4].tolist()}, not {reference[wrong][:4].tolist()}"
                problems.append(f"output {index}: {int(wrong.sum())} of {own.size} differ: {first}")
        else:
            worst = float(np.abs(own.astype(np.float64) - reference).max(initial=0.0))
            limit = tolerance * float(np.abs(reference).max(initial=CLOSED_GATE))
            if not worst <= limit:
                problems.append(f"output {index}: off by {worst}, {limit} is allowed")
    return problems
