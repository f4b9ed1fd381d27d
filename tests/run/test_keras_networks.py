"""Ordinary networks of Keras 3, as a tutorial converts them, compile and equal LiteRT's reference.

The files were written by `tools/keras_networks.py`, with TensorFlow's converter: int8, int8 with float edges and
float32, each with its batch open and with a batch of one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.against_reference import assert_equals_reference
from support.model_files import DATA, model_files
from support.tiers import some

FILES = model_files(DATA / "keras")
NETWORKS = sorted({file.description.split("-")[0] for file in FILES})


def test_all_networks_are_here_in_all_forms() -> None:
    assert len(NETWORKS) == 22
    assert len(FILES) == 6 * len(NETWORKS)


@pytest.mark.parametrize("network", NETWORKS)
def test_network(network: str, tmp_path: Path) -> None:
    files = [file for file in FILES if file.description.split("-")[0] == network]
    assert_equals_reference(some(files, every=2), tmp_path)
