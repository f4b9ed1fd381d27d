"""NEON's kernels in QEMU's user mode: random layers and networks equal LiteRT, by gcc and clang."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from support.matrix_products import random_product
from support.random_networks import random_convolution, random_network, random_reduction, random_transposed
from support.tiers import some
from support.user_mode import num_equal_to_reference

COMPILERS = ("gcc", "clang")


@pytest.mark.parametrize("compiler", some(COMPILERS, every=2))
def test_random_layers(tmp_path: Path, compiler: str) -> None:
    layers = [
        random_convolution(number, ("int8", "int16")[number // 3 % 2])
        for number in some(range(31000, 31040), every=3)
    ]
    networks = [random_network(number, "int8") for number in some(range(32000, 32006), every=3)]
    assert num_equal_to_reference([*layers, *networks], tmp_path, "aarch64", "neon.", compiler) >= 2


@pytest.mark.parametrize(("dtype", "compiler"), some(product(["int8", "float32"], COMPILERS), every=2))
def test_lanes(tmp_path: Path, dtype: str, compiler: str) -> None:
    """Pools, means, products of matrices, and depthwise convolutions among others."""
    found = [random_reduction(number, dtype) for number in some(range(33000, 33012), every=3)]
    found += [random_product(number, dtype) for number in some(range(35000, 35012), every=3)]
    found += [random_convolution(number, dtype) for number in some(range(34000, 34012), every=3)]
    found += [random_transposed(number, dtype) for number in some(range(36000, 36012), every=6)]
    assert num_equal_to_reference(found, tmp_path, "aarch64", "neon.", compiler) >= 1
