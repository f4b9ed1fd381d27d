"""What files may cost to compile: layers of integer weights under floats, by their number and not by their scales."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bytewright.diagnostics import CompileError
from bytewright.frontends.tflite.importer import import_content
from tflite_writer import OPTIONAL, ModelBuilder


def steps(count: int) -> bytes:
    """One layer again and again, as a recurrent network is that is written out."""
    builder = ModelBuilder()
    weights = np.random.default_rng(0).integers(-127, 128, (64, 64)).astype(np.int8)
    w = builder.constant("w", weights, scale=np.linspace(0.01, 0.02, 64))
    values = [builder.tensor(f"x{i}", (1, 64), "float32") for i in range(count + 1)]
    for source, result in itertools.pairwise(values):
        builder.operator("FULLY_CONNECTED", [source, w, OPTIONAL], [result])
    return builder.build(values[:1], values[-1:])


def test_hundreds_of_hybrid_layers_are_taken() -> None:
    assert import_content(steps(300), "m.tflite").graph.nodes


def test_more_than_a_file_of_their_size_may_cost_are_refused() -> None:
    with pytest.raises(CompileError) as caught:
        import_content(steps(600), "m.tflite")
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["BW114"]
