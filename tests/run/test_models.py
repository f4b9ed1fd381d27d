"""The MLPerf Tiny models on the host: exact against LiteRT's reference kernels and TensorFlow Lite Micro."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.ops.arithmetic.numerics import Numerics
from bytewright.target.registry import load_target
from support.reference import LiteRt, TfLiteMicro
from support.shared_models import (
    AD01,
    BOARD,
    FLOAT,
    HOST,
    INT8,
    KWS,
    TFLM_CHECKSUMS,
    WITH_SOFTMAX,
    Array,
    bundle,
    compile_seconds,
    fnv1a_32,
    model_content,
    model_path,
    ramp,
    random_inputs,
)
from support.tiers import THOROUGH, some

FAST = BuildOptions(flags=("-O3", "-march=native"))
OPTIMISED = BuildOptions(compiler="gcc")
OTHER_BUILDS = {
    "gcc-O2": OPTIMISED,
    "clang-O2": BuildOptions(compiler="clang"),
    "gcc-sanitized": BuildOptions(flags=("-O0",), sanitize=True, compiler="gcc"),
}
CLANG_SANITIZED = BuildOptions(flags=("-O0",), sanitize=True, compiler="clang")
NUM_INPUTS = 100 if THOROUGH else 10
COMPILE_SECONDS = 5.0
TOLERANCE = 1e-5
VARIANTS = [
    *(pytest.param(name, False, id=name) for name in (*INT8, *FLOAT)),
    *(pytest.param(name, True, id=f"{name}-logits") for name in WITH_SOFTMAX),
]


@cache
def expected_outputs(name: str, logits: bool, count: int, seed: int) -> list[Array]:
    reference = LiteRt(model_content(name, logits))
    return [np.array(reference.run(*inputs)[0]) for inputs in random_inputs(name, count, seed)]


def check(actual: Array, expected: Array) -> None:
    """Equal for int8; for floats max|y - r| <= 1e-5 * max|r|."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype == np.float32:
        error = float(np.abs(actual.astype(np.float64) - expected).max())
        assert error <= TOLERANCE * float(np.abs(expected).max())
    else:
        np.testing.assert_array_equal(actual, expected)


def check_batch(folder: Path, name: str, logits: bool, count: int, options: BuildOptions) -> None:
    batch = random_inputs(name, count, seed=11)
    result = run_batch(folder, batch, options=options)
    expected = expected_outputs(name, logits, count, seed=11)
    for outputs, reference in zip(result.outputs, expected, strict=True):
        assert len(outputs) == 1
        check(outputs[0], reference)


@pytest.mark.parametrize(("name", "logits"), VARIANTS)
def test_random_inputs_give_the_references_outputs(name: str, logits: bool) -> None:
    check_batch(
        bundle(name, load_target(HOST), logits=logits),
        name,
        logits,
        NUM_INPUTS,
        OPTIMISED if logits else FAST,
    )


@pytest.mark.parametrize(("name", "logits"), VARIANTS)
def test_the_inputs_tell_outputs_apart(name: str, logits: bool) -> None:
    """The comparison above would mean little if every input gave one output."""
    outputs = expected_outputs(name, logits, NUM_INPUTS, seed=11)
    assert len({output.tobytes() for output in outputs}) > NUM_INPUTS // (4 if logits else 20)


@pytest.mark.parametrize(("name", "build"), some(product([*INT8, *FLOAT], OTHER_BUILDS), every=4))
def test_other_compilers_and_sanitizers(name: str, build: str) -> None:
    options = OTHER_BUILDS[build]
    check_batch(bundle(name, load_target(HOST)), name, False, 2 if options.sanitize else 10, options)


@pytest.mark.parametrize("name", [KWS, "ad01_fp32"])
def test_the_other_compilers_sanitizers(name: str) -> None:
    check_batch(bundle(name, load_target(HOST)), name, False, 2, CLANG_SANITIZED)


@pytest.mark.parametrize("name", [KWS, AD01])
def test_code_for_the_board_runs_on_the_host(name: str) -> None:
    sanitized = BuildOptions(flags=("-O0",), sanitize=True)
    check_batch(bundle(name, load_target(BOARD)), name, False, 2, sanitized)


@pytest.mark.parametrize("name", INT8)
def test_checksums_of_tflite_micro(name: str) -> None:
    (shape,) = [inputs[0].shape for inputs in random_inputs(name, 1, seed=0)]
    folder = bundle(name, load_target(HOST), Numerics.TFLM)
    result = run_batch(folder, [[ramp(shape)], [np.zeros(shape, np.int8)]], options=OPTIMISED)
    assert tuple(fnv1a_32(outputs[0].tobytes()) for outputs in result.outputs) == TFLM_CHECKSUMS[name]


@pytest.mark.parametrize(
    ("name", "logits"),
    [
        *(pytest.param(name, False, id=name) for name in INT8),
        *(pytest.param(name, True, id=f"{name}-logits") for name in INT8 if name in WITH_SOFTMAX),
    ],
)
def test_random_inputs_give_the_outputs_of_tflite_micro(name: str, logits: bool) -> None:
    batch = random_inputs(name, 20, seed=12)
    micro = TfLiteMicro(model_content(name, logits))
    result = run_batch(bundle(name, load_target(HOST), Numerics.TFLM, logits), batch, options=OPTIMISED)
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], micro.run(*inputs)[0])


def test_the_kernel_sets_differ_where_they_should() -> None:
    """ad01's outputs differ between the two sets on every input: neither test above passes by accident."""
    batch = random_inputs(AD01, 5, seed=12)
    litert, micro = (
        run_batch(bundle(AD01, load_target(HOST), numerics), batch, options=OPTIMISED).outputs
        for numerics in (Numerics.LITERT_REF, Numerics.TFLM)
    )
    assert all((a[0] != b[0]).any() for a, b in zip(litert, micro, strict=True))


@pytest.mark.parametrize("name", [*INT8, *FLOAT])
def test_compiling_takes_seconds(name: str, record_property: pytest.RecordProperty) -> None:
    seconds = compile_seconds(name, load_target(HOST))
    record_property("seconds", round(seconds, 3))
    print(f"{name}: compiled in {seconds:.2f} s")
    assert seconds <= COMPILE_SECONDS


COMPILE_ALL = """
import hashlib, sys
from pathlib import Path
from bytewright.compiler.pipeline import compile_model
from bytewright.target.registry import load_target
for target in ("host", "mps3-an547"):
    for path in sys.argv[1:]:
        for name, content in compile_model(Path(path), load_target(target)).files.items():
            print(target, path, name, hashlib.sha256(content).hexdigest())
"""


def test_the_same_bytes_under_any_hash_seed() -> None:
    paths = [str(model_path(name)) for name in some((*INT8, *FLOAT), every=3)]
    listings: list[str] = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", COMPILE_ALL, *paths],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        listings.append(done.stdout)
    assert listings[0].count("\n") == 2 * 8 * len(paths)
    assert listings[0] == listings[1]
