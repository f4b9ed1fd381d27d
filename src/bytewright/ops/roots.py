"""Operators by an inverse square root in fixed point: rows divided by their Euclidean norms, and the root itself."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.fixedpoint import ROOT_BITS, inverse_root, inverse_square_root
from bytewright.ops.arithmetic.multiplier import INT32_MAX, Multiplier
from bytewright.ops.arithmetic.rescale import double_round, double_round_by
from bytewright.ops.checks import only, require
from bytewright.ops.result import saturate, shaped_like

FRACTIONAL_BITS = 7
"""Those of results, whose scale is 1/128."""


@dataclass(frozen=True, slots=True)
class TflL2Normalization(ir.Operation):
    """x i8 -> i8 with scale 1/128 and zero point 0: rows of the last axis, divided by their norms.

    saturate(double_round((x - input_zero_point) * 1/sqrt(sum((x - input_zero_point)^2)) * 2^7)), the root of
    `arithmetic.fixedpoint`; a row of zeros stays one.

    Attributes:
        unsigned: Whether elements stand for uint8, which gain the 7 bits before they are multiplied.
    """

    name: ClassVar[str] = "tfl_l2_normalization"
    input_zero_point: int
    unsigned: bool = False

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        operand = only(inputs, ir.DType.I8)
        require(len(operand.shape) >= 1, "the input is a scalar")
        low, high = operand.dtype.bounds
        require(low <= self.input_zero_point <= high, f"zero point {self.input_zero_point} is no i8")
        depth, reach = operand.fixed_shape[-1], max(self.input_zero_point - low, high - self.input_zero_point)
        most = INT32_MAX // reach**2
        require(depth <= most, f"a row of {depth} values; 32 bits hold the sum of {most} squares")
        return (operand,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        centred = x.astype(np.int64) - self.input_zero_point
        multipliers, exponents = inverse_square_root((centred * centred).sum(axis=-1, keepdims=True))
        shifts = exponents + FRACTIONAL_BITS
        left = np.full_like(shifts, FRACTIONAL_BITS) if self.unsigned else np.maximum(shifts, 0)
        shares = double_round(centred, multipliers, left, left - shifts)
        return (saturate(shares, ir.DType.I8),)


@dataclass(frozen=True, slots=True)
class TflInverseRoot(ir.Operation):
    """x i16 -> i16: saturate(double_round(root(x) * multiplier * 2^(exponent - 31))), root(x) being 2^20/sqrt(x).

    What is not above zero gives the greatest value.

    Attributes:
        exponent: At most 11, so that 32 bits hold a root that is shifted by it.
    """

    name: ClassVar[str] = "tfl_inverse_root"
    multiplier: int
    exponent: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        require(0 <= self.multiplier <= INT32_MAX, f"multiplier {self.multiplier} is not in 0..2^31-1")
        most = 31 - ROOT_BITS
        require(-31 <= self.exponent <= most, f"exponent {self.exponent} is not in -31..{most}")
        return (only(inputs, ir.DType.I16),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        factor = Multiplier(self.multiplier, self.exponent)
        roots = inverse_root(np.maximum(x.astype(np.int64), 0))
        scaled = double_round_by(roots, factor)
        return shaped_like(x, saturate(np.where(np.greater(x, 0), scaled, INT32_MAX), ir.DType.I16))


OPERATIONS = (TflInverseRoot, TflL2Normalization)
