"""Moves in the graph: compositions that leave one kernel at most, and repetitions that become one."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from bytewright.frontends.tflite import import_content
from bytewright.ir.module import Module
from bytewright.ops.data import Gather, Reshape, Slice, Tile, Transpose
from bytewright.ops.resize import TflResizeNearest
from support.dilated_models import Writer
from support.evaluation import evaluate_function
from support.random_models import RandomModel
from support.reference import LiteRt
from support.tiers import THOROUGH

COUNT = 500 if THOROUGH else 40


def imported(model: RandomModel) -> Module:
    """The graph, which means what LiteRT computes."""
    module = import_content(model.content, "m.tflite")
    inputs = model.inputs(3)
    values = evaluate_function(module.graph, module.constants, tuple(inputs))
    for name, wanted in zip(module.graph.results, LiteRt(model.content).run(*inputs), strict=True):
        np.testing.assert_array_equal(values[name], wanted, err_msg=model.description)
    return module


def operations(writer: Writer) -> list[object]:
    return [node.operation for node in imported(writer.finish()).graph.nodes]


def tile(writer: Writer, *multiples: int) -> None:
    shape = tuple(extent * multiple for extent, multiple in zip(writer.shape, multiples, strict=True))
    writer.add("TILE", shape, writer.integers(multiples))


def reshape(writer: Writer, *shape: int) -> None:
    writer.add("RESHAPE", shape, writer.integers(shape), new_shape=shape)


def test_an_up_sampling_of_rows_and_then_columns_is_one_repetition() -> None:
    writer = Writer.of((1, 4, 3, 5), is_open=True)
    reshape(writer, 1, 4, 1, 3, 5)
    tile(writer, 1, 1, 2, 1, 1)
    reshape(writer, 1, 8, 3, 1, 5)
    tile(writer, 1, 1, 1, 3, 1)
    reshape(writer, 1, 8, 9, 5)
    resize, *views = operations(writer)
    assert resize == TflResizeNearest((8, 9), half_pixel_centers=True)
    assert all(isinstance(view, Reshape) for view in views)


def test_rows_alone_and_other_axes() -> None:
    writer = Writer.of((1, 4, 3, 5))
    tile(writer, 1, 1, 2, 1)  # all columns, and once more all columns
    assert operations(writer) == [Reshape((1, 4, 1, 15)), Tile((1, 1, 2, 1)), Reshape((1, 4, 6, 5))]
    writer = Writer.of((1, 4, 3, 5))
    tile(writer, 1, 1, 1, 3)  # all channels of a pixel, three times
    assert operations(writer) == [Reshape((1, 12, 1, 5)), Tile((1, 1, 3, 1)), Reshape((1, 4, 3, 15))]
    writer = Writer.of((1, 4, 1, 5))
    tile(writer, 1, 1, 3, 1)
    assert operations(writer) == [TflResizeNearest((4, 3), half_pixel_centers=True)]


def test_times_that_a_reshape_cuts_through_stay_apart() -> None:
    """Six rows, twice, as three: the first third ends within the first time."""
    writer = Writer.of((6, 5))
    tile(writer, 2, 1)
    reshape(writer, 3, 20)
    assert operations(writer)[-1] == Reshape((3, 20))
    tile(writer, 3, 1)
    assert sum(isinstance(operation, Tile | TflResizeNearest) for operation in operations(writer)) == 2


@pytest.mark.parametrize("seed", range(4))
def test_chains_of_repetitions(seed: int) -> None:
    """Of shapes with small factors, so that most reshapes fit and some do not."""
    merged = 0
    for number in range(COUNT):
        random = np.random.default_rng([seed, number])
        writer = Writer.of(
            tuple(int(e) for e in random.choice([1, 2, 3, 4, 6], random.integers(1, 5))), "float32"
        )
        for _ in range(int(random.integers(1, 4))):
            if random.integers(0, 2):
                tile(writer, *(int(m) for m in random.choice([1, 1, 2, 3], len(writer.shape))))
            parts, elements = [], prod(writer.shape)
            while elements > 1 and len(parts) < 5:
                divisors = [d for d in range(1, elements + 1) if elements % d == 0]
                parts.append(int(random.choice(divisors)))
                elements //= parts[-1]
            reshape(writer, *parts, elements)
            tile(writer, *(int(m) for m in random.choice([1, 1, 2], len(writer.shape))))
            if prod(writer.shape) > 5000:
                break
        tiles = [
            operation for operation in operations(writer) if isinstance(operation, Tile | TflResizeNearest)
        ]
        merged += len(tiles) <= 1
    assert COUNT / 4 < merged < COUNT


def test_depth_and_space_move_runs_of_channels() -> None:
    writer = Writer.of((1, 4, 3, 8))
    writer.add("DEPTH_TO_SPACE", (1, 8, 6, 2), block_size=2)
    assert operations(writer) == [Reshape((1, 4, 3, 2, 4)), Transpose((0, 1, 3, 2, 4)), Reshape((1, 8, 6, 2))]
    writer = Writer.of((1, 4, 6, 2))
    writer.add("SPACE_TO_DEPTH", (1, 2, 3, 8), block_size=2)
    assert operations(writer) == [Reshape((1, 2, 2, 3, 4)), Transpose((0, 1, 3, 2, 4)), Reshape((1, 2, 3, 8))]
    writer = Writer.of((1, 4, 1, 8))
    writer.add("DEPTH_TO_SPACE", (1, 4, 1, 8), block_size=1)
    assert operations(writer) == []


def test_elements_that_are_evenly_spaced_are_a_slice() -> None:
    for numbers, kept in (([2], 1), ([4, 2, 0], 3), ([1, 2, 3], 3)):
        writer = Writer.of((2, 5, 3))
        writer.add("GATHER", (2, kept, 3), writer.integers(numbers), axis=1)
        (operation,) = operations(writer)
        assert isinstance(operation, Slice)
    writer = Writer.of((2, 5, 3))
    writer.add("GATHER", (2, 5, 3), writer.integers(range(5)), axis=1)
    assert operations(writer) == []
    writer = Writer.of((2, 5, 3))
    writer.add("GATHER", (2, 3, 3), writer.integers([0, 0, 1]), axis=1)
    assert operations(writer) == [Gather(1)]


def test_a_reversal_is_a_slice_with_negative_strides() -> None:
    writer = Writer.of((2, 5, 1))
    writer.add("REVERSE_V2", (2, 5, 1), writer.integers([1, -1]))
    assert operations(writer) == [Slice((0, 4, 0), (2, 5, 1), (1, -1, 1))]
