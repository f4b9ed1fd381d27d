"""Networks over time that go down by strides and up again, beside LiteRT at every extent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_open_windows import Net

from support.every_extent import check

pytestmark = pytest.mark.run

Skip = tuple[int, tuple[int, ...]]


class UNet(Net):
    """A network over columns whose way up takes its sizes from tensors, as exporters write them."""

    def __init__(self, dtype: str = "int8") -> None:
        super().__init__(dtype)
        self.image()

    def number(self, kind: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> int:
        result = self.tensor(self.name(), shape, "int32")
        self.operator(kind, inputs, [result], **options)
        return result

    def columns(self, of: int | None = None) -> int:
        """How many a value has: the last one if none is named."""
        shape = self.number("SHAPE", [self.last if of is None else of], (4,))
        one = [self.integers(at) for at in (2, 3, 1)]
        return self.number("STRIDED_SLICE", [shape, *one], (), shrink_axis_mask=1)

    def product_of_columns(self, factor: int) -> int:
        return self.number("MUL", [self.columns(), self.scalar(factor)], ())

    def listed(self, *numbers: int | None, fixed: tuple[int, ...]) -> int:
        """A list of numbers that are fixed, but for those that are given."""
        constants = iter(fixed)
        values = [self.scalar(next(constants)) if each is None else each for each in numbers]
        return self.number("PACK", values, (len(values),), values_count=len(values), axis=0)

    def scalar(self, value: int) -> int:
        return self.constant(self.name(), np.array(value, np.int32))

    @property
    def skip(self) -> Skip:
        return self.last, self.shape

    def up(self, count: int, size: int, stride: int, padding: str = "SAME") -> UNet:
        """A TRANSPOSE_CONV."""
        more = 0 if padding == "SAME" else max(size - stride, 0)
        columns = self.product_of_columns(stride)
        if more:
            columns = self.number("ADD", [columns, self.scalar(more)], ())
        shape = (1, 1, self.shape[2] * stride + more, count)
        wanted = self.listed(None, None, columns, None, fixed=(1, 1, count))
        weights, _ = self.weights((count, 1, size, self.shape[-1]), count)
        options = {"padding": padding, "stride_w": stride, "stride_h": 1}
        self.put("TRANSPOSE_CONV", [wanted, weights, self.last], shape, **options)
        return self

    def cropped(self, skip: Skip) -> UNet:
        """The first columns, as many as another value has."""
        end = self.listed(None, None, self.columns(skip[0]), None, fixed=(0, 0, 0))
        ends = [self.integers(0, 0, 0, 0), end, self.integers(1, 1, 1, 1)]
        shape = (1, 1, skip[1][2], self.shape[-1])
        self.put("STRIDED_SLICE", [self.last, *ends], shape, begin_mask=15, end_mask=11)
        return self

    def beside(self, skip: Skip) -> UNet:
        shape = (*self.shape[:3], self.shape[3] + skip[1][3])
        self.put("CONCATENATION", [skip[0], self.last], shape, axis=3)
        return self

    def repeated(self, times: int) -> UNet:
        """Each column so many times, with a shape that is in the file for every extent."""
        columns, channels = self.shape[2:]
        self.reshape(1, -1, 1, channels)
        self.put("TILE", [self.last, self.integers(1, 1, times, 1)], (1, columns, times, channels))
        self.reshape(1, 1, -1, channels)
        return self


def _down(dtype: str, times: int = 1) -> tuple[UNet, list[Skip]]:
    net, skips = UNet(dtype), list[Skip]()
    for _ in range(times):
        net.conv(8, (1, 3), activation="RELU")
        skips.append(net.skip)
        net.conv(8, (1, 3), stride_w=2)
    return net, skips


def transposed(dtype: str) -> Net:
    net, (skip,) = _down(dtype)
    return net.up(8, 4, 2).cropped(skip).beside(skip).conv(4, (1, 3))


def deep(dtype: str) -> Net:
    """Sizes that are rounded twice."""
    net, skips = _down(dtype, 2)
    for skip in reversed(skips):
        net.up(8, 3, 2).cropped(skip).beside(skip).conv(8, (1, 3))
    return net


def uncropped(dtype: str) -> Net:
    """All that the way up makes, which is no less than the input has."""
    net, _ = _down(dtype, 2)
    return net.up(8, 2, 2, "VALID").up(4, 5, 3, "VALID").conv(4, (1, 3), stride_w=4)


def repeated(dtype: str) -> Net:
    net, (skip,) = _down(dtype)
    return net.repeated(2).cropped(skip).beside(skip).conv(4, (1, 3))


def pooled(dtype: str) -> Net:
    net = UNet(dtype)
    net.pool("MAX_POOL_2D", (1, 3), stride_w=3).conv(8, (1, 3))
    return net.repeated(2).pool("AVERAGE_POOL_2D", (1, 2), stride_w=5).softmax()


NETS: dict[str, Callable[[str], Net]] = {
    each.__name__: each for each in (transposed, deep, uncropped, repeated, pooled)
}


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("name", NETS)
def test_every_extent_is_exact(tmp_path: Path, name: str, dtype: str) -> None:
    check(tmp_path, NETS[name](dtype).content(), 1, 21)
