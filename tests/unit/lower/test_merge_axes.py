"""Axes of element-wise groups that become one: as many last ones as all tensors have in common."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright import ir
from bytewright.ir.where import Where
from bytewright.lower.group import Group
from bytewright.lower.merge_axes import merge_axes
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.elementwise import Add
from bytewright.ops.rescale import Rescale

I8, I32 = ir.DType.I8, ir.DType.I32
BATCH = ir.Symbol("n", 1, 4)
Shape = tuple[ir.Extent, ...]


def added(first: Shape, second: Shape, whole: Shape) -> tuple[Group, dict[str, ir.TensorType]]:
    """One addition, and the types of its tensors."""
    types = {name: ir.TensorType(shape, I8) for name, shape in {"a": first, "b": second, "y": whole}.items()}
    node = ir.Node(Add(), ("a", "b"), (ir.Value("y", types["y"]),), Where("m.tflite"))
    return Group(None, (node,)), types


@pytest.mark.parametrize(
    ("first", "second", "whole", "merged"),
    [
        ((2, 5, 6, 7), (2, 5, 6, 7), (2, 5, 6, 7), [(2, 5, 1, 42)] * 3),  # rows stay
        ((2, 1, 6, 7), (2, 1, 6, 7), (2, 1, 6, 7), [(1, 1, 1, 84)] * 3),  # there is one
        ((5, 6, 7), (1, 1, 1), (5, 6, 7), [(1, 1, 210), (1, 1, 1), (1, 1, 210)]),
        ((5, 6, 7), (1,), (5, 6, 7), [(1, 1, 210), (1, 1, 1), (1, 1, 210)]),
        ((5, 6, 7), (5, 1, 1), (5, 6, 7), [(5, 1, 42), (5, 1, 1), (5, 1, 42)]),
        ((5, 6, 7), (7,), (5, 6, 7), [(5, 6, 7), (7,), (5, 6, 7)]),  # broadcast along some
        ((5, 6, 7), (5, 6, 1), (5, 6, 7), [(5, 6, 7), (5, 6, 1), (5, 6, 7)]),
        ((BATCH, 6, 7), (BATCH, 6, 7), (BATCH, 6, 7), [(BATCH, 1, 42)] * 3),  # open extents stay
        ((8,), (8,), (8,), [(8,)] * 3),
        ((), (), (), [()] * 3),
    ],
)
def test_shapes(first: Shape, second: Shape, whole: Shape, merged: list[Shape]) -> None:
    types, _ = merge_axes(*added(first, second, whole), {})
    assert [types[name].shape for name in "aby"] == merged


def test_constants_are_merged_with_their_values_in_order() -> None:
    values = np.arange(42, dtype=np.int8).reshape(6, 7)
    constant = ir.Constant("b", ir.TensorData.from_array(values, I8))
    types, constants = merge_axes(*added((6, 7), (6, 7), (6, 7)), {"b": constant})
    assert types["b"].shape == (1, 42)
    assert constants["b"].data.array.tolist() == [list(range(42))]


@pytest.mark.parametrize(("count", "shape"), [(1, (1, 42)), (7, (6, 7))])
def test_a_factor_for_each_channel_keeps_channels_apart(count: int, shape: Shape) -> None:
    types = {"x": ir.TensorType((6, 7), I32), "y": ir.TensorType((6, 7), I8)}
    constants = {
        name: ir.Constant(name, ir.TensorData.from_array(np.full(count, value, np.int32), I32))
        for name, value in {"m": 2**30, "e": -3}.items()
    }
    operation = Rescale(Rounding.DOUBLE_ROUND, 0, 0, 0, I8)
    node = ir.Node(operation, ("x", "m", "e"), (ir.Value("y", types["y"]),), Where("m.tflite"))
    merged, _ = merge_axes(Group(None, (node,)), types, constants)
    assert merged["x"].shape == merged["y"].shape == shape
