"""CAST: numbers and truth values in another element type."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.checks import only, require
from bytewright.ops.result import shaped_like

CASTS = tuple(dtype for dtype in ir.DType if dtype not in (ir.DType.U64, ir.DType.F64))
"""Element types that are cast, and cast to."""


@dataclass(frozen=True, slots=True)
class TflCast(ir.Operation):
    """bool, i8, u8, i16, i32, u32, i64 or f32 -> another of these, whatever the quantisation.

    Integers that do not fit wrap; floats lose what is behind the point, and saturate; what is not zero is true.

    Attributes:
        dtype: Of the result.
        not_a_number: What that becomes, as an integer.
    """

    name: ClassVar[str] = "tfl_cast"
    dtype: ir.DType
    not_a_number: int = 0

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the other type."""
        require(self.dtype in CASTS, f"there is no cast to {self.dtype.value}")
        if self.dtype.is_integer:
            low, high = self.dtype.bounds
            require(low <= self.not_a_number <= high, f"{self.not_a_number} is no {self.dtype.value}")
        operand = only(inputs, *(dtype for dtype in CASTS if dtype is not self.dtype))
        return (ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact; integers beyond 2^24 are rounded to float32."""
        (x,) = inputs
        if x.dtype == np.float32 and self.dtype.is_integer:
            low, high = self.dtype.bounds
            real = x.astype(np.float64)
            fits = (real > float(low - 1)) & (real < float(high + 1))
            whole = np.where(fits, np.trunc(real), 0).astype(self.dtype.numpy)
            beyond = np.where(np.isnan(real), self.not_a_number, np.where(real < 0, low, high))
            return shaped_like(x, np.where(fits, whole, beyond).astype(self.dtype.numpy))
        return shaped_like(x, x.astype(self.dtype.numpy))


OPERATIONS = (TflCast,)
