"""TFLite's softmax and its logarithm over the last axis: fixed point on i8, floats on f32."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.softmax import MAXIMUM_DEPTH, log_softmax_int8, softmax_int8
from bytewright.ops.checks import QUANTISED, only, require


class _OfRows(ir.Operation):
    """Abstract: a function of the rows along the last axis, i8 -> i8 in fixed point, or f32 -> f32."""

    __slots__ = ()

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        operand = only(inputs, ir.DType.I8, ir.DType.F32)
        require(len(operand.shape) >= 1, "the input is a scalar")
        depth = operand.fixed_shape[-1]
        allowed = operand.dtype is ir.DType.F32 or depth <= MAXIMUM_DEPTH
        require(allowed, f"a row of {depth} values; fixed point holds the sum of {MAXIMUM_DEPTH}")
        return (ir.TensorType(operand.shape, operand.dtype),)


@dataclass(frozen=True, slots=True)
class TflSoftmax(_OfRows):
    """softmax(beta * x) over the last axis, i8 -> i8 or i16, or f32 -> f32.

    Attributes:
        beta: Used on f32 only.
        multiplier, left_shift, difference_min: The prepared integers of `arithmetic.softmax`; used on i8 only.
        dtype: Of the result of i8, whose whole range is 0 to 1.
    """

    name: ClassVar[str] = "tfl_softmax"
    beta: float
    multiplier: int = 0
    left_shift: int = 0
    difference_min: int = 0
    dtype: ir.DType = ir.DType.I8

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape."""
        require(self.dtype in QUANTISED, f"a softmax to {self.dtype.value} is not defined")
        (operand,) = _OfRows.infer(self, inputs)
        return (operand if operand.dtype is ir.DType.F32 else ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for i8; float64 then rounded for f32."""
        (x,) = inputs
        if x.dtype == np.float32:
            # The difference is formed in float32 as the reference does; it is the largest error term.
            difference = (x - x.max(axis=-1, keepdims=True)).astype(np.float64)
            powers = np.exp(difference * np.float64(np.float32(self.beta)))
            return ((powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32),)
        steps = (self.multiplier, self.left_shift, self.difference_min)
        return (softmax_int8(x, *steps, dtype=self.dtype.numpy),)


@dataclass(frozen=True, slots=True)
class TflLogSoftmax(_OfRows):
    """log(softmax(x)) over the last axis, i8 -> i8 with scale 1/16 and zero point 127, or f32 -> f32.

    Attributes:
        multiplier, left_shift, difference_min, back_multiplier, back_shift: The prepared integers of
            `arithmetic.softmax`; used on i8 only.
    """

    name: ClassVar[str] = "tfl_log_softmax"
    multiplier: int = 0
    left_shift: int = 0
    difference_min: int = 0
    back_multiplier: int = 0
    back_shift: int = 0

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for i8; float64 then rounded for f32."""
        (x,) = inputs
        if x.dtype == np.float32:
            difference = (x - x.max(axis=-1, keepdims=True)).astype(np.float64)
            total = np.exp(difference).sum(axis=-1, keepdims=True)
            return ((difference - np.log(total)).astype(np.float32),)
        steps = (self.multiplier, self.left_shift, self.difference_min, self.back_multiplier, self.back_shift)
        return (log_softmax_int8(x, *steps),)


OPERATIONS = (TflLogSoftmax, TflSoftmax)
