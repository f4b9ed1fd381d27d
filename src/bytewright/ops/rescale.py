"""Requantisation: from an accumulator or one quantisation to another, with the rounding as an attribute."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.graph import OMIT_DEFAULT
from bytewright.ops.arithmetic.numerics import Rounding
from bytewright.ops.arithmetic.rescale import Int64, double_round, real_round, single_round
from bytewright.ops.checks import QUANTISED, WIDE, require, require_count, require_dtype, scaled_type, two
from bytewright.ops.result import in_32_bits, saturate, shaped_like

_RESCALED = (ir.DType.I8, ir.DType.I16, ir.DType.I32)


@dataclass(frozen=True, slots=True)
class Rescale(ir.Operation):
    """x i8|i16|i32|i64, multiplier i32 [1|C], shift i8 [1|C] -> x's shape in `dtype`; i64 is rounded once.

    y = saturate(round(((x - input_zero_point) << left_shift) * multiplier * 2^(shift - 31)) + output_zero_point),
    with C the last extent of x. A multiplier of 0 gives the output zero point.
    """

    name: ClassVar[str] = "rescale"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "multiplier", "shift")
    rounding: Rounding
    input_zero_point: int
    output_zero_point: int
    left_shift: int
    dtype: ir.DType

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the attribute's type."""
        require_count(inputs, 3)
        operand, multiplier, shift = inputs
        wide = (ir.DType.I64,) if self.rounding is Rounding.SINGLE_ROUND else ()
        require_dtype(operand, (*_RESCALED, *wide), "the input")
        require_dtype(multiplier, (ir.DType.I32,), "the multiplier")
        require_dtype(shift, (ir.DType.I8,), "the shift")
        _check_channels(operand, multiplier, "multiplier")
        require(shift.shape == multiplier.shape, "multiplier and shift differ in shape")
        require(self.dtype in _RESCALED, f"a rescale to {self.dtype.value} is not defined")
        roundings = (Rounding.DOUBLE_ROUND, Rounding.SINGLE_ROUND)
        require(self.rounding in roundings, f"{self.rounding} needs a real scale (tfl_real_rescale)")
        require(0 <= self.left_shift <= 22, f"left shift {self.left_shift} is not in 0..22")
        return (ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact integers."""
        operand, multiplier, shift = inputs
        x = (operand.astype(np.int64) - self.input_zero_point) << self.left_shift
        exponent = shift.astype(np.int64)
        match self.rounding:
            case Rounding.DOUBLE_ROUND:
                shifted = x << np.maximum(exponent, 0)
                shifted = in_32_bits(shifted, "the left shift of a rescale")
                scaled = double_round(shifted, multiplier, 0, np.maximum(-exponent, 0))
            case Rounding.SINGLE_ROUND:
                scaled = single_round(x, multiplier, 31 - exponent)
            case Rounding.REAL_ROUND:
                raise InternalError("a rescale with integer multipliers cannot round as REAL_ROUND does")
        return shaped_like(operand, saturate(scaled + self.output_zero_point, self.dtype))


@dataclass(frozen=True, slots=True)
class TflRealRescale(ir.Operation):
    """x i32|i64, scale f64 [1|C] -> `dtype`: y = saturate(round_half_away(float64(x) * scale) + output_zero_point).

    What LiteRT's reference FULLY_CONNECTED does.
    """

    name: ClassVar[str] = "tfl_real_rescale"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "scale")
    output_zero_point: int
    dtype: ir.DType

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the attribute's type."""
        operand, scale = two(inputs)
        require_dtype(operand, WIDE, "the input")
        require_dtype(scale, (ir.DType.F64,), "the scale")
        _check_channels(operand, scale, "scale")
        require(self.dtype in _RESCALED, f"a rescale to {self.dtype.value} is not defined")
        return (ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact: a float64 product and one rounding, as the reference has it."""
        operand, scale = inputs
        scaled = real_round(operand, scale)
        return shaped_like(operand, saturate(scaled + self.output_zero_point, self.dtype))


@dataclass(frozen=True, slots=True)
class TflFloatRescale(ir.Operation):
    """x i32 -> `dtype`: saturate(round_half_away(float32(float32(float32(x) * scale) + a)) + output_zero_point).

    What LiteRT does with the sum of a SUM, where a is float32(addend * num_summed). It never falls as x rises.

    Attributes:
        scale, addend: float32 values; the scale is positive.
        num_summed: How many values x is the sum of; it may follow from an open extent.
    """

    name: ClassVar[str] = "tfl_float_rescale"
    scale: float
    addend: float
    output_zero_point: int
    dtype: ir.DType = ir.DType.I8
    num_summed: ir.Extent = field(default=1, metadata=OMIT_DEFAULT)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the attribute's type."""
        (result,) = scaled_type(inputs, self.scale, (ir.DType.I32,), self.dtype)
        require(result.dtype in QUANTISED, f"a rescale to {self.dtype.value} is not defined")
        return (result,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact: a float32 product, a float32 sum, and one rounding."""
        (x,) = inputs
        return shaped_like(x, saturate(self.rounded(x) + self.output_zero_point, self.dtype))

    def rounded(self, x: ir.Array) -> Int64:
        """Before the zero point: i64.

        Raises:
            ValueError: How many values were summed cannot be told of the sums alone.
        """
        if not isinstance(self.num_summed, int):
            raise ValueError(f"sums of {self.num_summed} values: how many cannot be told")
        scaled = x.astype(np.float32) * np.float32(self.scale)
        return real_round(scaled + np.float32(self.addend) * np.float32(self.num_summed), 1.0)


def _check_channels(operand: ir.TensorType, parameter: ir.TensorType, role: str) -> None:
    """The parameter has one value, or one for each of the operand's channels."""
    channels = operand.shape[-1] if operand.shape else 1
    require(
        parameter.shape in ((1,), (channels,)),
        f"the {role} [{ir.format_shape(parameter.shape)}] has neither 1 nor {channels} values",
    )


OPERATIONS = (Rescale, TflFloatRescale, TflRealRescale)
