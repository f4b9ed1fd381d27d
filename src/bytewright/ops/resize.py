"""Rows and columns made more or fewer, with TFLite's arithmetic of positions (`arithmetic/resize.py`)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.arithmetic.resize import FRACTION_BITS, ONE, Int64, ResizedAxis
from bytewright.ops.checks import ARITHMETIC, only, require, require_dtype, require_elements, require_rank
from bytewright.ops.window import Pair

_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Resize(ir.Operation):
    """Abstract: [N,H,W,C] to [N,OH,OW,C].

    Attributes:
        size: (OH, OW); each may follow from an open extent, as the input's rows and columns may.
        align_corners: Whether corners of input and output lie over each other.
        half_pixel_centers: Whether positions are those of the middles of elements.
    """

    dtypes: ClassVar[tuple[ir.DType, ...]] = ARITHMETIC
    size: tuple[ir.Extent, ir.Extent]
    align_corners: bool = False
    half_pixel_centers: bool = False

    @property
    def fixed_size(self) -> Pair:
        """(OH, OW).

        Raises:
            ValueError: One of them follows from an open extent.
        """
        rows, columns = self.size
        if not isinstance(rows, int) or not isinstance(columns, int):
            raise ValueError(f"the size has {rows} rows and {columns} columns, which cannot be told")
        return rows, columns

    def axes(self, height: int, width: int) -> tuple[ResizedAxis, ResizedAxis]:
        """Rows and columns, of an input of this size.

        Raises:
            ValueError: As of `fixed_size`.
        """
        rows, columns = self.fixed_size
        return self.axis(height, rows), self.axis(width, columns)

    def axes_of_runs(self, extent: ir.Extent, out: ir.Extent) -> Iterator[ResizedAxis]:
        """An axis of so many elements in each run that there may be: many runs at once, which arrays are of."""
        (symbol,) = ir.symbols_in((extent, out)) or (ir.Symbol("", 1, 1),)
        for first in range(symbol.lower, symbol.upper + 1, _AT_ONCE):
            values: Any = np.arange(first, min(first + _AT_ONCE, symbol.upper + 1), dtype=np.int64)
            yield self.axis(ir.extent_at(extent, values), ir.extent_at(out, values))

    def axis(self, extent: Any, out: Any) -> ResizedAxis:
        """Rows or columns, so many of the input and of the output."""
        return ResizedAxis(extent, out, self.align_corners, self.half_pixel_centers)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """[N,OH,OW,C] of the input's type."""
        operand = only(inputs)
        require_rank(operand, 4, "the input")
        require_dtype(operand, self.dtypes, "the input")
        batch, *spatial, channels = operand.shape
        require(isinstance(channels, int), "channels must be fixed")
        require(
            min(map(ir.lower_bound, self.size)) >= 1,
            f"the size ({', '.join(map(str, self.size))}) has no element",
        )
        for axis, (extent, out) in enumerate(zip(spatial, self.size, strict=True), 1):
            require_elements(extent, axis)
            require(
                len(ir.symbols_in((extent, out))) <= 1,
                f"along axis {axis}, {extent} become {out}, which is another open extent",
            )
        return (ir.TensorType((batch, *self.size, channels), operand.dtype),)


@dataclass(frozen=True, slots=True)
class TflResizeNearest(_Resize):
    """Each element is the nearest one of the input, whose position is computed in float32."""

    name: ClassVar[str] = "tfl_resize_nearest"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*ARITHMETIC, ir.DType.I32, ir.DType.BOOL)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """A move."""
        (x,) = inputs
        rows, columns = self.axes(*x.shape[1:3])
        return (np.ascontiguousarray(x[:, rows.nearest()][:, :, columns.nearest()]),)


@dataclass(frozen=True, slots=True)
class TflResizeBilinear(_Resize):
    """Each element is the mean of the four around its position, weighted by its distances.

    Of integers, positions are in 1/1024, sums exact, and the result is rounded half away from zero; of f32, all is
    float32, and an element is multiplied with the weight of its row first, and then of its column.

    Attributes:
        unsigned: Whether i8 elements stand for uint8, 128 more: resized as those in float32, and rounded half up.
    """

    name: ClassVar[str] = "tfl_resize_bilinear"
    unsigned: bool = False

    def is_fixed(self, dtype: ir.DType) -> bool:
        """Whether positions and sums are integers."""
        return dtype.is_integer and not self.unsigned

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """As of each resize; no position may lie behind the input."""
        result = super(TflResizeBilinear, self).infer(inputs)
        dtype = inputs[0].dtype
        require(not self.unsigned or dtype is ir.DType.I8, f"{dtype.value} elements stand for no uint8")
        for extent, out in zip(inputs[0].shape[1:3], self.size, strict=True):
            _require_inside(self, extent, out, fixed=self.is_fixed(dtype))
        return result

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; float32 throughout for f32."""
        (x,) = inputs
        if self.unsigned:
            least = ir.DType.I8.bounds[0]
            (raw,) = replace(self, unsigned=False).evaluate((x.astype(np.float32) - np.float32(least),))
            rounded = np.add(raw, np.float32(0.5)).astype(np.int16)
            return ((rounded + least).astype(np.int8),)
        fixed = x.dtype != np.float32
        (y0, y1, down), (x0, x1, right) = (_weighted(axis, fixed=fixed) for axis in self.axes(*x.shape[1:3]))
        down, right = down[:, np.newaxis, np.newaxis], right[np.newaxis, :, np.newaxis]
        one = ONE if fixed else np.float32(1)
        wide: NDArray[Any] = x.astype(np.int64) if fixed else x
        total = (
            wide[:, y0][:, :, x0] * (one - down) * (one - right)
            + wide[:, y1][:, :, x0] * down * (one - right)
            + wide[:, y0][:, :, x1] * (one - down) * right
            + wide[:, y1][:, :, x1] * down * right
        )
        if not fixed:
            return (np.asarray(total, dtype=np.float32),)
        half = 1 << (2 * FRACTION_BITS - 1)
        rounded = np.sign(total) * ((np.abs(total) + half) >> (2 * FRACTION_BITS))
        return (rounded.astype(x.dtype),)

    def work_per_element(self, inputs: tuple[ir.TensorType, ...]) -> int:
        """Four products."""
        del inputs
        return 4


@lru_cache(maxsize=64)
def _require_inside(operation: TflResizeBilinear, extent: ir.Extent, out: ir.Extent, *, fixed: bool) -> None:
    """Refuses an axis as `ResizedAxis.require_inside`, in any run; each question is answered once."""
    for axis in operation.axes_of_runs(extent, out):
        axis.require_inside(fixed=fixed)


def _weighted(axis: ResizedAxis, *, fixed: bool) -> tuple[Int64, Int64, NDArray[Any]]:
    """The elements before and after each position, and the weight of the one after."""
    before, after = axis.between(fixed=fixed)
    if fixed:
        return before, after, axis.fixed_positions() - before * ONE
    return before, after, axis.positions() - before.astype(np.float32)


OPERATIONS = (TflResizeNearest, TflResizeBilinear)
