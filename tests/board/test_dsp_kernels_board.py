"""Kernels of Arm's DSP extension on an emulated Cortex-M4: random layers, exact by gcc and clang at every level."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.compiler.pipeline import compile_model
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.target.registry import load_target
from support.heavy_weights import heavy_convolution
from support.matrix_products import random_product
from support.random_models import RandomModel
from support.random_networks import random_convolution, random_reduction, random_transposed
from support.reference import LiteRt
from support.tiers import some, turn

LEVELS = ("-O1", "-O2", "-O3", "-Os")


def assert_equal_on_board(models: Iterable[RandomModel], folder: Path, compiler: str) -> None:
    """Each by another level of the compiler, with four inputs."""
    for number, model in enumerate(models):
        path = folder / f"m{number}.tflite"
        path.write_bytes(model.content)
        write_bundle(compile_model(path, load_target("mps2-an386")).files, folder / f"b{number}")
        level = LEVELS[(number + turn()) % 4]
        options = BuildOptions(flags=(level,), compiler=None if compiler == "gcc" else compiler)
        batch = [model.inputs(seed) for seed in range(4)]
        found = run_batch(folder / f"b{number}", batch, on="qemu", options=options).outputs
        reference = LiteRt(model.content)
        for inputs, outputs in zip(batch, found, strict=True):
            for output, wanted in zip(outputs, reference.run(*inputs), strict=True):
                assert np.array_equal(output, np.array(wanted)), (model.description, level)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_convolutions_on_the_board(tmp_path: Path, compiler: str) -> None:
    numbers = some(range(24000, 24024), every=6)
    models = [random_convolution(number, dtype) for number in numbers for dtype in ("int8", "int16")]
    assert_equal_on_board(models, tmp_path, compiler)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_transposed_convolutions_and_products(tmp_path: Path, compiler: str) -> None:
    numbers = some(range(26000, 26024), every=12)
    written = (random_transposed, random_product)
    models = [model(number, dtype) for number in numbers for dtype in ("int8", "int16") for model in written]
    assert_equal_on_board(models, tmp_path, compiler)


HEAVY = (
    heavy_convolution(1, (2, 3, 520), 1, 5),
    heavy_convolution(2, (1, 2, 1024), 1, 4),
    heavy_convolution(3, (3, 3, 130), 3, 2),
    heavy_convolution(4, (2, 2, 97), 5, 1),
)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sums_that_leave_16_bits(tmp_path: Path, compiler: str) -> None:
    """They are summed up in parts: the sum of two channels at once would leave 32 bits."""
    assert_equal_on_board(HEAVY, tmp_path, compiler)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_reductions_on_the_board(tmp_path: Path, compiler: str) -> None:
    numbers = some(range(25000, 25024), every=4)
    assert_equal_on_board([random_reduction(number, "int8") for number in numbers], tmp_path, compiler)
