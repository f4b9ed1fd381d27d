"""Between real numbers and those that stand for them, element by element: the border to floats, and tables.

Unary operators on i8 other than a clamp are a `Table`: 256 values computed at import.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.tables import dequantize, quantize_float
from bytewright.ops.checks import QUANTISED, only, require, require_count, require_dtype, scaled_type
from bytewright.ops.result import shaped_like

_OF_BYTES = (ir.DType.I8, ir.DType.U8)


@dataclass(frozen=True, slots=True)
class Table(ir.Operation):
    """x i8, table i8 [256] -> i8: y = table[x + 128]."""

    name: ClassVar[str] = "table"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "table")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require_count(inputs, 2)
        require_dtype(inputs[0], (ir.DType.I8,), "the input")
        require_dtype(inputs[1], (ir.DType.I8,), "the table")
        require(inputs[1].shape == (256,), "the table does not have 256 values")
        return (ir.TensorType(inputs[0].shape, ir.DType.I8),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, table = inputs
        return shaped_like(x, table[x.astype(np.int64) - ir.DType.I8.bounds[0]])


@dataclass(frozen=True, slots=True)
class TflQuantize(ir.Operation):
    """f32 -> i8|i16: saturate(round_half_away(x / scale) + zero_point); scale is a float32 value."""

    name: ClassVar[str] = "tfl_quantize"
    scale: float
    zero_point: int
    dtype: ir.DType = ir.DType.I8

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the attribute's type."""
        require(self.dtype in QUANTISED, f"there is no quantize to {self.dtype.value}")
        return scaled_type(inputs, self.scale, (ir.DType.F32,), self.dtype)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact: a float32 quotient, then one rounding."""
        (x,) = inputs
        found = quantize_float(x.astype(np.float32), self.scale, self.zero_point, self.dtype.bounds)
        return shaped_like(x, found.astype(self.dtype.numpy))


@dataclass(frozen=True, slots=True)
class TflDequantize(ir.Operation):
    """i8|i16 -> f32: scale * (x - zero_point); scale is a float32 value."""

    name: ClassVar[str] = "tfl_dequantize"
    scale: float
    zero_point: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in f32."""
        return scaled_type(inputs, self.scale, QUANTISED, ir.DType.F32)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """One float32 product."""
        (x,) = inputs
        return shaped_like(x, dequantize(x.astype(np.int16), self.scale, self.zero_point))


@dataclass(frozen=True, slots=True)
class Recentre(ir.Operation):
    """Between u8 and i8: 128 less or 128 more, so that zero points move along and the values mean the same."""

    name: ClassVar[str] = "recentre"
    dtype: ir.DType

    @property
    def offset(self) -> int:
        """What is added."""
        least = ir.DType.I8.bounds[0]
        return least if self.dtype is ir.DType.I8 else -least

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the other type."""
        require(self.dtype in _OF_BYTES, f"there is no recentre to {self.dtype.value}")
        operand = only(inputs, *(dtype for dtype in _OF_BYTES if dtype is not self.dtype))
        return (ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        offset = self.offset
        return (np.asarray(x.astype(np.int16) + offset, self.dtype.numpy),)


OPERATIONS = (Recentre, Table, TflDequantize, TflQuantize)
