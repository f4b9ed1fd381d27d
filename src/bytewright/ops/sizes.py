"""Operators that say how large an extent is which the data decides.

Each has an attribute `count`: the extent in a run, or the most that there is room for. Its last result, i32 [1], is how
large the data would have it: more than the most, or less than 0, is for the run to refuse.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.checks import WIDE, only, require

SIZE = ir.TensorType((1,), ir.DType.I32)
_COMPARED = (ir.DType.I8, ir.DType.U8, ir.DType.I16, *WIDE, ir.DType.F32)


@dataclass(frozen=True, slots=True)
class StatedSize(ir.Operation):
    """A number, i32 or i64 -> the extent that the run says by it, kept within 32 bits."""

    name: ClassVar[str] = "stated_size"
    counts: ClassVar[bool] = True
    count: ir.Extent

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """How much the number asks for."""
        number = only(inputs, *WIDE)
        require(number.num_elements == 1, f"a size of shape [{ir.format_shape(number.shape)}]")
        return (SIZE,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact, but for a number that no extent is."""
        size = min(max(int(inputs[0].reshape(())), -1), ir.DType.I32.bounds[1])
        return (np.array([size], np.int32),)


@dataclass(frozen=True, slots=True)
class TruePlaces(ir.Operation):
    """Indices, i64 [count, rank], of the truth values that hold, in their order."""

    name: ClassVar[str] = "true_places"
    counts: ClassVar[bool] = True
    count: ir.Extent

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """A row for each, and how many there are."""
        operand = only(inputs, ir.DType.BOOL)
        require(len(operand.shape) >= 1, "a single value has no places")
        return (ir.TensorType((self.count, len(operand.shape)), ir.DType.I64), SIZE)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        places = np.argwhere(inputs[0])
        most = ir.upper_bound(self.count)
        return places[:most].astype(np.int64), np.array([len(places)], np.int32)


@dataclass(frozen=True, slots=True)
class DistinctValues(ir.Operation):
    """Each value of a list once, in the order in which they come first, and for each element the place of its own.

    Numbers that are equal are one value; what is not a number is a value of its own each time.
    """

    name: ClassVar[str] = "distinct_values"
    counts: ClassVar[bool] = True
    count: ir.Extent
    dtype: ir.DType

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The values, the places in i32 or i64, and how many values there are."""
        operand = only(inputs, *_COMPARED)
        require(len(operand.shape) == 1, f"[{ir.format_shape(operand.shape)}] is no list")
        require(self.dtype in WIDE, f"places are not counted in {self.dtype.value}")
        places = ir.TensorType(operand.shape, self.dtype)
        return (ir.TensorType((self.count,), operand.dtype), places, SIZE)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        found, first, places = np.unique(inputs[0], return_index=True, return_inverse=True, equal_nan=False)
        order = np.argsort(first)
        rank = np.argsort(order)
        own = rank[places].astype(self.dtype.numpy)
        return found[order][: ir.upper_bound(self.count)], own, np.array([len(found)], np.int32)


Counting = DistinctValues | StatedSize | TruePlaces
OPERATIONS = (DistinctValues, StatedSize, TruePlaces)
