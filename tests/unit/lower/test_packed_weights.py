"""Every weight of a layer is in what its kernel has packed, whatever the instruction set: none is lost or changed.

Weights are numbered: in several lowerings each is a digit of its number, so bytes of what is packed say whose they are.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bytewright import ir
from bytewright.compiler.pipeline import compile_model
from bytewright.lower.lower_graph import lower_graph
from bytewright.options import Optimize
from bytewright.target import load_target
from support.digits_bundle import DIGITS

# Digits are 8 to 17: what fills up is 0, none fits 4 bits, no sum of two packed weights carries, and sums of all taps
# keep to 16 bits.
LEAST, BASE, NUM_DIGITS = 8, 10, 4


@cache
def graph_of(model: Path) -> ir.Module:
    """The graph as lowering is given it."""
    found: dict[str, ir.Module] = {}
    compile_model(model, load_target("host"), after_pass=lambda name, module: found.update({name: module}))
    return found["fold_constant_channels"]


def weights_of(module: ir.Module) -> list[str]:
    """Constants of int8 that are weights of layers."""
    inputs = {node.inputs[1] for node in module.graph.nodes if len(node.inputs) == 3}
    return [c.name for c in module.constants if c.name in inputs and c.data.dtype is ir.DType.I8]


def packed(
    module: ir.Module, target: str, optimize: Optimize, values: dict[str, NDArray[np.int8]]
) -> dict[str, bytes]:
    """What becomes of weights with these values, by the names of buffers."""
    constants = tuple(
        replace(c, data=ir.TensorData.from_array(values[c.name], ir.DType.I8)) if c.name in values else c
        for c in module.constants
    )
    lowered = lower_graph(replace(module, constants=constants), load_target(target), {}, optimize)
    return {
        constant.buffer.name: constant.data.content
        for constant in lowered.constant_buffers
        if constant.buffer.name.endswith("/weights")
    }


@pytest.mark.parametrize("optimize", [Optimize.BALANCED, Optimize.SPEED, Optimize.SIZE])
@pytest.mark.parametrize(
    "target", ["host", "mps3-an547", "mps2-an386", "aarch64", "x86-64-v3", "x86-64-v4-vnni"]
)
def test_every_weight_is_in_what_is_packed(target: str, optimize: Optimize) -> None:
    module = graph_of(DIGITS)
    shapes = {c.name: c.data.shape for c in module.constants}
    names = weights_of(module)
    sizes = [int(np.prod(shapes[name])) for name in names]
    begins = np.cumsum([0, *sizes])
    assert len(names) == 5
    assert begins[-1] < BASE**NUM_DIGITS
    numbers = {name: begins[i] + np.arange(sizes[i]) for i, name in enumerate(names)}  # each is there once
    digits = [
        packed(
            module,
            target,
            optimize,
            {
                n: (LEAST + own // step % BASE).astype(np.int8).reshape(shapes[n])
                for n, own in numbers.items()
            },
        )
        for step in BASE ** np.arange(NUM_DIGITS)
    ]
    assert all(each.keys() == digits[0].keys() for each in digits)
    assert len(digits[0]) == len(names)
    for buffer, name in zip(digits[0], names, strict=True):
        found = np.array([np.frombuffer(each[buffer], np.uint8) for each in digits]).astype(np.int64)
        is_weight = found[0] > 0
        assert ((found > 0) == is_weight).all(), buffer  # whatever is no weight is zero
        own = (found[:, is_weight] - LEAST).T @ BASE ** np.arange(NUM_DIGITS)
        np.testing.assert_array_equal(np.unique(own), numbers[name], err_msg=buffer)
