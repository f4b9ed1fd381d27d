"""Kernels of Arm's DSP extension on an emulated Cortex-M4: random layers, exact by gcc and clang at every level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.bundle.write import write_bundle
from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.pipeline import compile_model
from bytewright.target.registry import load_target
from support.random_networks import random_convolution
from support.reference import LiteRt
from support.tiers import some

LEVELS = ("-O1", "-O2", "-O3", "-Os")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_random_convolutions_on_the_board(tmp_path: Path, compiler: str) -> None:
    for number in some(range(24000, 24016), every=3):
        model = random_convolution(number, "int8")
        path = tmp_path / f"m{number}.tflite"
        path.write_bytes(model.content)
        write_bundle(compile_model(path, load_target("mps2-an386")).files, tmp_path / f"b{number}")
        options = BuildOptions(flags=(LEVELS[number % 4],), compiler=None if compiler == "gcc" else compiler)
        batch = [model.inputs(seed) for seed in range(4)]
        found = run_batch(tmp_path / f"b{number}", batch, on="qemu", options=options).outputs
        reference = LiteRt(model.content)
        for inputs, outputs in zip(batch, found, strict=True):
            for output, wanted in zip(outputs, reference.run(*inputs), strict=True):
                assert np.array_equal(output, np.array(wanted)), model.description
