"""Kernels of RISC-V's vectors in QEMU's user mode: random layers and networks equal LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bytewright.execute.build import BuildOptions
from bytewright.execute.run import run_batch
from bytewright.target import load_target
from bytewright.target.isa import risc_v
from bytewright.target.isa.isa import Emulator
from support.matrix_products import random_product
from support.random_networks import random_convolution, random_network, random_reduction, random_transposed
from support.reference import LiteRt
from support.shared_models import KWS, bundle, model_content, random_inputs
from support.tiers import some
from support.user_mode import num_equal_to_reference

COMPILER = "clang-19"


def test_random_layers(tmp_path: Path) -> None:
    layers = [
        random_convolution(number, ("int8", "int16")[number // 4 % 2])
        for number in some(range(31000, 31040), every=4)
    ]
    networks = [random_network(number, "int8") for number in some(range(32000, 32006), every=3)]
    assert num_equal_to_reference([*layers, *networks], tmp_path, "rv64gcv", "rvv.", COMPILER) >= 2


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_lanes(tmp_path: Path, dtype: str) -> None:
    """Pools, means, products of matrices, and depthwise convolutions among others."""
    found = [random_reduction(number, dtype) for number in some(range(33000, 33012), every=4)]
    found += [random_product(number, dtype) for number in some(range(35000, 35012), every=4)]
    found += [random_convolution(number, dtype) for number in some(range(34000, 34012), every=4)]
    found += [random_transposed(number, dtype) for number in some(range(36000, 36012), every=6)]
    assert num_equal_to_reference(found, tmp_path, "rv64gcv", "rvv.", COMPILER) >= 1


@pytest.mark.parametrize("num_bits", [128, 512])
def test_kws_on_registers_of_any_length(num_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many instructions, of which there are at most a sixth of those of plain C: 12,837,100 by the same compiler."""

    def emulator(program: str, processor: str) -> Emulator:
        assert "vlen=128" in processor
        return Emulator(program, processor.replace("vlen=128", f"vlen={num_bits}"))

    monkeypatch.setattr(risc_v, "Emulator", emulator)
    batch = random_inputs(KWS, 2, 17)
    result = run_batch(
        bundle(KWS, load_target("rv64gcv")), batch, on="qemu", options=BuildOptions(compiler=COMPILER)
    )
    reference = LiteRt(model_content(KWS))
    for inputs, outputs in zip(batch, result.outputs, strict=True):
        np.testing.assert_array_equal(outputs[0], reference.run(*inputs)[0])
    assert max(result.instructions) <= 900_000
