"""Open extents through operators where rows meet: results equal LiteRT's, resized to every extent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import bytewright
from bytewright.diagnostics import CompileError
from bytewright.inspect.check import check_bundle
from support.every_extent import MOST, assert_close, check, drawn
from support.model_files import EXPORTS
from support.reference import LiteRt
from support.tiers import some
from tflite_writer import ModelBuilder

pytestmark = pytest.mark.run

Array = NDArray[Any]
ROWS = 12
AFFINE: dict[str, Any] = {"scale": 0.5, "zero_point": 3}


class Net(ModelBuilder):
    """A network over time, of [1, ROWS, 6] unless asked for others, built from its input on.

    The last value is `last`, as are its extents.
    """

    def __init__(self, dtype: str = "int8", channels: int = 6, rows: int = ROWS) -> None:
        super().__init__()
        self.unknown: int | None = None
        self.rng = np.random.default_rng(7)
        self.dtype = dtype
        self.affine = AFFINE if dtype == "int8" else {}
        self.num_values = 0
        self.shape: tuple[int, ...] = (1, rows, channels)
        self.source = self.last = self.value(self.shape)

    def name(self) -> str:
        self.num_values += 1
        return f"v{self.num_values}"

    def value(self, shape: tuple[int, ...], **affine: Any) -> int:
        """An extent that is `unknown` is open in the file, which has 1 there."""
        signature = None
        if self.unknown is not None:
            signature = [-1 if extent == self.unknown else extent for extent in shape]
            shape = tuple(1 if extent == self.unknown else extent for extent in shape)
        given = affine or self.affine
        return self.tensor(self.name(), shape, self.dtype, shape_signature=signature, **given)

    def put(self, kind: str, inputs: list[int], shape: tuple[int, ...], **options: Any) -> Net:
        affine = options.pop("affine", {})
        result = self.value(shape, **affine)
        self.operator(kind, inputs, [result], **options)
        self.last, self.shape = result, shape
        return self

    def integers(self, *values: Any) -> int:
        return self.constant(self.name(), np.array(values, np.int32))

    def reshape(self, *shape: int) -> Net:
        size = int(np.prod(self.shape))
        known = int(np.prod([extent for extent in shape if extent > 0]))
        whole = tuple(size // known if extent < 0 else extent for extent in shape)
        return self.put("RESHAPE", [self.last, self.integers(*shape)], whole, new_shape=shape)

    def image(self) -> Net:
        """As exporters write 1-D convolutions: one row, of columns over time."""
        return self.reshape(1, 1, -1, self.shape[-1])

    def upright(self) -> Net:
        return self.reshape(1, -1, 1, self.shape[-1])

    def weights(self, shape: tuple[int, ...], count: int) -> list[int]:
        values = self.rng.integers(-127, 128, shape)
        bias = self.rng.integers(-40, 40, count)
        if self.dtype == "float32":
            return [
                self.constant(self.name(), (values / 64).astype(np.float32)),
                self.constant(self.name(), bias.astype(np.float32)),
            ]
        w = self.constant(self.name(), values.astype(np.int8), scale=0.01)
        return [w, self.tensor(self.name(), (count,), "int32", data=bias.astype(np.int32), scale=0.005)]

    def _windowed(
        self, kind: str, inputs: list[int], count: int, size: tuple[int, int], **options: Any
    ) -> Net:
        steps = options.get("stride_h", 1), options.get("stride_w", 1)
        spread = options.get("dilation_h_factor", 1), options.get("dilation_w_factor", 1)
        extents: list[int] = []
        for extent, each, step, apart in zip(self.shape[1:3], size, steps, spread, strict=True):
            reach = (each - 1) * apart + 1
            is_same = options.get("padding", "SAME") == "SAME"
            extents.append(-(-extent // step) if is_same else (extent - reach) // step + 1)
        return self.put(kind, inputs, (1, *extents, count), **options)

    def conv(self, count: int, size: tuple[int, int], **options: Any) -> Net:
        parameters = self.weights((count, *size, self.shape[-1]), count)
        return self._windowed("CONV_2D", [self.last, *parameters], count, size, **options)

    def depthwise(self, size: tuple[int, int], **options: Any) -> Net:
        count = self.shape[-1]
        parameters = self.weights((1, *size, count), count)
        return self._windowed(
            "DEPTHWISE_CONV_2D", [self.last, *parameters], count, size, depth_multiplier=1, **options
        )

    def pool(self, kind: str, size: tuple[int, int], **options: Any) -> Net:
        options = {"filter_height": size[0], "filter_width": size[1], "padding": "SAME", **options}
        return self._windowed(kind, [self.last], self.shape[-1], size, **options)

    def pad(self, *widths: tuple[int, int]) -> Net:
        shape = tuple(extent + sum(own) for extent, own in zip(self.shape, widths, strict=True))
        table = self.constant(self.name(), np.array(widths, np.int32))
        return self.put("PAD", [self.last, table], shape)

    def transpose(self, *order: int) -> Net:
        return self.put(
            "TRANSPOSE", [self.last, self.integers(*order)], tuple(self.shape[axis] for axis in order)
        )

    def joined(self, axis: int, *, fixed: int = 0) -> Net:
        """Itself, behind `fixed` elements of a constant, or behind its double."""
        shape, other = list(self.shape), self.last
        if fixed:
            given = self.rng.integers(-100, 100, (*shape[:axis], fixed, *shape[axis + 1 :]))
            other = self.constant(self.name(), given.astype(self.dtype), **self.affine)
        else:
            other = self.put("ADD", [self.last, self.last], self.shape).last
        shape[axis] += fixed or shape[axis]
        return self.put("CONCATENATION", [other, self.last], tuple(shape), axis=axis)

    def joined_to_half(self) -> Net:
        """Behind what a window with a stride makes of it."""
        whole, shape = self.last, self.shape
        self.conv(shape[-1], (1, 3), stride_w=2)
        return self.put(
            "CONCATENATION", [self.last, whole], (1, 1, shape[2] + self.shape[2], shape[-1]), axis=2
        )

    def part(
        self, begin: tuple[int, ...], end: tuple[int, ...], whole: tuple[int, ...], step: int = 1
    ) -> Net:
        """A strided slice: the last axis in steps, and those that are `whole` by a mask."""
        rank = len(self.shape)
        strides = [1] * (rank - 1) + [step]
        taken = (
            len(range(extent)[slice(None if axis in whole else b, None if axis in whole else e, s)])
            for axis, (extent, b, e, s) in enumerate(zip(self.shape, begin, end, strides, strict=True))
        )
        mask = sum(1 << axis for axis in whole)
        operands = [self.last, self.integers(*begin), self.integers(*end), self.integers(*strides)]
        return self.put("STRIDED_SLICE", operands, tuple(taken), begin_mask=mask, end_mask=mask)

    def rows(self, first: int | None, last: int | None, step: int = 1) -> Net:
        """A strided slice of the second axis, as Python writes it."""
        masks = {"begin_mask": 5 | (first is None) << 1, "end_mask": 5 | (last is None) << 1}
        operands = [self.last, *(self.integers(0, each, 0) for each in (first or 0, last or 0))]
        shape = (1, len(range(self.shape[1])[first:last:step]), *self.shape[2:])
        return self.put("STRIDED_SLICE", [*operands, self.integers(1, step, 1)], shape, **masks)

    def softmax(self) -> Net:
        affine = {"scale": 1 / 256, "zero_point": -128} if self.dtype == "int8" else {}
        return self.put("SOFTMAX", [self.last], self.shape, affine=affine)

    def gather(self, axis: int, *numbers: int) -> Net:
        shape = (*self.shape[:axis], len(numbers), *self.shape[axis + 1 :])
        return self.put("GATHER", [self.last, self.integers(*numbers)], shape, axis=axis)

    def reduce(self, kind: str, *axes: int, keep_dims: bool = False) -> Net:
        shape = [1 if axis in axes else extent for axis, extent in enumerate(self.shape)]
        kept = [extent for axis, extent in enumerate(shape) if keep_dims or axis not in axes]
        return self.put(kind, [self.last, self.integers(*axes)], tuple(kept), keep_dims=keep_dims)

    def product(self, width: int) -> Net:
        weights = self.weights((self.shape[-1], width), width)[0]
        shape = (*self.shape[:-1], width)
        return self.put("BATCH_MATMUL", [self.last, weights], shape, adj_x=False, adj_y=False)

    def expanded(self, axis: int) -> Net:
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        return self.put("EXPAND_DIMS", [self.last, self.integers(axis)], shape)

    def squeezed(self, axis: int) -> Net:
        shape = (*self.shape[:axis], *self.shape[axis + 1 :])
        return self.put("SQUEEZE", [self.last], shape, squeeze_dims=(axis,))

    def content(self) -> bytes:
        return self.build([self.source], [self.last])


_VALID: dict[str, Any] = {"padding": "VALID"}
NETS: dict[str, tuple[Callable[[str], Net], int]] = {
    "same": (lambda d: Net(d).image().conv(8, (1, 3)), 1),
    "same-even": (lambda d: Net(d).image().conv(8, (1, 4)), 1),
    "valid": (lambda d: Net(d).image().conv(8, (1, 3), **_VALID), 3),
    "valid-stride": (lambda d: Net(d).image().conv(8, (1, 4), stride_w=3, **_VALID), 4),
    "dilated": (lambda d: Net(d).image().conv(8, (1, 3), dilation_w_factor=2), 1),
    "dilated-valid": (lambda d: Net(d).image().conv(8, (1, 3), dilation_w_factor=2, **_VALID), 5),
    "causal": (lambda d: Net(d).pad((0, 0), (2, 0), (0, 0)).image().conv(8, (1, 3), **_VALID), 1),
    "padded-behind": (lambda d: Net(d).pad((0, 0), (1, 3), (0, 0)).image().conv(8, (1, 3), **_VALID), 1),
    "padded": (lambda d: Net(d).pad((0, 0), (1, 3), (1, 0)), 1),
    "depthwise": (lambda d: Net(d).image().depthwise((1, 3)), 1),
    "depthwise-dilated": (lambda d: Net(d).image().depthwise((1, 3), dilation_w_factor=2), 1),
    "max-pool": (lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 3)), 1),
    "average-pool": (lambda d: Net(d).image().pool("AVERAGE_POOL_2D", (1, 3)), 1),
    "pool-valid": (lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 2), stride_w=2, **_VALID), 2),
    "upright": (lambda d: Net(d).upright().conv(8, (3, 1)), 1),
    "wide": (lambda d: Net(d).reshape(1, -1, 3, 2).conv(8, (3, 3)), 1),
    "wide-depthwise": (lambda d: Net(d).reshape(1, -1, 3, 2).depthwise((5, 2)), 1),
    "wide-pool": (lambda d: Net(d).reshape(1, -1, 3, 2).pool("AVERAGE_POOL_2D", (3, 2)), 1),
    "columns-behind-rows": (
        lambda d: Net(d).transpose(0, 2, 1).reshape(1, 6, -1, 1).conv(2, (3, 3), stride_w=2),
        1,
    ),
    "same-stride": (lambda d: Net(d).image().conv(8, (1, 3), stride_w=2), 1),
    "same-stride-3": (lambda d: Net(d).image().conv(8, (1, 5), stride_w=3), 1),
    "same-stride-wider": (lambda d: Net(d).image().conv(8, (1, 2), stride_w=3), 1),
    "same-stride-even": (lambda d: Net(d).image().conv(8, (1, 2), stride_w=2), 1),
    "same-stride-depthwise": (lambda d: Net(d).image().depthwise((1, 4), stride_w=2, stride_h=2), 1),
    "same-stride-wide": (lambda d: Net(d).reshape(1, -1, 3, 2).conv(8, (3, 3), stride_h=2, stride_w=2), 1),
    "same-stride-wide-depthwise": (
        lambda d: Net(d).reshape(1, -1, 3, 2).depthwise((5, 2), stride_h=2, stride_w=2),
        1,
    ),
    "same-stride-pools": (
        lambda d: (
            Net(d).image().pool("AVERAGE_POOL_2D", (1, 3), stride_w=2).pool("MAX_POOL_2D", (1, 4), stride_w=3)
        ),
        1,
    ),
    "same-strides": (
        lambda d: (
            Net(d)
            .upright()
            .conv(8, (3, 1), stride_h=2, activation="RELU")
            .depthwise((3, 1), stride_h=2, stride_w=2)
            .conv(4, (3, 1), stride_h=2)
        ),
        1,
    ),
    "transposed": (lambda d: Net(d).transpose(0, 2, 1), 1),
    "transposed-and-back": (lambda d: Net(d).transpose(2, 1, 0).softmax().transpose(1, 2, 0), 1),
    "rounded-behind-itself": (lambda d: Net(d).image().conv(6, (1, 3), stride_w=2).joined(2).joined(2), 1),
    "channels-joined": (lambda d: Net(d).image().conv(8, (1, 3)).joined(3).conv(4, (1, 2)), 1),
    "rows-behind": (lambda d: Net(d).joined(1, fixed=2).softmax(), 1),
    "softmax-along": (lambda d: Net(d).transpose(0, 2, 1).softmax(), 1),
    "sliced": (lambda d: Net(d).part((0, 0, 1), (1, 0, 6), (1,), 2), 1),
    "softmax": (lambda d: Net(d).image().conv(5, (1, 3), **_VALID).softmax(), 3),
    "gathered": (lambda d: Net(d).gather(2, 3, 1, 3), 1),
    "means-of-rows": (lambda d: Net(d).reduce("MEAN", 2).reshape(1, -1, 1), 1),
    "greatest-of-rows": (lambda d: Net(d).reduce("REDUCE_MAX", 2, keep_dims=True), 1),
    "mean": (lambda d: Net(d).reduce("MEAN", 1), 1),
    "mean-of-all": (lambda d: Net(d).reduce("MEAN", 1, 2, keep_dims=True), 1),
    "mean-of-windows": (
        lambda d: Net(d).image().conv(16, (1, 3), stride_w=2).reduce("MEAN", 1, 2).reshape(1, 16),
        1,
    ),
    "greatest": (lambda d: Net(d).reduce("REDUCE_MAX", 1, keep_dims=True), 1),
    "least": (lambda d: Net(d).image().conv(16, (1, 2), **_VALID).reduce("REDUCE_MIN", 2), 2),
    "sum": (lambda d: Net(d).reduce("SUM", 1), 1),
    "sum-of-all": (
        lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 3), stride_w=2).reduce("SUM", 1, 2, 3),
        1,
    ),
    "sums-of-rows": (
        lambda d: Net(d).image().pool("MAX_POOL_2D", (1, 3)).reduce("SUM", 3, keep_dims=True),
        1,
    ),
    "products": (lambda d: Net(d).reshape(1, -1, 3, 2).product(5), 1),
    "merged": (lambda d: Net(d).reshape(1, -1, 2).softmax().reshape(1, -1, 6), 1),
    "deep": (
        lambda d: (
            Net(d)
            .image()
            .conv(8, (1, 5), activation="RELU")
            .depthwise((1, 3))
            .conv(8, (1, 4), stride_w=2, **_VALID)
            .pool("MAX_POOL_2D", (1, 2), stride_w=2, **_VALID)
            .conv(16, (1, 1))
            .reshape(1, -1, 16)
        ),
        6,
    ),
}


CASES = [(name, dtype) for name in NETS for dtype in ("int8", "float32")]
SEVERAL = [("deep", "int8"), ("same-stride-wide", "int8"), ("mean-of-windows", "int8")]


@pytest.mark.parametrize(("name", "dtype"), some(CASES, 3, SEVERAL))
def test_every_extent_is_exact(tmp_path: Path, name: str, dtype: str) -> None:
    net, lower = NETS[name]
    check(tmp_path, net(dtype).content(), lower)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_an_end_that_is_a_number_is_one_up_to_it(tmp_path: Path, dtype: str) -> None:
    """LiteRT takes what there is, of up to that many."""
    content = Net(dtype).part((0, 0, 0), (1, ROWS, 3), (0,)).content()
    check(tmp_path, content, 1, ROWS)
    found = refused(tmp_path, content, upper=2 * ROWS)
    assert "0 (STRIDED_SLICE) does not allow it: it takes 1 for 1, 12 for 13, 12 for 23, 12 for 24" in found


REFUSED: dict[str, tuple[Callable[[], Net], str]] = {
    "part of the axis": (
        lambda: Net().part((0, 2, 0), (1, 9, 6), ()),
        "1=time:1..21: for time=2, output tensor 4 ('v5') has no elements: its shape is [1x0x6]",
    ),
    "part of the axis behind a shape for one extent": (
        lambda: Net().reshape(1, ROWS, 3, 2).part((0, 2, 0, 0), (1, 9, 3, 2), ()),
        "it takes all of at most 9 along the open axis",
    ),
    "sums behind a shape for one extent": (
        lambda: Net().reshape(1, ROWS, 3, 2).reduce("SUM", 1),
        "1 (SUM) does not allow it: its zero points",
    ),
    "rows by their numbers": (
        lambda: Net().gather(1, 0, 2),
        "for time=2, GATHER: element [2] of an axis of extent 2",
    ),
    "rows by their numbers behind a shape for one extent": (
        lambda: Net().reshape(1, ROWS, 3, 2).gather(1, 0, 2),
        "it takes elements by their numbers along the open axis",
    ),
    "rows and half as many": (
        lambda: Net().image().joined_to_half(),
        "several open extents are along one axis",
    ),
    "channels": (
        lambda: Net().transpose(0, 2, 1).reshape(1, 1, 6, -1).conv(2, (1, 1)),
        "weights [2x1x1x12] do not fit 21 input channels",
    ),
}


def refused(tmp_path: Path, content: bytes, lower: int = 1, upper: int = MOST, axis: int = 1) -> str:
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, open=f"{axis}=time:{lower}..{upper}")
    (found,) = caught.value.diagnostics
    assert found.code == "BW121"
    assert found.help is not None
    return found.message


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_operator_does_not_allow_is_refused(tmp_path: Path, name: str) -> None:
    net, reason = REFUSED[name]
    assert reason in refused(tmp_path, net().content())


def _of_rows(rows: int) -> Net:
    """A network over so many rows."""
    net = Net()
    net.shape = (1, rows, 6)
    net.source = net.last = net.value(net.shape)
    return net


def _reversed(net: Net) -> Net:
    return net.put("REVERSE_V2", [net.last, net.integers(1)], net.shape)


def _of_parts(net: Net) -> Net:
    sizes, axis = net.integers(net.shape[1]), net.constant(net.name(), np.array(1, np.int32))
    return net.put("SPLIT_V", [net.last, sizes, axis], net.shape, num_splits=1)


def _swapped_parts(net: Net) -> Net:
    """The first two rows behind the others, of which there are as many as the run has."""
    sizes, axis = net.integers(2, -1), net.constant(net.name(), np.array(1, np.int32))
    first, others = net.value((1, 2, 6)), net.value((1, net.shape[1] - 2, 6))
    net.operator("SPLIT_V", [net.last, sizes, axis], [first, others], num_splits=2)
    return net.put("CONCATENATION", [others, first], net.shape, axis=1)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_last_part_is_what_is_left(tmp_path: Path, dtype: str) -> None:
    net = Net(dtype)
    check(tmp_path, _swapped_parts(net).content(), 3)


# Each takes all rows that there are in the file, in order, and would not of another number of them.
WHOLE_IN_THE_FILE: dict[str, tuple[Callable[[], Net], str]] = {
    "the last twelve": (
        lambda: _of_rows(12).part((0, -12, 0), (1, 1000, 6), ()),
        "it begins at element 0 for 1, 0 for 11, 8 for 20, 9 for 21",
    ),
    "twelve by their numbers": (
        lambda: _of_rows(12).gather(1, *range(12)),
        "the open axis, which may have 21",
    ),
    "a part of stated size": (lambda: _of_parts(_of_rows(12)), "the open axis, which may have 21"),
}


@pytest.mark.parametrize("name", WHOLE_IN_THE_FILE)
def test_what_is_whole_in_the_file_alone_is_refused(tmp_path: Path, name: str) -> None:
    net, reason = WHOLE_IN_THE_FILE[name]
    assert reason in refused(tmp_path, net().content())


# Each takes other rows than the file's for other extents: with the first extent that it is for.
SLICED: dict[str, tuple[Callable[[], Net], int]] = {
    "the last twelve": (lambda: Net().rows(-12, None), 12),
    "the last": (lambda: _of_rows(1).rows(-1, None), 1),
    "but the last": (lambda: Net().rows(None, -1), 2),
    "but the first two": (lambda: Net().rows(2, None), 3),
    "from the middle": (lambda: Net().rows(2, -3), 6),
    "before the last": (lambda: Net().rows(-4, -2), 4),
    "some": (lambda: Net().rows(2, 7), 7),
    "every second": (lambda: Net().rows(None, None, 2), 1),
    "every third from the second": (lambda: Net().rows(1, None, 3), 2),
    "backwards": (lambda: Net().rows(None, None, -1), 1),
    "backwards every third": (lambda: Net().rows(None, None, -3), 1),
    "backwards from the last but one": (lambda: Net().rows(-2, None, -2), 2),
    "reversed": (lambda: _reversed(_of_rows(1)), 1),
    "the first by its number": (lambda: _of_rows(1).gather(1, 0), 1),
    "three by their numbers": (lambda: Net().gather(1, 4, 0, 4), 5),
    "twice": (lambda: Net().joined(1), 1),
    "the first half": (lambda: _halved(Net(), 0), 2),
    "the second half": (lambda: _halved(Net(), 1), 2),
    "both ways": (lambda: _both_ways(Net()), 1),
    "differences": (lambda: _differences(Net()), 2),
}


def _halved(net: Net, part: int) -> Net:
    """A half, of which the second has the row that is over, as a file says it that computes them."""
    numbers = net.tensor(net.name(), (3,), "int32"), *(net.tensor(net.name(), (), "int32") for _ in range(2))
    zero, one, two = (net.constant(net.name(), np.array(n, np.int32)) for n in (0, 1, 2))
    net.operator("SHAPE", [net.last], [numbers[0]])
    net.operator("GATHER", [numbers[0], one], [numbers[1]], axis=0)
    net.operator("FLOOR_DIV", [numbers[1], two], [numbers[2]])
    row = net.tensor(net.name(), (3,), "int32")
    net.operator("PACK", [zero, numbers[2], zero], [row], values_count=3, axis=0)
    ends = [net.integers(0, 0, 0), row] if part == 0 else [row, net.integers(0, 0, 0)]
    masks = {"begin_mask": 7 if part == 0 else 5, "end_mask": 5 if part == 0 else 7}
    return net.put("STRIDED_SLICE", [net.last, *ends, net.integers(1, 1, 1)], (1, ROWS // 2, 6), **masks)


def _both_ways(net: Net) -> Net:
    there = net.last
    back = net.rows(None, None, -1).last
    return net.put("CONCATENATION", [there, back], (1, 2 * ROWS, 6), axis=1)


def _differences(net: Net) -> Net:
    source = net.last
    later = net.rows(1, None).last
    net.last, net.shape = source, (1, ROWS, 6)
    earlier = net.rows(None, -1).last
    return net.put("SUB", [later, earlier], (1, ROWS - 1, 6))


@pytest.mark.parametrize("name", some(list(SLICED), 3, ["both ways", "backwards every third"]))
def test_slices_of_the_axis_are_those_of_each_extent(tmp_path: Path, name: str) -> None:
    net, lower = SLICED[name]
    check(tmp_path, net().content(), lower)


@pytest.mark.parametrize("name", ["but the last", "but the first two", "every third from the second"])
def test_an_extent_that_leaves_nothing_is_refused(tmp_path: Path, name: str) -> None:
    net, lower = SLICED[name]
    found = refused(tmp_path, net().content(), lower - 1)
    assert f"for time={lower - 1}, output tensor 4 ('v5') has no elements: its shape is [1x0x6]" in found


def test_ends_that_no_extent_is_beyond(tmp_path: Path) -> None:
    model = check(tmp_path, Net().part((0, 0, 0), (1, 2**31 - 1, 6), ()).softmax().content())
    assert len(model.plan.steps) == 1, "what takes all is no step"
    last = _of_rows(12).part((0, -15, 0), (1, 1000, 6), ()).content()
    check(tmp_path, last, upper=15)
    assert "it begins at element 0 for 1, 1 for 16, 14 for 29, 15 for 30" in refused(tmp_path, last, upper=30)


@pytest.mark.parametrize("lower", [2, 3, 4])
def test_padding_of_ranges_that_begin_later(tmp_path: Path, lower: int) -> None:
    """The most padding that a stride of three asks for is that of another extent than the first."""
    check(tmp_path, Net().image().conv(8, (1, 5), stride_w=3).content(), lower=lower)
    check(tmp_path, Net().image().depthwise((1, 5), stride_h=3, stride_w=3).content(), lower=lower)


def test_extents_that_come_to_one_number_go_on_as_it(tmp_path: Path) -> None:
    """What was turned for windows is an image again, of four columns."""
    check(tmp_path, Net().image().conv(8, (1, 3), stride_w=3).conv(4, (1, 3)).content(), 10, 12)


def test_the_input_is_an_image(tmp_path: Path) -> None:
    """Which windows slide along, and which is added to what they make."""
    net = Net("float32")
    net.shape = (1, 1, ROWS, 6)
    net.source = net.last = net.value(net.shape)
    net.conv(6, (1, 3))
    net.put("ADD", [net.last, net.source], net.shape)
    check(tmp_path, net.content(), axis=2)


def test_a_wide_range_costs_no_more_than_a_narrow_one(tmp_path: Path) -> None:
    content = Net().image().conv(8, (1, 3), stride_w=2).content()
    assert "elements; kernels count up to" in refused(tmp_path, content, upper=10**9 - 1)


def test_a_window_that_does_not_fit_says_from_which_extent_it_does(tmp_path: Path) -> None:
    content = Net().image().conv(2, (1, 5), **_VALID).content()
    assert "a window of 5 does not fit into 4" in refused(tmp_path, content, lower=4)
    check(tmp_path, content, lower=5)


# Fixed and open: a kernel writes over its own input only where the places of both do not depend on the extent.
LARGER_WORKSPACES = {
    ("same-strides", "int8"): (48, 72),
    ("same-strides", "float32"): (192, 288),
    ("transposed-and-back", "int8"): (88, 152),
    ("transposed-and-back", "float32"): (288, 576),
    ("rounded-behind-itself", "int8"): (84, 116),
    ("rounded-behind-itself", "float32"): (288, 432),
}
# Tables of factors, of 9 bytes for each extent or 5 where no factor is above 1; and zeros for padding of some extents.
MORE_PARAMETERS = {
    ("mean", "int8"): 9 * ROWS,
    ("mean-of-all", "int8"): 5 * ROWS,
    ("mean-of-windows", "int8"): 9 * ROWS // 2,
    ("same-stride-wider", "float32"): 4 * 6,
    ("same-stride-even", "float32"): 4 * 6,
}


@pytest.mark.parametrize(
    ("name", "dtype"), some(CASES, 6, [*LARGER_WORKSPACES, *MORE_PARAMETERS, ("deep", "int8")])
)
def test_the_plan_is_that_of_the_largest_extent(tmp_path: Path, name: str, dtype: str) -> None:
    net, lower = NETS[name]
    file = tmp_path / "m.tflite"
    file.write_bytes(net(dtype).content())
    fixed = bytewright.compile(file).plan
    model = bytewright.compile(file, open=f"1=time:{lower}..{ROWS}")
    opened = model.plan
    if name != "merged":  # its output has another scale than the softmax that makes it
        check_bundle(model.write(tmp_path / "bundle"))
    workspaces = fixed.workspace_bytes, opened.workspace_bytes
    if (name, dtype) in LARGER_WORKSPACES:
        assert workspaces == LARGER_WORKSPACES[name, dtype]
    else:
        assert opened.workspace_bytes <= fixed.workspace_bytes
    more = opened.parameter_bytes - fixed.parameter_bytes
    if (name, dtype) in MORE_PARAMETERS:
        assert more == MORE_PARAMETERS[name, dtype]
    else:
        assert more <= 0


def open_file(tmp_path: Path) -> Path:
    """As Keras writes convolutions over time of `Input((None, 6))`."""
    net = Net()
    net.unknown = ROWS
    net.source = net.last = net.value(net.shape)
    net.expanded(1).conv(8, (1, 3), activation="RELU").squeezed(1)
    net.expanded(1).conv(8, (1, 5), dilation_w_factor=2).squeezed(1).reduce("MEAN", 1)
    file = tmp_path / "m.tflite"
    file.write_bytes(net.content())
    return file


def test_a_file_that_leaves_an_extent_open_is_read_as_its_refusal_says(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file)
    (found,) = caught.value.diagnostics
    assert found.code == "BW106"
    shape, _, rest = (found.help or "").partition(" fixes the size, or ")
    assert shape == "--input-shape v2=1x64x6"
    option, _, _ = rest.partition(" gives each run that extent")
    assert option == "--open v2:1=time:1..200"
    model = bytewright.compile(file, open=option.removeprefix("--open "))
    reference, rng = LiteRt(file), np.random.default_rng(5)
    for extent in (1, 2, 3, 50, 199, 200):
        x = rng.integers(-128, 128, (1, extent, 6), np.int8)
        (wanted,) = reference.run(x)
        assert (np.asarray(model.run(x)) == wanted).all()


def test_an_input_that_is_none_is_said_of_a_file_that_leaves_an_extent_open(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        bytewright.compile(open_file(tmp_path), open="args_0:1=time:1..200")
    (found,) = caught.value.diagnostics
    assert found.code == "BW204"
    assert found.message == "--open args_0:1=time:1..200 is of no input; the model has 'v2'"
    assert found.help == "name one of them: --open INPUT:AXIS=NAME:LO..HI"


OF_SAMPLES = [name for name in NETS if name not in ("transposed-and-back", "rows-behind")]


@pytest.mark.parametrize("name", some(OF_SAMPLES, 8, ["merged"]))
def test_the_batch_is_open_beside_the_axis(tmp_path: Path, name: str) -> None:
    net, lower = NETS[name]
    content = net("int8").content()
    file = tmp_path / "m.tflite"
    file.write_bytes(content)
    model = bytewright.compile(file, open=f"1=time:{lower}..15", batch_max=3)
    assert [symbol.name for symbol in model.plan.symbols] == ["batch", "time"]
    reference, rng = LiteRt(content), np.random.default_rng(5)
    for batch, extent in ((1, 15), (2, lower), (3, lower + 1), (3, 15)):
        x = drawn(rng, (batch, extent, 6), np.int8)
        wanted = np.concatenate([reference.run(x[n : n + 1])[0] for n in range(batch)])
        assert_close(np.asarray(model.run(x)), wanted, extent)


def test_what_has_no_samples_has_no_open_batch_beside_the_axis(tmp_path: Path) -> None:
    file = tmp_path / "m.tflite"
    file.write_bytes(NETS["transposed-and-back"][0]("int8").content())
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, open="1=time:1..15", batch_max=3)
    assert [each.code for each in caught.value.diagnostics] == ["BW111"]


def attention_over_another() -> tuple[Net, int]:
    """The second input is open in the file, and products are of rows of both."""
    net = Net("float32")
    other = net.tensor("other", (1, 1, 6), "float32", shape_signature=(1, -1, 6))
    net.put("BATCH_MATMUL", [net.last, other], (1, ROWS, ROWS), adj_x=False, adj_y=True).softmax()
    net.put("BATCH_MATMUL", [net.last, other], (1, ROWS, 6), adj_x=False, adj_y=False)
    return net, other


@pytest.mark.parametrize("second", ["time", "words"])
def test_two_inputs_are_given_extents_of_one_name_or_of_two(tmp_path: Path, second: str) -> None:
    net, other = attention_over_another()
    file = tmp_path / "m.tflite"
    file.write_bytes(net.build([net.source, other], [net.last]))
    model = bytewright.compile(file, open=["v1:1=time:1..9", f"other:1={second}:1..9"])
    assert [symbol.name for symbol in model.plan.symbols] == list(dict.fromkeys(["time", second]))
    check_bundle(model.write(tmp_path / "bundle"))
    rng, reference = np.random.default_rng(5), LiteRt(file)
    for extent in range(1, 10):
        extents = extent, extent if second == "time" else 10 - extent
        given = [drawn(rng, (1, each, 6), np.float32) for each in extents]
        assert_close(np.asarray(model.run(*given)), reference.run(*given)[0], extent)


def test_two_axes_of_an_input_are_open(tmp_path: Path) -> None:
    """Images of any height and width: element by element, padded, sliced, and their mean."""
    net = Net()
    net.shape = (1, ROWS, 9, 6)
    net.source = net.last = net.value(net.shape)
    net.put("ADD", [net.last, net.last], net.shape).pad((0, 0), (1, 0), (0, 2), (0, 0)).rows(-4, None)
    net.reduce("REDUCE_MAX", 1)
    file = tmp_path / "m.tflite"
    file.write_bytes(net.content())
    model = bytewright.compile(file, open=["1=height:3..9", "2=width:1..7"])
    rng, reference = np.random.default_rng(5), LiteRt(file)
    for height, width in ((3, 1), (3, 7), (9, 1), (9, 7), (5, 4)):
        x = drawn(rng, (1, height, width, 6), np.int8)
        assert_close(np.asarray(model.run(x)), reference.run(x)[0], height)


def test_extents_of_two_names_along_one_axis_are_refused(tmp_path: Path) -> None:
    net = Net()
    other = net.value((1, ROWS, 6))
    net.put("ADD", [net.last, other], net.shape)
    file = tmp_path / "m.tflite"
    file.write_bytes(net.build([net.source, other], [net.last]))
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file, open=["v1:1=time:1..9", "v2:1=words:1..9"])
    (found,) = caught.value.diagnostics
    assert found.code == "BW121"
    assert "extents 'time' and 'words' cannot be opened: 0 (ADD) does not allow it: shapes" in found.message


def test_a_file_with_two_open_extents_of_an_input_is_read_as_its_refusal_says(tmp_path: Path) -> None:
    net = Net()
    source = net.tensor("x", (1, 1, 1), "int8", shape_signature=(1, -1, -1), **AFFINE)
    y = net.tensor("y", (1, 1, 1), "int8", shape_signature=(1, -1, -1), **AFFINE)
    net.operator("ADD", [source, source], [y])
    file = tmp_path / "m.tflite"
    file.write_bytes(net.build([source], [y]))
    with pytest.raises(CompileError) as caught:
        bytewright.compile(file)
    (found,) = caught.value.diagnostics
    assert found.code == "BW106"
    options = (found.help or "").partition(" gives")[0].split("--open ")[1:]
    assert [option.strip() for option in options] == ["x:1=time:1..200", "x:2=extent_2:1..200"]
    model = bytewright.compile(file, open=[option.strip() for option in options])
    x = drawn(np.random.default_rng(5), (1, 3, 200), np.int8)
    assert_close(np.asarray(model.run(x)), LiteRt(file).run(x)[0], 3)


@pytest.mark.skipif(
    not EXPORTS.is_dir(), reason="the data that is not part of the project is missing: ../shared/models"
)
@pytest.mark.parametrize(
    "name", some(["mbv2_i8", "mbv2_float", "mbv3_i8", "mbv3_i16", "resnet_i8", "resnet_dyn8"])
)
def test_an_image_network_takes_images_of_every_height(tmp_path: Path, name: str) -> None:
    """Windows with strides and SAME padding, residual sums, gates, and the mean of all pixels."""
    check(tmp_path, (EXPORTS / "litert_torch" / f"{name}.tflite").read_bytes(), 27, 36)
