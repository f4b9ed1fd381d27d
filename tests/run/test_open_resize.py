"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR along an open axis, beside LiteRT at every extent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_open_unet import UNet
from test_open_windows import Net

from support.every_extent import check
from support.tiers import some
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

KINDS = ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")
POSITIONS: dict[str, dict[str, Any]] = {
    "corners": {"align_corners": True},
    "centers": {"half_pixel_centers": True},
    "neither": {},
}
Resized = Callable[[UNet, str, dict[str, Any]], Net]


def _resized(net: UNet, kind: str, size: int, columns: int, options: dict[str, Any]) -> UNet:
    net.put(kind, [net.last, size], (1, 1, columns, net.shape[-1]), **options)
    return net


def doubled(net: UNet, kind: str, options: dict[str, Any]) -> Net:
    net.pool("MAX_POOL_2D", (1, 3), stride_w=2)
    size = net.listed(None, net.product_of_columns(2), fixed=(1,))
    return _resized(net, kind, size, 2 * net.shape[2], options).conv(4, (1, 3))


def as_the_skip(net: UNet, kind: str, options: dict[str, Any]) -> Net:
    """From extents that are rounded to those that were."""
    skip = net.skip
    net.conv(8, (1, 3), stride_w=3)
    size = net.listed(None, net.columns(skip[0]), fixed=(1,))
    return _resized(net, kind, size, skip[1][2], options).beside(skip).conv(4, (1, 3))


def fixed(net: UNet, kind: str, options: dict[str, Any]) -> Net:
    """To as many whatever there are, with kernels behind it that are of no open extent."""
    return _resized(net, kind, net.integers(1, 7), 7, options).conv(4, (1, 3)).softmax()


def one(net: UNet, kind: str, options: dict[str, Any]) -> Net:
    return _resized(net, kind, net.integers(1, 1), 1, options)


def spread(net: UNet, kind: str, options: dict[str, Any]) -> Net:
    """What is of no open extent, to one that is."""
    skip = net.skip
    net.reduce("REDUCE_MAX", 2, keep_dims=True)
    size = net.listed(None, net.columns(skip[0]), fixed=(1,))
    return _resized(net, kind, size, skip[1][2], options).beside(skip)


SHAPES: dict[str, Resized] = {each.__name__: each for each in (doubled, as_the_skip, fixed, one, spread)}
CASES = [
    (shape, kind, at, dtype)
    for shape in SHAPES
    for kind in KINDS
    for at in POSITIONS
    for dtype in ("int8", "float32")
]


@pytest.mark.parametrize(("shape", "kind", "positions", "dtype"), some(CASES, 6))
def test_every_extent_is_exact(tmp_path: Path, shape: str, kind: str, positions: str, dtype: str) -> None:
    check(tmp_path, SHAPES[shape](UNet(dtype), kind, POSITIONS[positions]).content())


def image(kind: str, height: int, width: int, **options: Any) -> bytes:
    """Images of 9 columns to so many rows and columns."""
    builder = ModelBuilder()
    x = builder.tensor("x", [1, 12, 9, 3], "int8", scale=0.5, zero_point=3)
    y = builder.tensor("y", [1, height, width, 3], "int8", scale=0.5, zero_point=3)
    builder.operator(kind, [x, builder.constant("size", np.array([height, width], np.int32))], [y], **options)
    return builder.build([x], [y])


@pytest.mark.parametrize(("kind", "positions"), some([(kind, at) for kind in KINDS for at in POSITIONS], 2))
def test_images_of_every_height_become_those_of_one(tmp_path: Path, kind: str, positions: str) -> None:
    check(tmp_path, image(kind, 8, 5, **POSITIONS[positions]))


@pytest.mark.parametrize(("kind", "positions"), some([(kind, at) for kind in KINDS for at in POSITIONS], 2))
def test_images_of_every_width_become_those_of_one(tmp_path: Path, kind: str, positions: str) -> None:
    check(tmp_path, image(kind, 8, 5, **POSITIONS[positions]), axis=2)
