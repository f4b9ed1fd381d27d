"""Scalars with proven bounds: what the epilogue of a kernel computes on.

Integer tensors are computed on as I32 in kernels, I64 where that does not hold them, and cast when stored. The bounds
come from the weights and travel with the expression, so that each form of requantisation is chosen because it is
proved exact, and arithmetic that could overflow is refused when it is compiled.
"""

from dataclasses import dataclass

import numpy as np

from bytewright import ir
from bytewright.diagnostics import compile_error
from bytewright.ir.where import Where


@dataclass(frozen=True, slots=True)
class ChannelBounds:
    """The least and the greatest value in each channel."""

    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """An expression and, for integers, the least and greatest value that it can take.

    Attributes:
        channels: What is known of each channel, where more is known than of all.
    """

    expr: ir.Expr
    low: int = 0
    high: int = 0
    channels: ChannelBounds | None = None

    @property
    def magnitude(self) -> int:
        """The greatest absolute value."""
        return max(-self.low, self.high, 0)


def computed_on(dtype: ir.DType) -> ir.DType:
    """The type that elements of a type are computed on as."""
    if not dtype.is_integer:
        return dtype
    return ir.DType.I32 if dtype.bounds[1] <= ir.DType.I32.bounds[1] else ir.DType.I64


def element(load: ir.Expr) -> Scalar:
    """An element of a tensor: integers are widened (`computed_on`), with the bounds of their type.

    Of u64 it is the number of i64 with the same bits.
    """
    if load.dtype.is_integer:
        wide = computed_on(load.dtype)
        low, high = wide.bounds if load.dtype is ir.DType.U64 else load.dtype.bounds
        return Scalar(ir.cast(load, wide), low, high)
    return Scalar(load)


def lowest(dtype: ir.DType) -> ir.Const:
    """What a maximum over elements of a type starts from, as `element` has them."""
    if dtype.is_integer:
        return ir.const(dtype.bounds[0], computed_on(dtype))
    return ir.const(float(np.finfo(np.float32).min), dtype)


def in_32_bits(low: int, high: int) -> bool:
    """Whether all integers from `low` to `high` fit."""
    return low >= -(2**31) and high < 2**31


def highest(dtype: ir.DType) -> ir.Const:
    """What a minimum starts from, likewise."""
    if dtype.is_integer:
        return ir.const(dtype.bounds[1], computed_on(dtype))
    return ir.const(float(np.finfo(np.float32).max), dtype)


def require_i32(low: int, high: int, what: str, where: Where) -> None:
    """Refuses a sum whose bounds leave 32 bits.

    Raises:
        CompileError: BW110, with the bounds.
    """
    require_fits((low, high), ir.DType.I32, what, where)


def require_fits(ends: tuple[int, int], dtype: ir.DType, what: str, where: Where) -> None:
    """Refuses a sum whose bounds leave an integer type.

    Raises:
        CompileError: BW110, with the bounds.
    """
    low, high = ends
    bits = 8 * dtype.size_bytes
    if low < dtype.bounds[0] or high > dtype.bounds[1]:
        raise compile_error(
            "BW110",
            f"{what} ranges from {low} to {high}, which {bits} bits do not hold",
            notes=(f"the references compute it in {bits} bits, where overflow is undefined",),
            help="quantise the model again with calibration data that keeps the scales apart from zero",
            where=str(where),
        )


def clamped(value: Scalar, low: int, high: int) -> Scalar:
    """The integer scalar limited to `[low, high]`; bounds that hold already cost nothing, clamps merge."""
    expr, inner_low, inner_high = _without_clamp(value)
    low, high = max(low, value.low), min(high, value.high)
    if low >= high:
        bound = min(max(low, value.low), value.high) if low == high else (low if value.high < low else high)
        return Scalar(ir.Const(bound, value.expr.dtype), bound, bound)
    if low > inner_low:
        expr = ir.maximum(expr, low)
    if high < inner_high:
        expr = ir.minimum(expr, high)
    return Scalar(expr, low, high)


_FREE = 2**62


def _without_clamp(value: Scalar) -> tuple[ir.Expr, int, int]:
    """The operand of the clamps around an expression, and bounds that are known of it."""
    expr, low, high = value.expr, value.low, value.high
    if (
        isinstance(expr, ir.Binary)
        and expr.operator is ir.BinaryOperator.MIN
        and isinstance(expr.right, ir.Const)
    ):
        expr, high = expr.left, _FREE
    if (
        isinstance(expr, ir.Binary)
        and expr.operator is ir.BinaryOperator.MAX
        and isinstance(expr.right, ir.Const)
    ):
        expr, low = expr.left, -_FREE
    return expr, low, high
