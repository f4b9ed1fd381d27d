"""fold_pad: an explicit pad becomes the padding of the convolution after it."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ir.types import DType
from bytewright.lower.fold_pad import fold_pad
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Pad
from bytewright.ops.pooling import MaxPool2d
from support.lowering import Draft, assert_same_meaning

I8, I32, F32 = DType.I8, DType.I32, DType.F32
SPATIAL = Pad((0, 1, 0, 0), (0, 2, 3, 0), 7)


def padded(
    pad: Pad = SPATIAL, zero_point: int = 7, padding: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> Draft:
    """x -> pad `p` -> conv2d `c` -> rescale `y`."""
    draft = Draft()
    draft.parameter("x", (1, 3, 4, 2), I8)
    draft.node("p", pad, "x")
    depth = draft.types["p"].fixed_shape[3]
    draft.constant("w", np.arange(-8, -8 + 12 * depth).reshape(3, 2, 2, depth), I8)
    draft.constant("b", [100, -200, 300], I32)
    draft.node("c", Conv2d((1, 1), padding, (1, 1), zero_point), "p", "w", "b")
    draft.rescale("y", "c", 0.01)
    return draft


def operations(draft: Draft, *results: str) -> list[str]:
    return [node.operation.name for node in fold_pad(draft.module(*results)).graph.nodes]


def test_a_pad_of_rows_and_columns_is_folded() -> None:
    draft = padded(padding=(1, 0, 0, 1))
    folded = fold_pad(draft.module("y"))
    node = folded.graph.nodes[0]
    assert node.operation == Conv2d((1, 1), (2, 2, 0, 4), (1, 1), 7)
    assert node.inputs == ("x", "w", "b")
    assert [n.operation.name for n in folded.graph.nodes] == ["conv2d", "rescale"]
    assert_same_meaning(draft.module("y"))


def test_folding_twice_changes_nothing() -> None:
    folded = fold_pad(padded().module("y"))
    assert fold_pad(folded) == folded


@pytest.mark.parametrize(
    ("pad", "zero_point"),
    [(SPATIAL, 6), (Pad((0, 1, 0, 1), (0, 0, 0, 0), 7), 7), (Pad((1, 0, 0, 0), (0, 0, 0, 0), 7), 7)],
    ids=["another value", "channels", "batch"],
)
def test_a_pad_that_means_more_stays(pad: Pad, zero_point: int) -> None:
    draft = padded(pad, zero_point)
    module = draft.module("y")
    assert fold_pad(module) == module
    assert_same_meaning(module)


def test_a_pad_that_is_read_elsewhere_stays_for_that_reader() -> None:
    draft = padded()
    draft.node("m", MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0)), "p")
    assert operations(draft, "y", "m") == ["pad", "conv2d", "rescale", "max_pool2d"]
    assert fold_pad(draft.module("y", "m")).graph.nodes[1].inputs[0] == "x"
    assert_same_meaning(draft.module("y", "m"))


def test_a_pad_that_is_a_result_stays() -> None:
    draft = padded()
    assert operations(draft, "y", "p") == ["pad", "conv2d", "rescale"]
    assert_same_meaning(draft.module("y", "p"))


def test_one_pad_before_two_convolutions_is_folded_into_both() -> None:
    draft = padded()
    draft.constant("dw", np.arange(-6, 6).reshape(2, 3, 2, 1), I8)
    draft.constant("db", [1, 2], I32)
    draft.node("d", DepthwiseConv2d((2, 1), (0, 1, 1, 0), (1, 1), 7), "p", "dw", "db")
    draft.rescale("z", "d", 0.02)
    assert operations(draft, "y", "z") == ["conv2d", "rescale", "depthwise_conv2d", "rescale"]
    assert_same_meaning(draft.module("y", "z"))


def test_float_pads_of_zero_are_folded() -> None:
    draft = Draft()
    draft.parameter("x", (1, 3, 4, 1), F32)
    draft.node("p", Pad((0, 1, 1, 0), (0, 1, 1, 0), 0.0), "x")
    draft.constant("w", np.arange(9).reshape(1, 3, 3, 1), F32)
    draft.constant("b", [0.5], F32)
    draft.node("y", Conv2d((1, 1), (0, 0, 0, 0), (1, 1)), "p", "w", "b")
    assert operations(draft, "y") == ["conv2d"]
    assert_same_meaning(draft.module("y"))
