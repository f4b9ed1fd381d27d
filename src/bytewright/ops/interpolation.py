"""Functions of int16 by tables between whose entries values are interpolated (`arithmetic/interpolation.py`)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.interpolation import (
    MAXIMUM_DEPTH,
    NUM_ENTRIES,
    interpolated,
    sigmoid_int16,
    softmax_int16,
)
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.checks import only, require, require_count, require_dtype
from bytewright.ops.result import saturate, shaped_like


@dataclass(frozen=True, slots=True)
class Interpolate(ir.Operation):
    """x i16, table i16 [513] -> i16: the entries of every 128th value, and lines between them."""

    name: ClassVar[str] = "interpolate"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "table")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require_count(inputs, 2)
        require_dtype(inputs[0], (ir.DType.I16,), "the input")
        _require_table(inputs[1], "the table")
        return (ir.TensorType(inputs[0].shape, ir.DType.I16),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, table = inputs
        return shaped_like(x, saturate(interpolated(x, table), ir.DType.I16))


@dataclass(frozen=True, slots=True)
class TflSigmoid16(ir.Operation):
    """i16 -> i16 with scale 1/32768: LOGISTIC, or TANH, by a table of the logistic function.

    Attributes:
        multiplier, shift: `(x * multiplier + half) >> shift` is in 1/3 of 2^-12.
        is_tanh: Whether it is TANH.
    """

    name: ClassVar[str] = "tfl_sigmoid16"
    multiplier: int
    shift: int
    is_tanh: bool

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require(0 <= self.multiplier <= ir.DType.I16.bounds[1], f"multiplier {self.multiplier} is no i16")
        require(0 <= self.shift <= 31, f"shift {self.shift} is not in 0..31")
        return (ir.TensorType(only(inputs, ir.DType.I16).shape, ir.DType.I16),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        values = sigmoid_int16(x.astype(np.int16), self.multiplier, self.shift, is_tanh=self.is_tanh)
        return shaped_like(x, values.astype(np.int16))


@dataclass(frozen=True, slots=True)
class TflSoftmax16(ir.Operation):
    """softmax over the last axis, x i16, exponentials i16 [513], reciprocals i16 [513] -> i16 with scale 1/32768.

    Attributes:
        multiplier, exponent: From differences of x to 10/65535.
    """

    name: ClassVar[str] = "tfl_softmax16"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "exponentials", "reciprocals")
    multiplier: int
    exponent: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require_count(inputs, 3)
        operand = inputs[0]
        require_dtype(operand, (ir.DType.I16,), "the input")
        for table, role in zip(inputs[1:], self.operand_names[1:], strict=True):
            _require_table(table, f"the table of {role}")
        require(len(operand.shape) >= 1, "the input is a scalar")
        depth = operand.fixed_shape[-1]
        require(depth <= MAXIMUM_DEPTH, f"a row of {depth} values; 32 bits hold the sum of {MAXIMUM_DEPTH}")
        return (ir.TensorType(operand.shape, ir.DType.I16),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, exponentials, reciprocals = inputs
        return (softmax_int16(x, Multiplier(self.multiplier, self.exponent), exponentials, reciprocals),)


def _require_table(operand: ir.TensorType, role: str) -> None:
    """A table has 513 entries of i16."""
    require_dtype(operand, (ir.DType.I16,), role)
    require(operand.shape == (NUM_ENTRIES,), f"{role} does not have {NUM_ENTRIES} entries")


OPERATIONS = (Interpolate, TflSigmoid16, TflSoftmax16)
