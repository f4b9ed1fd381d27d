"""Operators that move elements without changing them. Any element type."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ir.graph import OMIT_DEFAULT
from bytewright.ops.checks import (
    WIDE,
    only,
    require,
    require_count,
    require_dtype,
    require_elements,
    same_type,
    two,
)


@dataclass(frozen=True, slots=True)
class Pad(ir.Operation):
    """`before` and `after` elements of `value` around each axis."""

    name: ClassVar[str] = "pad"
    before: tuple[int, ...]
    after: tuple[int, ...]
    value: int | float

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Each extent grown by what stands around it."""
        operand = only(inputs)
        rank = len(operand.shape)
        require(len(self.before) == rank == len(self.after), f"padding does not have {rank} axes")
        require(min((*self.before, *self.after), default=0) >= 0, "padding is negative")
        if operand.dtype.is_integer:
            low, high = operand.dtype.bounds
            require(low <= self.value <= high, f"padding value {self.value} leaves {operand.dtype.value}")
        shape: list[ir.Extent] = []
        for extent, before, after in zip(operand.shape, self.before, self.after, strict=True):
            shape.append(ir.quotient(extent, before + after))
        return (ir.TensorType(tuple(shape), operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        widths = list(zip(self.before, self.after, strict=True))
        return (np.pad(x, widths, constant_values=x.dtype.type(self.value)) if widths else x,)


@dataclass(frozen=True, slots=True)
class Reshape(ir.Operation):
    """The same elements in row-major order under another shape, with the same open extents in the same order."""

    name: ClassVar[str] = "reshape"
    is_view: ClassVar[bool] = True
    shape: tuple[ir.Extent, ...]

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The attribute's shape."""
        operand = only(inputs)
        result = ir.TensorType(self.shape, operand.dtype)
        require(
            ir.elements_of(operand.shape) == ir.elements_of(self.shape)
            and min(result.fixed_shape, default=0) >= 0,
            f"[{ir.format_shape(operand.shape)}] cannot become [{ir.format_shape(self.shape)}]",
        )
        return (result,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact. With more than one open extent the shape that is meant cannot be told."""
        require(len(_open(self.shape)) <= 1, f"[{ir.format_shape(self.shape)}] has several open extents")
        return (inputs[0].reshape([extent if isinstance(extent, int) else -1 for extent in self.shape]),)

    def with_batch(self, batch: ir.Symbol) -> ir.Operation:
        """The shape begins with the batch."""
        return Reshape((batch, *self.shape[1:])) if self.shape[:1] == (1,) else self


def total_extent(extents: Sequence[ir.Extent]) -> ir.Extent:
    """The sum of extents.

    Raises:
        ValueError: It is no extent: several of them are open, and follow from several symbols, or are rounded.
    """
    total: ir.Extent | None = 0
    for extent in extents:
        total = ir.total(total, extent)
        require(total is not None, "several open extents are along one axis")
        assert total is not None
    return total


def _open(shape: tuple[ir.Extent, ...]) -> list[ir.OpenExtent]:
    return [extent for extent in shape if not isinstance(extent, int)]


@dataclass(frozen=True, slots=True)
class Identity(ir.Operation):
    """TOSA `identity`: a copy of a tensor in memory of its own."""

    name: ClassVar[str] = "identity"

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        return same_type(inputs)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """The same values."""
        return (inputs[0],)


@dataclass(frozen=True, slots=True)
class Transpose(ir.Operation):
    """Axis i of the result is axis permutation[i] of the operand."""

    name: ClassVar[str] = "transpose"
    permutation: tuple[int, ...]

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's extents, permuted."""
        operand = only(inputs)
        complete = sorted(self.permutation) == list(range(len(operand.shape)))
        require(complete, f"{self.permutation} is not a permutation of {len(operand.shape)} axes")
        return (ir.TensorType(tuple(operand.shape[axis] for axis in self.permutation), operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.array(np.transpose(inputs[0], self.permutation), order="C"),)


@dataclass(frozen=True, slots=True)
class Concat(ir.Operation):
    """Operands one after the other along an axis."""

    name: ClassVar[str] = "concat"
    axis: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The first operand's shape with the sum of extents along the axis."""
        require(len(inputs) >= 1, "there is nothing to concatenate")
        first = inputs[0]
        require(0 <= self.axis < len(first.shape), f"axis {self.axis} is not one of {len(first.shape)}")
        rest = first.shape[: self.axis] + first.shape[self.axis + 1 :]
        for operand in inputs[1:]:
            others = operand.shape[: self.axis] + operand.shape[self.axis + 1 :]
            fits = len(operand.shape) == len(first.shape) and others == rest and operand.dtype is first.dtype
            require(fits, f"{operand} does not continue {first} along axis {self.axis}")
        total = total_extent([operand.shape[self.axis] for operand in inputs])
        shape = (*first.shape[: self.axis], total, *first.shape[self.axis + 1 :])
        return (ir.TensorType(shape, first.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.concatenate(inputs, axis=self.axis),)


@dataclass(frozen=True, slots=True)
class ShiftIn(ir.Operation):
    """kept, new -> of both, one after the other along an axis, the last so many as were kept.

    The kernel changes what was kept in its place.
    """

    name: ClassVar[str] = "shift_in"
    operand_names: ClassVar[tuple[str, ...]] = ("kept", "new")
    updates: ClassVar[int | None] = 0
    axis: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The first operand's type."""
        require_count(inputs, 2)
        (both,) = Concat(self.axis).infer(inputs)
        kept, new = (operand.fixed_shape[self.axis] for operand in inputs)
        require(new <= kept, f"{new} are shifted in where {kept} are kept")
        return (ir.TensorType(inputs[0].shape, both.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        both = np.concatenate(inputs, axis=self.axis)
        gone = inputs[1].shape[self.axis]
        return (np.array(np.split(both, [gone], axis=self.axis)[1], order="C"),)


@dataclass(frozen=True, slots=True)
class Slice(ir.Operation):
    """Element i of the result, along each axis, is element start + i * stride of the operand.

    Strides may be negative; every element taken must exist. Starts and sizes along an open axis may follow from the
    extent that it has.

    Attributes:
        whole_to: Axes, each with the largest extent of which all elements are taken; along the others with a start of
            0, a stride of 1 and all elements, these are all of any extent. Empty where no extent is to be opened.
    """

    name: ClassVar[str] = "slice"
    start: tuple[ir.Extent, ...]
    size: tuple[ir.Extent, ...]
    stride: tuple[int, ...]
    whole_to: tuple[tuple[int, int], ...] = field(default=(), metadata=OMIT_DEFAULT)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The attribute's sizes."""
        operand = only(inputs)
        rank = len(operand.shape)
        require(len(self.start) == len(self.size) == len(self.stride) == rank, f"not {rank} axes")
        for axis, stride in enumerate(self.stride):
            require(stride != 0, f"stride {stride} along axis {axis} is invalid")
            for start, size, extent in ir.extreme_values(
                self.start[axis], self.size[axis], operand.shape[axis]
            ):
                require(size >= 0, f"size {size} along axis {axis}, of extent {extent}, is invalid")
                last = start + (size - 1) * stride
                inside = size == 0 or (0 <= start < extent and 0 <= last < extent)
                require(inside, f"elements {start}..{last} along axis {axis} leave the extent {extent}")
        return (ir.TensorType(self.size, operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact. What is taken from an open start on, or so many of, cannot be told of an operand alone."""
        result = inputs[0]
        for axis, (start, size, stride) in enumerate(zip(self.start, self.size, self.stride, strict=True)):
            if isinstance(start, int) and isinstance(size, int):
                result = np.take(result, start + stride * np.arange(size), axis=axis)
            else:
                whole = (start, stride) == (0, 1) and isinstance(size, ir.Symbol)
                require(whole, f"elements {start} on along axis {axis} cannot be told")
        return (np.array(result, order="C"),)

    def with_batch(self, batch: ir.Symbol) -> ir.Operation:
        """The sizes begin with the batch."""
        return replace(self, size=(batch, *self.size[1:])) if self.size[:1] == (1,) else self


@dataclass(frozen=True, slots=True)
class Tile(ir.Operation):
    """TOSA `tile`: the operand so many times along each axis, one after the other."""

    name: ClassVar[str] = "tile"
    multiples: tuple[ir.Extent, ...]

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """Each extent times its multiple, one of which may be open; an open extent is there once."""
        operand = only(inputs)
        require(
            len(self.multiples) == len(operand.shape), f"multiples for {len(operand.shape)} axes are needed"
        )
        least = min(map(ir.lower_bound, self.multiples), default=1)
        require(least >= 0, f"multiples {ir.format_shape(self.multiples)}")
        shape: list[ir.Extent] = []
        for extent, multiple in zip(operand.shape, self.multiples, strict=True):
            require(isinstance(extent, int) or multiple == 1, f"the open extent {extent} is repeated")
            shape.append(ir.multiple(multiple, extent) if isinstance(extent, int) else extent)
        return (ir.TensorType(tuple(shape), operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.tile(inputs[0], tuple(map(ir.upper_bound, self.multiples))),)


@dataclass(frozen=True, slots=True)
class Gather(ir.Operation):
    """Elements of an axis of `values` that `indices`, i32 or i64, name: numpy's `take` along it, each batch its own.

    Both operands have the first `batch_axes` axes; in the result the other axes of the indices stand in place of
    `axis`. An index before the first element means that, and one beyond the last means the last.
    """

    name: ClassVar[str] = "gather"
    axis: int
    batch_axes: int = 0
    operand_names: ClassVar[tuple[str, ...]] = ("values", "indices")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The shape of `values` with that of `indices` in place of the axis."""
        values, indices = two(inputs)
        require_dtype(indices, WIDE, "what is taken")
        require(0 <= self.axis < len(values.shape), f"axis {self.axis} is not one of {len(values.shape)}")
        fits = 0 <= self.batch_axes <= min(self.axis, len(indices.shape))
        require(
            fits, f"{self.batch_axes} batch axes for axis {self.axis} and {len(indices.shape)} of the indices"
        )
        batch = indices.shape[: self.batch_axes]
        require(
            values.shape[: self.batch_axes] == batch,
            f"values [{ir.format_shape(values.shape)}] do not begin as indices do, [{ir.format_shape(batch)}]",
        )
        require_elements(values.shape[self.axis], self.axis, indices.shape)
        shape = (
            *values.shape[: self.axis],
            *indices.shape[self.batch_axes :],
            *values.shape[self.axis + 1 :],
        )
        return (ir.TensorType(shape, values.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        values, indices = inputs[0], inputs[1].astype(np.int64)
        batch = values.shape[: self.batch_axes]
        if not batch:
            return (np.array(np.take(values, indices, axis=self.axis, mode="clip")),)
        axis = self.axis - self.batch_axes
        taken = [np.take(values[each], indices[each], axis=axis, mode="clip") for each in np.ndindex(batch)]
        return (np.array(taken).reshape((*batch, *taken[0].shape)),)


OPERATIONS = (Concat, Gather, Identity, Pad, Reshape, ShiftIn, Slice, Tile, Transpose)


def reshaped(function: ir.Function) -> dict[str, str]:
    """The tensor behind each name that is only another shape of one."""
    origin: dict[str, str] = {}
    for node in function.nodes:
        if isinstance(node.operation, Reshape):
            origin[node.outputs[0].name] = origin.get(node.inputs[0], node.inputs[0])
    return origin
