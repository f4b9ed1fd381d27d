"""Images whose rows and columns are both open: results equal LiteRT's, resized to every pair of extents."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.execute.build import BuildOptions
from bytewright.execute.paranoid import run_paranoid
from bytewright.execute.run import run_batch
from bytewright.inspect.check import check_bundle
from run.test_open_unet import Skip, UNet
from run.test_open_windows import Net
from support.every_extent import assert_close, drawn
from support.reference import LiteRt
from support.tiers import some

pytestmark = pytest.mark.run

_VALID: dict[str, Any] = {"padding": "VALID"}
_DOWN: dict[str, Any] = {"stride_h": 2, "stride_w": 2}


class ImageNet(UNet):
    """A network over an image [1, 8, 9, channels]; its way up takes sizes from tensors, as exporters write them."""

    def __init__(self, dtype: str = "int8", channels: int = 3) -> None:
        Net.__init__(self, dtype)
        self.shape = (1, 8, 9, channels)
        self.source = self.last = self.value(self.shape)

    def extents(self, factor: int = 1, of: int | None = None) -> tuple[int, int]:
        """Rows and columns of a value, the last one if none is named, times a factor."""
        shape = self.number("SHAPE", [self.last if of is None else of], (4,))
        found: list[int] = []
        for axis in (1, 2):
            one = [self.integers(at) for at in (axis, axis + 1, 1)]
            extent = self.number("STRIDED_SLICE", [shape, *one], (), shrink_axis_mask=1)
            found.append(self.number("MUL", [extent, self.scalar(factor)], ()) if factor > 1 else extent)
        return found[0], found[1]

    def spread(self, count: int, size: int, stride: int) -> ImageNet:
        """A TRANSPOSE_CONV with as many rows and columns as that makes of them."""
        rows, columns = self.extents(stride)
        shape = (1, self.shape[1] * stride, self.shape[2] * stride, count)
        wanted = self.listed(None, rows, columns, None, fixed=(1, count))
        weights, _ = self.weights((count, size, size, self.shape[-1]), count)
        self.put(
            "TRANSPOSE_CONV",
            [wanted, weights, self.last],
            shape,
            padding="SAME",
            stride_w=stride,
            stride_h=stride,
        )
        return self

    def grouped(self, groups: int, count: int, size: tuple[int, int], **options: Any) -> Net:
        """A CONV_2D each result of which is of a part of the channels."""
        parameters = self.weights((count, *size, self.shape[-1] // groups), count)
        return self._windowed("CONV_2D", [self.last, *parameters], count, size, **options)

    def mirrored(self, mode: str, *widths: tuple[int, int]) -> Net:
        shape = tuple(extent + sum(own) for extent, own in zip(self.shape, widths, strict=True))
        table = self.constant(self.name(), np.array(widths, np.int32))
        return self.put("MIRROR_PAD", [self.last, table], shape, mode=mode)

    def within(self, skip: Skip) -> ImageNet:
        """The first rows and columns, as many as another value has."""
        end = self.listed(None, *self.extents(of=skip[0]), None, fixed=(0, 0))
        ends = [self.integers(0, 0, 0, 0), end, self.integers(1, 1, 1, 1)]
        shape = (*skip[1][:3], self.shape[-1])
        self.put("STRIDED_SLICE", [self.last, *ends], shape, begin_mask=15, end_mask=9)
        return self

    def resized(self, kind: str, skip: Skip | None = None, **options: Any) -> ImageNet:
        """To twice as many rows and columns, or as many as another value has."""
        size = self.listed(*(self.extents(2) if skip is None else self.extents(of=skip[0])), fixed=())
        spatial = (2 * self.shape[1], 2 * self.shape[2]) if skip is None else skip[1][1:3]
        self.put(kind, [self.last, size], (1, *spatial, self.shape[-1]), **options)
        return self


def u_net(dtype: str) -> Net:
    net, skips = ImageNet(dtype), list[Skip]()
    for _ in range(2):
        skips.append(net.conv(8, (3, 3), activation="RELU") and net.skip)
        net.conv(8, (3, 3), **_DOWN)
    for skip in reversed(skips):
        net.spread(8, 3, 2).within(skip).beside(skip).conv(6, (3, 3))
    return net


def segmentation(dtype: str) -> Net:
    net = ImageNet(dtype)
    net.conv(8, (3, 3), **_DOWN).depthwise((3, 3)).conv(16, (1, 1), activation="RELU6")
    net.pool("MAX_POOL_2D", (2, 2), **_DOWN).conv(5, (1, 1))
    return net.resized("RESIZE_BILINEAR", (net.source, (1, 8, 9, 3)), half_pixel_centers=True).softmax()


def detector(dtype: str) -> Net:
    """Features of two resolutions beside one another."""
    net = ImageNet(dtype)
    net.conv(16, (3, 3), **_DOWN, activation="RELU")
    skip = net.skip
    net.conv(16, (3, 3), **_DOWN).resized("RESIZE_NEAREST_NEIGHBOR").within(skip)
    return net.beside(skip).conv(18, (1, 1))


NETS: dict[str, tuple[Callable[[str], Net], int]] = {
    "same": (lambda d: ImageNet(d).conv(8, (3, 3)), 1),
    "same-many": (lambda d: ImageNet(d, 20).conv(6, (3, 5)), 1),
    "valid": (lambda d: ImageNet(d, 18).conv(6, (3, 2), **_VALID), 3),
    "pointwise": (lambda d: ImageNet(d, 17).conv(12, (1, 1), activation="RELU"), 1),
    "stride": (lambda d: ImageNet(d).conv(8, (3, 3), **_DOWN), 1),
    "stride-many": (lambda d: ImageNet(d, 16).conv(5, (5, 4), stride_h=3, stride_w=2), 1),
    "stride-of-columns": (lambda d: ImageNet(d, 20).conv(6, (3, 3), stride_w=2), 1),
    "stride-valid": (lambda d: ImageNet(d).conv(8, (3, 3), **_DOWN, **_VALID), 3),
    "dilated": (lambda d: ImageNet(d).conv(8, (3, 3), dilation_h_factor=2, dilation_w_factor=3), 1),
    "depthwise": (lambda d: ImageNet(d, 16).depthwise((3, 3)), 1),
    "depthwise-few": (lambda d: ImageNet(d, 8).depthwise((3, 5)), 1),
    "depthwise-stride": (lambda d: ImageNet(d, 18).depthwise((3, 3), **_DOWN), 1),
    "max-pool": (lambda d: ImageNet(d).pool("MAX_POOL_2D", (2, 2), **_DOWN), 1),
    "average-pool": (lambda d: ImageNet(d, 16).pool("AVERAGE_POOL_2D", (3, 2), stride_w=2), 1),
    "pad": (lambda d: ImageNet(d).pad((0, 0), (1, 2), (3, 0), (0, 0)).conv(8, (3, 3), **_VALID), 1),
    "reflected": (
        lambda d: ImageNet(d).mirrored("REFLECT", (0, 0), (1, 2), (2, 0), (0, 0)).conv(4, (3, 3), **_VALID),
        3,
    ),
    "symmetric": (lambda d: ImageNet(d).mirrored("SYMMETRIC", (0, 0), (0, 1), (1, 1), (1, 0)), 1),
    "grouped": (lambda d: ImageNet(d, 12).grouped(3, 9, (3, 2), stride_w=2), 1),
    "joined": (lambda d: ImageNet(d).conv(8, (3, 3)).joined(3).conv(4, (1, 1)), 1),
    "softmax": (lambda d: ImageNet(d).conv(5, (1, 1)).softmax(), 1),
    "mean": (lambda d: ImageNet(d).conv(8, (3, 3), **_DOWN).reduce("MEAN", 1, 2), 1),
    "mean-of-rows": (lambda d: ImageNet(d).reduce("MEAN", 1, keep_dims=True), 1),
    "greatest": (lambda d: ImageNet(d).reduce("REDUCE_MAX", 1, 2), 1),
    "u-net": (u_net, 1),
    "segmentation": (segmentation, 1),
    "detector": (detector, 1),
    "nearest": (lambda d: ImageNet(d).resized("RESIZE_NEAREST_NEIGHBOR", align_corners=True), 2),
    "bilinear": (lambda d: ImageNet(d).resized("RESIZE_BILINEAR"), 1),
    "spread": (lambda d: ImageNet(d, 16).spread(5, 3, 2), 1),
    "transposed-unless-one-column": (
        lambda d: (
            (net := ImageNet(d, 5))
            .resized("RESIZE_NEAREST_NEIGHBOR", net.skip)
            .depthwise((3, 3), stride_h=2, stride_w=2, **_VALID)
            .transpose(0, 1, 3, 2)
        ),
        3,
    ),
    "transposed": (lambda d: ImageNet(d).transpose(0, 2, 1, 3).conv(4, (3, 3)), 1),
}


def check_pairs(
    tmp_path: Path, content: bytes, lower: int, upper: int, **options: Any
) -> bytewright.CompiledModel:
    """Compares with LiteRT for each pair of extents; returns the model."""
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    opened = (f"1=h:{lower}..{upper}", f"2=w:{lower}..{upper + 1}")
    model = bytewright.compile(file, open=opened, **options)
    reference, rng = LiteRt(content), np.random.default_rng(5)
    (given,) = model.plan.inputs
    for rows, columns in product(range(lower, upper + 1), range(lower, upper + 2)):
        x = drawn(rng, (1, rows, columns, given.shape[3]), given.dtype.numpy)
        found, (wanted,) = model.run(x), reference.run(x)
        assert_close(np.asarray(found), wanted, (rows, columns))
    return model


CASES = [(name, dtype) for name in NETS for dtype in ("int8", "float32")]
PINNED = [
    ("mean", "int8"),
    ("detector", "int8"),
    ("reflected", "int8"),
    ("transposed-unless-one-column", "int8"),
]


@pytest.mark.parametrize(("name", "dtype"), some(CASES, 4, PINNED))
def test_every_pair_of_extents_is_exact(tmp_path: Path, name: str, dtype: str) -> None:
    net, lower = NETS[name]
    check_pairs(tmp_path, net(dtype).content(), lower, 7)


@pytest.mark.parametrize("target", some(["x86-64-v3", "x86-64-v4-vnni"], 2))
def test_vectors_take_open_columns(tmp_path: Path, target: str) -> None:
    check_pairs(tmp_path, segmentation("int8").content(), 1, 7, target=target)


def test_rows_are_as_far_apart_as_the_run_says_under_sanitizers(tmp_path: Path) -> None:
    """Each pair of extents in memory of its own; `check` and a paranoid run find nothing."""
    content, rng = u_net("int8").content(), np.random.default_rng(3)
    (tmp_path / "m.tflite").write_bytes(content)
    folder = bytewright.compile(tmp_path / "m.tflite", open=("1=h:1..7", "2=w:1..9")).write(tmp_path / "b")
    images = [rng.integers(-128, 128, (1, *each, 3), np.int8) for each in ((7, 9), (1, 9), (7, 1), (4, 5))]
    found = run_batch(folder, [[x] for x in images], options=BuildOptions(sanitize=True)).outputs
    reference = LiteRt(content)
    for x, (own,) in zip(images, found, strict=True):
        np.testing.assert_array_equal(own, reference.run(x)[0])
    check_bundle(folder)
    run_paranoid(folder)


@pytest.mark.parametrize(
    ("net", "reason"),
    [
        (lambda: ImageNet().reshape(1, -1, 3), "x3] has several open extents"),
        (lambda: ImageNet().reduce("REDUCE_PROD", 1, 2), "its multiplier is"),
    ],
    ids=["rows and columns as one axis", "products"],
)
def test_what_depends_on_both_is_refused(tmp_path: Path, net: Callable[[], Net], reason: str) -> None:
    (tmp_path / "m.tflite").write_bytes(net().content())
    with pytest.raises(CompileError) as caught:
        bytewright.compile(tmp_path / "m.tflite", open=("1=h:1..7", "2=w:1..9"))
    (found,) = caught.value.diagnostics
    assert found.code == "BW121"
    assert reason in found.message


def test_one_name_is_one_extent_of_the_file(tmp_path: Path) -> None:
    """Of images that are square in each run; a file that says its numbers, 8 and 9, has two."""
    path, same = tmp_path / "m.tflite", ("1=s:1..7", "2=s:1..7")
    content = ImageNet().conv(8, (3, 3), stride_w=2).content()
    path.write_bytes(content)
    model, reference, rng = bytewright.compile(path, open=same), LiteRt(content), np.random.default_rng(0)
    for extent in (1, 4, 7):
        x = rng.integers(-128, 128, (1, extent, extent, 3), np.int8)
        np.testing.assert_array_equal(np.asarray(model.run(x)), reference.run(x)[0])
    path.write_bytes(ImageNet().reshape(1, 8, 9, 3).content())
    with pytest.raises(CompileError, match="'v2' along axis 1 8 and 'v2' along axis 2 9"):
        bytewright.compile(path, open=same)
