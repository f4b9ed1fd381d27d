"""Chains of element-wise operators, longer than one kernel holds, against LiteRT."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.against_reference import assert_equals_reference
from support.costly_models import CHANNELS, EXTENT, additions_of_input, doublings, elementwise_chain
from support.random_models import RandomModel

IMAGE = (1, EXTENT, EXTENT, CHANNELS)


@pytest.mark.parametrize("target", ["host", "mps3-an547"])
def test_chains_that_are_cut_into_kernels(target: str, tmp_path: Path) -> None:
    models = [
        RandomModel(additions_of_input(90), "90 additions of the input", (IMAGE,), "int8"),
        RandomModel(doublings(20), "20 doublings", ((1, 8),), "float32"),
        RandomModel(elementwise_chain(300, "RELU6"), "300 clamps", ((1, 8),), "float32"),
    ]
    assert_equals_reference(models, tmp_path, target=target)
