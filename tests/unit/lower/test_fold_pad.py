"""fold_pad: an explicit pad becomes the padding of the convolution after it."""

from __future__ import annotations

import numpy as np
import pytest

from bytewright.ir.types import DType
from bytewright.lower.fold_pad import fold_pad
from bytewright.ops.convolution import Conv2d, DepthwiseConv2d
from bytewright.ops.data import Pad, Reshape
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


def signal(*shapes: tuple[int, ...], pad: Pad | None = None, batch: int = 1) -> Draft:
    """x [batch, 6, 2] -> pad `p` -> reshapes `r0`, `r1` ... -> conv2d `c` with a window of 3 by 1 or 1 by 3 -> `y`."""
    draft = Draft()
    draft.parameter("x", (batch, 6, 2), I8)
    value = draft.node("p", pad or Pad((0, 4, 0), (0, 1, 0), 7), "x")
    for number, shape in enumerate(shapes):
        value = draft.node(f"r{number}", Reshape(shape), value)
    window = (3, 1) if shapes[-1][2] == 1 else (1, 3)
    draft.constant("w", np.arange(-8, 10).reshape(3, *window, 2), I8)
    draft.constant("b", [100, -200, 300], I32)
    draft.node(
        "c", Conv2d((1, 1), (0, 0, 1, 0) if window[0] == 1 else (1, 0, 0, 0), (1, 1), 7), value, "w", "b"
    )
    draft.rescale("y", "c", 0.01)
    return draft


@pytest.mark.parametrize(
    ("shapes", "shape", "padding"),
    [
        (((1, 1, 11, 2),), (1, 1, 6, 2), (0, 0, 5, 1)),
        (((1, 11, 1, 2),), (1, 6, 1, 2), (5, 1, 0, 0)),
        (((11, 2), (1, 1, 11, 2)), (1, 1, 6, 2), (0, 0, 5, 1)),
        (((3, 1, 11, 2),), (3, 1, 6, 2), (0, 0, 5, 1)),
    ],
    ids=["row", "column", "two reshapes", "batch"],
)
def test_a_pad_of_a_signal_is_folded_behind_reshapes(
    shapes: tuple[tuple[int, ...], ...], shape: tuple[int, ...], padding: tuple[int, ...]
) -> None:
    draft = signal(*shapes, batch=shape[0])
    folded = fold_pad(draft.module("y"))
    assert [n.operation.name for n in folded.graph.nodes] == ["reshape", "conv2d", "rescale"]
    reshape, convolution, _ = folded.graph.nodes
    assert (reshape.operation, reshape.inputs) == (Reshape(shape), ("x",))
    assert convolution.operation == Conv2d((1, 1), padding, (1, 1), 7)  # type: ignore[arg-type]
    assert_same_meaning(draft.module("y"))
    assert fold_pad(folded) == folded


@pytest.mark.parametrize(
    ("pad", "shape"),
    [
        (Pad((0, 4, 0), (0, 1, 0), 6), (1, 1, 11, 2)),
        (Pad((0, 4, 0), (0, 1, 0), 7), (1, 2, 11, 1)),
        (Pad((0, 4, 0), (0, 1, 0), 7), (11, 1, 1, 2)),
        (Pad((4, 0, 0), (0, 0, 0), 7), (5, 1, 6, 2)),
    ],
    ids=["another value", "channels", "samples", "batch"],
)
def test_a_pad_of_a_signal_that_means_more_stays(pad: Pad, shape: tuple[int, ...]) -> None:
    draft = Draft()
    draft.parameter("x", (1, 6, 2), I8)
    draft.node("r", Reshape(shape), draft.node("p", pad, "x"))
    draft.constant("w", np.arange(-2, 2 * shape[3] - 2).reshape(2, 1, 1, shape[3]), I8)
    draft.constant("b", [100, -200], I32)
    draft.node("c", Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 7), "r", "w", "b")
    draft.rescale("y", "c", 0.01)
    module = draft.module("y")
    assert fold_pad(module) == module
    assert_same_meaning(module)


def test_convolutions_of_one_padded_signal_share_the_reshape() -> None:
    draft = signal((1, 1, 11, 2))
    draft.node("d", Conv2d((1, 1), (0, 0, 0, 0), (1, 2), 7), "r0", "w", "b")
    draft.rescale("z", "d", 0.02)
    assert operations(draft, "y", "z") == ["reshape", "conv2d", "rescale", "conv2d", "rescale"]
    assert operations(draft, "y", "z", "r0") == ["pad", *["reshape"] * 2, *["conv2d", "rescale"] * 2]
    assert_same_meaning(draft.module("y", "z", "r0"))


def test_a_padded_constant_is_reshaped_too() -> None:
    draft = Draft()
    draft.constant("x", np.arange(12).reshape(1, 6, 2), I8)
    draft.parameter("s", (1, 1, 9, 3), I8)
    draft.node("r", Reshape((1, 1, 11, 2)), draft.node("p", Pad((0, 4, 0), (0, 1, 0), 7), "x"))
    draft.constant("w", np.arange(-8, 10).reshape(3, 1, 3, 2), I8)
    draft.constant("b", [100, -200, 300], I32)
    draft.node("c", Conv2d((1, 1), (0, 0, 0, 0), (1, 1), 7), "r", "w", "b")
    draft.rescale("y", "c", 0.01)
    assert operations(draft, "y") == ["reshape", "conv2d", "rescale"]
    assert_same_meaning(draft.module("y"))
