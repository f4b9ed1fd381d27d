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
_MOST = ir.DType.I32.bounds[1]


@dataclass(frozen=True, slots=True)
class Measured(ir.Operation):
    """A number, i32 or i64, as an extent."""

    name: ClassVar[str] = "measured"
    counts: ClassVar[bool] = True
    count: ir.Extent

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The size alone."""
        operand = only(inputs, *WIDE)
        shape = ir.format_shape(operand.shape)
        require(operand.num_elements == 1, f"a size of shape [{shape}] is not one number")
        return (SIZE,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact, but for what no extent can be."""
        return (np.clip(inputs[0].reshape(1), -1, _MOST).astype(np.int32),)


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


Counting = Measured | TruePlaces
OPERATIONS = (Measured, TruePlaces)
