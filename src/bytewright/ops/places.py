"""Operators that find places or take them, and running sums."""

from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ir.graph import OMIT_DEFAULT
from bytewright.ops.checks import WIDE, only, require, require_count, require_dtype, require_elements, two

_COMPARED = (ir.DType.I8, ir.DType.U8, ir.DType.I16, *WIDE, ir.DType.F32, ir.DType.BOOL)


def _without(shape: tuple[ir.Extent, ...], axis: int) -> tuple[ir.Extent, ...]:
    """A shape without an axis, which must be there."""
    require(0 <= axis < len(shape), f"axis {axis} is not one of {len(shape)}")
    return (*shape[:axis], *shape[axis + 1 :])


@dataclass(frozen=True, slots=True)
class _ArgExtremum(ir.Operation):
    """Abstract: the place of the first element along an axis that no other is beyond, in i32 or i64."""

    axis: int
    dtype: ir.DType

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The shape without the axis."""
        operand = only(inputs, *_COMPARED)
        shape = _without(operand.shape, self.axis)
        require_elements(operand.shape[self.axis], self.axis)
        require(self.dtype in WIDE, f"places are not counted in {self.dtype.value}")
        return (ir.TensorType(shape, self.dtype),)


@dataclass(frozen=True, slots=True)
class ArgMax(_ArgExtremum):
    """TOSA `argmax`: the place of the greatest element; truth values are 0 and 1."""

    name: ClassVar[str] = "argmax"

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.asarray(np.argmax(inputs[0], axis=self.axis), self.dtype.numpy),)


@dataclass(frozen=True, slots=True)
class ArgMin(_ArgExtremum):
    """The place of the least element."""

    name: ClassVar[str] = "argmin"

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.asarray(np.argmin(inputs[0], axis=self.axis), self.dtype.numpy),)


@dataclass(frozen=True, slots=True)
class TopKPlaces(ir.Operation):
    """Places of the greatest elements along the last axis, in i32, the greatest first, and the first of those alike.

    What is not a number is smaller than all numbers, and alike.
    """

    name: ClassVar[str] = "top_k_places"
    count: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape, with the count in place of the last extent."""
        operand = only(inputs)
        outer = _without(operand.shape, len(operand.shape) - 1)
        require_dtype(operand, _COMPARED[:-1], "the input")
        extent = ir.lower_bound(operand.shape[-1])
        require(1 <= self.count <= extent, f"{self.count} of {extent} elements are taken")
        return (ir.TensorType((*outer, self.count), ir.DType.I32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        # Not the negatives, of which the least number has none.
        turned = np.flip(x, -1)
        is_none = np.isnan(turned)
        last = np.lexsort((np.where(is_none, 0, turned), ~is_none), axis=-1)
        order = x.shape[-1] - 1 - np.flip(last, -1)
        return (np.array(order[..., : self.count], np.int32),)


@dataclass(frozen=True, slots=True)
class GatherNd(ir.Operation):
    """values, indices [..., n], i32 or i64 -> for each row of the indices the part of `values` at its n numbers.

    A number before the first element of its axis means that, and one beyond the last means the last.
    """

    name: ClassVar[str] = "gather_nd"
    operand_names: ClassVar[tuple[str, ...]] = ("values", "indices")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The shape of the indices without their last axis, and what is left of that of `values`."""
        values, indices = two(inputs)
        require_dtype(indices, WIDE, "what is taken")
        rank = len(values.shape)
        require(len(indices.shape) >= 1, "the indices have no axis")
        count = indices.shape[-1]
        fits = isinstance(count, int) and 1 <= count <= rank
        require(fits, f"indices [{ir.format_shape(indices.shape)}] into {rank} axes")
        assert isinstance(count, int)
        for axis, extent in enumerate(values.shape[:count]):
            require_elements(extent, axis, indices.shape[:-1])
        return (ir.TensorType((*indices.shape[:-1], *values.shape[count:]), values.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        values, indices = inputs
        columns = np.moveaxis(indices, -1, 0)
        taken = tuple(
            np.clip(column, 0, extent - 1) for column, extent in zip(columns, values.shape, strict=False)
        )
        return (np.asarray(values[taken], values.dtype),)


@dataclass(frozen=True, slots=True)
class CumulativeSum(ir.Operation):
    """Sums of the elements along an axis up to each one, of i32 and i64 modulo 2^32 and 2^64, or of f32 in order.

    Attributes:
        exclusive: Whether each sum is without its own element.
        reverse: Whether sums begin at the end.
    """

    name: ClassVar[str] = "cumulative_sum"
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        operand = only(inputs)
        _without(operand.shape, self.axis)
        require_dtype(operand, (*WIDE, ir.DType.F32), "the input")
        return (ir.TensorType(operand.shape, operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; each sum of f32 is rounded."""
        (x,) = inputs
        turned = np.flip(x, self.axis) if self.reverse else x
        sums = np.cumsum(turned, axis=self.axis, dtype=x.dtype)
        if self.exclusive:
            whole = [(1, 0) if axis == self.axis else (0, 0) for axis in range(x.ndim)]
            sums = np.pad(sums, whole).take(range(x.shape[self.axis]), axis=self.axis)
        return (np.array(np.flip(sums, self.axis) if self.reverse else sums, order="C"),)


@dataclass(frozen=True, slots=True)
class UpdateSlice(ir.Operation):
    """operand, update, start i32 or i64 [rank] -> the operand with the update's elements from `start` on.

    A start from which the update would not fit means the nearest from which it does.
    """

    name: ClassVar[str] = "update_slice"
    operand_names: ClassVar[tuple[str, ...]] = ("operand", "update", "start")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require_count(inputs, 3)
        operand, update, start = inputs
        require_dtype(update, (operand.dtype,), "the update")
        require_dtype(start, WIDE, "the start")
        rank = len(operand.shape)
        shapes = f"[{ir.format_shape(update.shape)}] in [{ir.format_shape(operand.shape)}]"
        fits = len(update.shape) == rank and start.shape == (rank,)
        require(fits, f"an update {shapes} from [{ir.format_shape(start.shape)}] on")
        for own, whole in zip(update.shape, operand.shape, strict=True):
            is_within = all(least <= most for least, most in ir.extreme_values(own, whole))
            require(is_within, f"an update {shapes}")
        return (ir.TensorType(operand.shape, operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        operand, update, start = inputs
        last = [whole - own for whole, own in zip(operand.shape, update.shape, strict=True)]
        first = [min(max(int(number), 0), most) for number, most in zip(start.tolist(), last, strict=True)]
        result = np.array(operand)
        result[tuple(slice(n, n + own) for n, own in zip(first, update.shape, strict=True))] = update
        return (result,)


@dataclass(frozen=True, slots=True)
class _Scatter(ir.Operation):
    """Abstract: indices i32|i64 [..., n], updates -> a tensor of `shape` that begins as one number, and at the numbers
    in each row of the indices is combined with its update, one after the other.

    A number before the first element of its axis means that, and one beyond the last means the last.
    """

    operand_names: ClassVar[tuple[str, ...]] = ("indices", "updates")
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*WIDE, ir.DType.F32)
    function: ClassVar[np.ufunc]
    shape: tuple[int, ...]

    def start(self, dtype: ir.DType) -> int | float:
        """What the result is where there is no update."""
        raise NotImplementedError

    def combine(self, parts: ir.Array, places: NDArray[np.int64], updates: ir.Array) -> None:
        """Puts updates into parts of the result, which have numbers."""
        self.function.at(parts, places, updates)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The attribute's shape in the type of the updates."""
        indices, updates = two(inputs)
        require_dtype(indices, WIDE, "what is written to")
        require_dtype(updates, self.dtypes, "the updates")
        require(len(indices.shape) >= 1, "the indices have no axis")
        count = indices.shape[-1]
        fits = isinstance(count, int) and 1 <= count <= len(self.shape)
        require(fits, f"indices [{ir.format_shape(indices.shape)}] into {len(self.shape)} axes")
        assert isinstance(count, int)
        expected = (*indices.shape[:-1], *self.shape[count:])
        shapes = f"[{ir.format_shape(updates.shape)}], not [{ir.format_shape(expected)}]"
        require(updates.shape == expected, f"the updates are {shapes}")
        return (ir.TensorType(self.shape, updates.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; one float32 operation after the other."""
        indices, updates = inputs
        result = np.full(self.shape, self.start(ir.DType.of(updates.dtype)), updates.dtype)
        count = indices.shape[-1]
        extents, rest = self.shape[:count], self.shape[count:]
        rows = np.clip(indices.reshape(-1, count).astype(np.int64), 0, np.array(extents) - 1)
        places = np.array(np.ravel_multi_index(tuple(rows.T), extents), np.int64)
        self.combine(result.reshape(-1, *rest), places, updates.reshape(len(rows), *rest))
        return (result,)


@dataclass(frozen=True, slots=True)
class ScatterNd(_Scatter):
    """Updates added to zeros; integers wrap."""

    name: ClassVar[str] = "scatter_nd"
    function: ClassVar[np.ufunc] = np.add
    dtypes: ClassVar[tuple[ir.DType, ...]] = _COMPARED

    def start(self, dtype: ir.DType) -> int | float:
        """Zero."""
        del dtype
        return 0


@dataclass(frozen=True, slots=True)
class ScatterProduct(_Scatter):
    """Ones multiplied by updates; integers wrap."""

    name: ClassVar[str] = "scatter_product"
    function: ClassVar[np.ufunc] = np.multiply

    def start(self, dtype: ir.DType) -> int | float:
        """One."""
        del dtype
        return 1


@dataclass(frozen=True, slots=True)
class ScatterMax(_Scatter):
    """The greatest updates; where there is none, the least number of the type.

    Attributes:
        is_from_infinity: Whether that of f32 is minus infinity, not the least finite one.
    """

    name: ClassVar[str] = "scatter_max"
    function: ClassVar[np.ufunc] = np.maximum
    is_from_infinity: bool = field(default=False, metadata=OMIT_DEFAULT)

    def start(self, dtype: ir.DType) -> int | float:
        """The least number."""
        if dtype.is_integer:
            return dtype.bounds[0]
        return -inf if self.is_from_infinity else float(np.finfo(np.float32).min)


@dataclass(frozen=True, slots=True)
class ScatterMin(_Scatter):
    """The least updates; where there is none, the greatest number of the type.

    Attributes:
        is_from_infinity: Whether that of f32 is infinity, not the greatest finite one.
    """

    name: ClassVar[str] = "scatter_min"
    function: ClassVar[np.ufunc] = np.minimum
    is_from_infinity: bool = field(default=False, metadata=OMIT_DEFAULT)

    def start(self, dtype: ir.DType) -> int | float:
        """The greatest number."""
        if dtype.is_integer:
            return dtype.bounds[1]
        return inf if self.is_from_infinity else float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class ScatterLast(_Scatter):
    """The last updates; where there is none, `rest`."""

    name: ClassVar[str] = "scatter_last"
    dtypes: ClassVar[tuple[ir.DType, ...]] = _COMPARED
    rest: int | float

    def start(self, dtype: ir.DType) -> int | float:
        """The rest."""
        del dtype
        return self.rest

    def combine(self, parts: ir.Array, places: NDArray[np.int64], updates: ir.Array) -> None:
        """One over the other."""
        for place, update in zip(places.tolist(), updates, strict=True):
            parts[place] = update


Scatter = ScatterLast | ScatterMax | ScatterMin | ScatterNd | ScatterProduct
OPERATIONS = (
    ArgMax,
    ArgMin,
    CumulativeSum,
    GatherNd,
    ScatterLast,
    ScatterMax,
    ScatterMin,
    ScatterNd,
    ScatterProduct,
    TopKPlaces,
    UpdateSlice,
)
