"""The bounds of `make bench-memory`: by hand, by simulation of every byte, and as the design's table has them."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mobilenet_v2 import mobilenet_v2
from support.shared_models import AD01, KWS, RESNET8, VWW, model_path
from tflite_writer import ModelBuilder


def _loaded() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "memory_bounds.py"
    specification = importlib.util.spec_from_file_location("memory_bounds", path)
    assert specification is not None
    assert specification.loader is not None
    module = sys.modules["memory_bounds"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


bounds = _loaded()


def figures(content: bytes, *, with_ports: bool) -> tuple[int, int, int]:
    network = bounds.read_network(content)
    return tuple(
        bound(network, with_ports=with_ports) for bound in (bounds.plain, bounds.overlap, bounds.rows)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "workspace", "caller"),
    [
        (KWS, (16000, 8448, 8448), (16000, 8448, 8448)),
        (VWW, (55296, 36880, 29952), (55296, 36880, 14208)),
        (RESNET8, (49152, 33312, 18944), (49152, 33312, 15872)),
        (AD01, (768, 768, 768), (256, 256, 256)),
        ("1.0 224", (1505280, 1204320, 279552), (1505280, 1204320, 144704)),
        ("0.35 144", (311040, 248880, 84128), (311040, 248880, 33280)),
    ],
)
def test_as_the_design_has_them(
    name: str, workspace: tuple[int, int, int], caller: tuple[int, int, int]
) -> None:
    """They were computed there by another program."""
    width, _, size = name.partition(" ")
    content = mobilenet_v2(width, int(size)) if size else model_path(name).read_bytes()
    assert figures(content, with_ports=True) == workspace
    assert figures(content, with_ports=False) == caller


def chain(*kinds: str, shape: tuple[int, int, int] = (20, 4, 2)) -> bytes:
    """An image through convolutions of three by three ("conv"), and additions of what was before ("add")."""
    builder = ModelBuilder()
    height, width, depth = shape
    recent = before = first = builder.tensor("x", [1, *shape], "int8", scale=1.0)
    weights = builder.constant("w", np.ones((depth, 3, 3, depth), np.int8), scale=1.0)
    bias = builder.constant("b", np.zeros(depth, np.int32), scale=1.0)
    for number, kind in enumerate(kinds):
        if kind == "mean":
            result = builder.tensor("y", [1, depth], "int8", scale=1.0)
            builder.operator("MEAN", [recent, builder.constant("a", np.array([1, 2], np.int32))], [result])
            return builder.build([first], [result])
        result = builder.tensor(f"t{number}", [1, height, width, depth], "int8", scale=1.0)
        if kind == "conv":
            builder.operator("CONV_2D", [recent, weights, bias], [result])
        else:
            builder.operator("ADD", [recent, before], [result])
        before, recent = recent, result
    return builder.build([first], [recent])


def test_a_chain_by_hand() -> None:
    """Images of 160 bytes, rows of 8: a window of three rows holds back a row, the pixel before, and its own."""
    content = chain("conv", "conv", "conv", "mean")
    # No segment is better: of all but the first, a whole image and two rings of three rows would be left.
    assert figures(content, with_ports=False) == (320, 160 + 8 + 2 + 2, 172)
    # With sums the last image is one row, beside two numbers of 32 bits.
    network = bounds.read_network(content)
    assert bounds.rows(network, with_ports=False, sums=True) == 3 * 8 + 3 * 8 + 8 + 8
    # With the input in the workspace one image lies over the other: rows, beside the whole input, are more.
    assert figures(content, with_ports=True) == (320, 172, 172)
    assert bounds.rows(network, with_ports=True, sums=True) == 172


def test_a_residual_by_hand() -> None:
    """The sum lies over what dies; what it was computed from stays, whole, or as rows."""
    content = chain("conv", "conv", "add", "conv", "mean")
    # Up to the sum by rows: three of the first image, one of the second; the sum is whole. Then one after another.
    assert figures(content, with_ports=False) == (3 * 160, 2 * 160, 3 * 8 + 8 + 160)
    network = bounds.read_network(content)
    assert bounds.rows(network, with_ports=False, sums=True) == 3 * 8 + 8 + 3 * 8 + 8 + 8


def _simulated(step: Any, shape: tuple[int, ...], result: tuple[int, ...]) -> int:
    """The least bytes for both, by trying offsets: no write may hit what this or a later pixel still reads."""
    depth, channels = shape[3], result[3]
    pixels = list(product(range(result[1]), range(result[2])))
    reads = [
        {
            (row * shape[2] + column) * depth + byte
            for row in _taps(step.window[0], y, shape[1])
            for column in _taps(step.window[1], x, shape[2])
            for byte in range(depth)
        }
        for y, x in pixels
    ]
    size, size_result = int(np.prod(shape)), int(np.prod(result))
    best = size + size_result
    for offset in range(-size_result, size + 1):  # of the result, from the operand
        extent = max(size, offset + size_result) - min(0, offset)
        if extent < best and any(_is_right(order, reads, offset, channels) for order in (1, -1)):
            best = extent
    return best


def _taps(axis: Any, output: int, extent: int) -> list[int]:
    positions = [output * axis.stride - axis.before + tap * axis.dilation for tap in range(axis.size)]
    return [position for position in positions if 0 <= position < extent]


def _is_right(order: int, reads: list[set[int]], offset: int, channels: int) -> bool:
    still_read: set[int] = set()
    for number in range(len(reads))[::-order]:
        still_read |= reads[number]
        if any(offset + number * channels + byte in still_read for byte in range(channels)):
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_overlaps_by_simulation(seed: int) -> None:
    """For windows without dilation, whose first and last taps are all that the bound looks at."""
    generator = np.random.default_rng(seed)
    shape = (1, *(int(n) for n in generator.integers(1, 6, 2)), int(generator.integers(1, 4)))
    axes, outputs = [], []
    for extent in shape[1:3]:
        size, stride = int(generator.integers(1, min(3, extent) + 1)), int(generator.integers(1, 4))
        is_same = bool(generator.integers(2))
        outputs.append(-(-(extent if is_same else extent - size + 1) // stride))
        axes.append(bounds._axis(extent, outputs[-1], size, stride, 1, is_same))
    result = (1, *outputs, int(generator.integers(1, 5)))
    step = bounds.Step((0,), 1, tuple(axes))
    network = bounds.Network({0: shape, 1: result}, {0: 1, 1: 1}, (step,), (0,), (1,))
    assert bounds._extent(network, step, 0) >= _simulated(step, shape, result)
    if all(axis.stride <= axis.size for axis in axes):  # no byte between windows that nobody reads
        assert bounds._extent(network, step, 0) == _simulated(step, shape, result)
