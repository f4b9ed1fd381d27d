"""NEON's kernels in QEMU's user mode: random layers and networks equal LiteRT, by gcc and clang."""

from __future__ import annotations

from pathlib import Path

import pytest

import bytewright
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from support.against_reference import differences
from support.random_models import RandomModel
from support.random_networks import random_convolution, random_network, random_reduction
from support.reference import LiteRt
from support.tiers import some

LEVELS = ("-O1", "-O2", "-O3", "-Os")


def is_equal_to_reference(model: RandomModel, folder: Path, number: int, compiler: str) -> bool:
    """Runs a model and compares, if there is a kernel of NEON's in it; whether there is."""
    path = folder / f"m{number}.tflite"
    path.write_bytes(model.content)
    compiled = bytewright.compile(path, target="aarch64")
    if not any(step.template.startswith("neon.") for step in compiled.plan.steps):
        return False
    batch = [model.inputs(i) for i in range(4)]
    how = BuildOptions(
        flags=(LEVELS[number % len(LEVELS)],), compiler=None if compiler == "gcc" else compiler
    )
    found = run_batch(compiled.write(folder / f"b{number}"), batch, on="qemu", options=how).outputs
    reference = LiteRt(model.content)
    for inputs, own in zip(batch, found, strict=True):
        assert not differences(own, list(reference.run(*inputs))), (model.description, how.flags)
    return True


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_layers(tmp_path: Path, compiler: str) -> None:
    layers = [random_convolution(number, "int8") for number in some(range(31000, 31040), every=3)]
    networks = [random_network(number, "int8") for number in some(range(32000, 32006), every=3)]
    models = enumerate([*layers, *networks])
    num_run = sum(is_equal_to_reference(model, tmp_path, number, compiler) for number, model in models)
    assert num_run >= 2


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_lanes(tmp_path: Path, dtype: str, compiler: str) -> None:
    """Pools, means, and depthwise convolutions among others."""
    found = [random_reduction(number, dtype) for number in some(range(33000, 33012), every=3)]
    found += [random_convolution(number, dtype) for number in some(range(34000, 34012), every=3)]
    models = enumerate(found)
    num_run = sum(is_equal_to_reference(model, tmp_path, number, compiler) for number, model in models)
    assert num_run >= 1
