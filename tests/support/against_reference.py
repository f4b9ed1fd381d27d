"""Compiles random models, runs the C, and compares with LiteRT or TensorFlow Lite Micro."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from numpy.typing import NDArray

from bytewright.diagnostics import CompileError
from bytewright.ir.border import Io
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import NOTHING_ASKED, Options
from bytewright.pipeline import compile_model
from bytewright.target.registry import load_target
from support.many_models import Job, build
from support.random_models import RandomModel
from support.reference import LiteRt, TfLiteMicro

FLOAT_TOLERANCE = 1e-5
_EXAMPLES_A_SEED = 5


def drawn(strategy: SearchStrategy[RandomModel], count: int, first_seed: int = 0) -> list[RandomModel]:
    """Examples of a strategy, the same each time, from many seeds, because those of one seed resemble each other."""
    found: list[RandomModel] = []
    number = first_seed
    while len(found) < count:
        own = _examples(strategy, number)
        found += own[1:] or own  # the first one of a seed is always the least
        number += 1
    return found[:count]


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
    flags: Sequence[str] = ("-O1",),
    compiler: str = "gcc",
    num_inputs: int = 4,
    io: Io = Io.CALLER,
    options: Options = NOTHING_ASKED,
) -> None:
    """Every model compiles, builds without a warning, and computes what the reference does.

    The first two inputs are the extremes. `options` are what else is asked for, beside numerics and io.
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
    try:
        results = build(jobs, folder / "build", flags, compiler=compiler).run()
    except RuntimeError as error:
        name = re.search(r"running m(\d+)|/m(\d+)_all", str(error))
        guilty = models[int(name.group(1) or name.group(2))].description if name else "unknown"
        raise AssertionError(f"{guilty}\n{error}") from error
    for model, job, outputs in zip(models, jobs, results, strict=True):
        reference = LiteRt(model.content) if numerics is Numerics.LITERT_REF else TfLiteMicro(model.content)
        for inputs, found in zip(job.batch, outputs, strict=True):
            wanted = [np.array(array) for array in reference.run(*inputs)]
            problems += [f"{model.description}: {text}" for text in differences(found, wanted)]
    assert not problems, "\n".join(problems[:10])


def differences(found: Sequence[NDArray[Any]], wanted: Sequence[NDArray[Any]]) -> list[str]:
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
            limit = FLOAT_TOLERANCE * float(np.abs(reference).max(initial=0.0))
            if not worst <= limit:
                problems.append(f"output {index}: off by {worst}, {limit} is allowed")
    return problems
