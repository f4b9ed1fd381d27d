"""The unit-test data of CMSIS-NN, read from a copy of its repository: every model that says the same gives the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.diagnostics import CompileError
from bytewright.execute.run import run_batch
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.options import Options
from bytewright.target.registry import load_target
from support.cmsis_vectors import VARIABLE, Case, InexpressibleError, Vector, cases_of, vectors
from support.compilers import QUICK, QUICK_COMPILER, QUICK_FLAGS
from support.exact_scales import exact_quotient, exact_scales, quantized_multiplier
from support.many_models import Job, build
from support.tiers import some

pytestmark = pytest.mark.run

_COPY = os.environ.get(VARIABLE)
VECTORS = vectors(Path(_COPY)) if _COPY else []
NEEDS_COPY = pytest.mark.skipif(
    not VECTORS, reason=f"{VARIABLE} does not name a copy of github.com/ARM-software/CMSIS-NN"
)
OPTIONS = Options(numerics=Numerics.TFLM)
# Data that no file holds, and what is refused for its numbers.
NO_FILE = {
    "lstm_1_s16": "no power of two",
    "lstm_2_s16": "no power of two",
    "lstm_one_time_step_s16": "no power of two",
    "lstm_stateful_batch_major_multibatch_s16": "no power of two",
    "lstm_stateful_batch_major_multibatch": "no scale of float32",
}
REFUSED = {
    "fully_connected_int4_6": "has zero point 128, which is no int8 value",
    "fully_connected_w_zp": "weights have a zero point that is not 0",
    "int16xint8xint32_1": "the accumulator of channel 2 can reach 4205314048, beyond 32 bits",
    "int16xint8xint32_2": "the accumulator of channel 1 can reach 4209606656, beyond 32 bits",
}


@NEEDS_COPY
def test_all_folders_of_integers_are_read() -> None:
    names = {vector.name for vector in VECTORS}
    assert len(names) >= 208
    assert names >= {*NO_FILE, *REFUSED}
    kinds = ("int4", "int16", "s16", "lstm", "svdf", "transpose_conv")
    assert [kind for kind in kinds if sum(kind in name for name in names) < 6] == []


@NEEDS_COPY
def test_vectors_are_equal(tmp_path: Path) -> None:
    jobs: list[Job] = []
    wanted: list[tuple[str, Case]] = []
    for vector in some(VECTORS, every=14):
        for case in _expressed(vector):
            path = tmp_path / f"m{len(jobs)}.tflite"
            path.write_bytes(case.content)
            compiled = compile_model(path, load_target("host"), OPTIONS)
            if compiled.plan.states:
                folder = tmp_path / vector.name
                write_bundle(compiled.files, folder)
                found = run_batch(folder, case.batch, keep_state=True, options=QUICK).outputs
                np.testing.assert_array_equal(found[-1][0], case.wanted, vector.name)
                continue
            jobs.append(Job(compiled.files, compiled.document, case.batch))
            wanted.append((vector.name, case))
    results = build(jobs, tmp_path / "build", QUICK_FLAGS, compiler=QUICK_COMPILER).run()
    for (name, case), found in zip(wanted, results, strict=True):
        np.testing.assert_array_equal(found[-1][0], case.wanted, name)


def _expressed(vector: Vector) -> list[Case]:
    """The models of a folder; none of those that are listed, and what no file holds must be for the reason listed."""
    if vector.name in NO_FILE:
        with pytest.raises(InexpressibleError, match=NO_FILE[vector.name]):
            cases_of(vector)
        return []
    return [] if vector.name in REFUSED else cases_of(vector)


@NEEDS_COPY
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_for_its_numbers(name: str, tmp_path: Path) -> None:
    (vector,) = [vector for vector in VECTORS if vector.name == name]
    (case,) = cases_of(vector)
    (tmp_path / "net.tflite").write_bytes(case.content)
    with pytest.raises(CompileError) as caught:
        compile_model(tmp_path / "net.tflite", load_target("host"), OPTIONS)
    assert REFUSED[name] in str(caught.value)


def test_scales_are_found_wherever_there_are_some() -> None:
    random = np.random.default_rng(4)
    before, after = (np.float32(value) for value in random.uniform(0.01, 0.1, 2))
    weights = random.uniform(0.001, 0.01, 9).astype(np.float32)
    multipliers, shifts = quantized_multiplier(float(before) * weights.astype(np.float64) / float(after))
    found = exact_scales(multipliers.tolist(), shifts.tolist())
    assert found is not None
    own, by_channel, result = found
    again = quantized_multiplier(own * np.array(by_channel) / result)
    np.testing.assert_array_equal(again, (multipliers, shifts))
    assert all(value == float(np.float32(value)) for value in (own, *by_channel, result))
    changed = [*multipliers[:-1].tolist(), int(multipliers[-1]) ^ 64]
    assert exact_scales(changed, shifts.tolist()) is None


def test_a_quotient_is_exact() -> None:
    for multiplier, shift in ((1374389535, -7), (2**30, 0), (1317000003, -20)):
        found = exact_quotient(multiplier, shift)
        assert found is not None
        first, second = found
        assert quantized_multiplier(np.array(first / second)) == (multiplier, shift)
        assert found == (float(np.float32(first)), float(np.float32(second)))
    assert (
        exact_quotient(2**31 - 1, 3) is None
    )  # nearer to one than any two float32 numbers are to each other
