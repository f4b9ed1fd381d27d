"""Element by element: arithmetic with broadcasting, choices, and clamps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.arithmetic.division import quotient
from bytewright.ops.arithmetic.multiplier import Multiplier
from bytewright.ops.arithmetic.rescale import double_round_by
from bytewright.ops.checks import (
    ARITHMETIC,
    QUANTISED,
    SUMS,
    WIDE,
    broadcast,
    only,
    require,
    require_count,
    require_dtype,
    two,
)
from bytewright.ops.result import in_32_bits, saturate, shaped_like

_WITH_BITS = (*QUANTISED, ir.DType.I32)
# Narrower types are computed in 32 bits, as C does.
_MOST_SHIFTED = 31


@dataclass(frozen=True, slots=True)
class Clamp(ir.Operation):
    """min(max(x, minimum), maximum)."""

    name: ClassVar[str] = "clamp"
    minimum: int | float
    maximum: int | float

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        operand = only(inputs, *ARITHMETIC, *WIDE)
        require(self.minimum <= self.maximum, f"the range {self.minimum}..{self.maximum} is empty")
        if operand.dtype.is_integer:
            low, high = operand.dtype.bounds
            fits = low <= self.minimum and self.maximum <= high
            require(fits, f"the range {self.minimum}..{self.maximum} leaves {operand.dtype.value}")
        return (ir.TensorType(operand.shape, operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        return shaped_like(x, np.clip(x, x.dtype.type(self.minimum), x.dtype.type(self.maximum)))


class OfTwo(ir.Operation):
    """Abstract: a function of two operands of one type, with numpy's broadcasting.

    Attributes:
        dtypes: What the operands may be.
        result_dtype: Of the result; None for the type that both operands have.
    """

    __slots__ = ()
    function: ClassVar[np.ufunc]
    dtypes: ClassVar[tuple[ir.DType, ...]] = SUMS
    result_dtype: ClassVar[ir.DType | None] = None

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The broadcast shape."""
        first, second = two(inputs)
        require_dtype(first, self.dtypes, "the first operand")
        require_dtype(second, (first.dtype,), "the second operand")
        return (ir.TensorType(broadcast(first.shape, second.shape), self.result_dtype or first.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        dtype = inputs[0].dtype if self.result_dtype is None else self.result_dtype.numpy
        return (np.asarray(self.function(*inputs), dtype),)


class _Arithmetic(OfTwo):
    """Abstract: the result has the operands' type; i32 must not overflow."""

    __slots__ = ()

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for i32; floats are rounded once."""
        first, second = inputs
        if first.dtype.kind == "f":
            return (np.asarray(self.function(first, second), first.dtype),)
        # In 64 bits, so that an overflow shows; numpy makes a scalar of what has no axes.
        result = np.asarray(self.function(first.astype(np.int64), second.astype(np.int64)))
        return (in_32_bits(result, "a sum or product"),)


@dataclass(frozen=True, slots=True)
class Add(_Arithmetic):
    """x + y."""

    name: ClassVar[str] = "add"
    function: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class Sub(_Arithmetic):
    """x - y."""

    name: ClassVar[str] = "sub"
    function: ClassVar[np.ufunc] = np.subtract


@dataclass(frozen=True, slots=True)
class Mul(_Arithmetic):
    """x * y."""

    name: ClassVar[str] = "mul"
    function: ClassVar[np.ufunc] = np.multiply


class _Wrapping(OfTwo):
    """Abstract: on i32 modulo 2^32 and on i64 modulo 2^64, as the references' machines compute what overflows."""

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = WIDE

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact: modulo 2^64, of which i32 takes the lower half."""
        first, second = (np.asarray(operand.astype(np.uint64)) for operand in inputs)
        return (np.asarray(self.function(first, second)).astype(inputs[0].dtype),)


@dataclass(frozen=True, slots=True)
class WrappingAdd(_Wrapping):
    """x + y modulo 2^32 or 2^64."""

    name: ClassVar[str] = "wrapping_add"
    function: ClassVar[np.ufunc] = np.add


@dataclass(frozen=True, slots=True)
class WrappingSub(_Wrapping):
    """x - y modulo 2^32 or 2^64."""

    name: ClassVar[str] = "wrapping_sub"
    function: ClassVar[np.ufunc] = np.subtract


@dataclass(frozen=True, slots=True)
class WrappingMul(_Wrapping):
    """x * y modulo 2^32 or 2^64."""

    name: ClassVar[str] = "wrapping_mul"
    function: ClassVar[np.ufunc] = np.multiply


class _Extremum(OfTwo):
    """Abstract: one of two operands, the second where neither is beyond the other, as with what is not a number."""

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*ARITHMETIC, *WIDE)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        first, second = inputs
        return (np.asarray(np.where(self.function(first, second), first, second), first.dtype),)


@dataclass(frozen=True, slots=True)
class Maximum(_Extremum):
    """x where x > y, else y."""

    name: ClassVar[str] = "maximum"
    function: ClassVar[np.ufunc] = np.greater


@dataclass(frozen=True, slots=True)
class Minimum(_Extremum):
    """x where x < y, else y."""

    name: ClassVar[str] = "minimum"
    function: ClassVar[np.ufunc] = np.less


class _OfTwoFloats(OfTwo):
    """Abstract: the operands are f32."""

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.F32,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """In float64, then rounded."""
        first, second = (operand.astype(np.float64) for operand in inputs)
        return (np.asarray(self.function(first, second), np.float32),)


@dataclass(frozen=True, slots=True)
class TflDiv(_OfTwoFloats):
    """x / y."""

    name: ClassVar[str] = "tfl_div"
    function: ClassVar[np.ufunc] = np.divide


@dataclass(frozen=True, slots=True)
class TflIntegerDiv(OfTwo):
    """x, y i8 -> i8: saturate(rounded quotient of x - first_zero_point and y - second_zero_point, scaled, + output's).

    `arithmetic.division` has each step; the factor is multiplier * 2^(exponent - 31).
    """

    name: ClassVar[str] = "tfl_integer_div"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.I8,)
    first_zero_point: int
    second_zero_point: int
    output_zero_point: int
    multiplier: int
    exponent: int

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        first, second = (operand.astype(np.int64) for operand in inputs)
        factor = Multiplier(self.multiplier, self.exponent)
        found = quotient(first - self.first_zero_point, second - self.second_zero_point, factor)
        return (np.asarray(saturate(found + self.output_zero_point, ir.DType.I8)),)


@dataclass(frozen=True, slots=True)
class Pow(_OfTwoFloats):
    """x to the power of y."""

    name: ClassVar[str] = "pow"
    has_poles: ClassVar[bool] = True
    function: ClassVar[np.ufunc] = np.power


@dataclass(frozen=True, slots=True)
class Atan2(_OfTwoFloats):
    """The angle of the point (y, x), in -pi to pi: y is the first operand."""

    name: ClassVar[str] = "atan2"
    function: ClassVar[np.ufunc] = np.arctan2


@dataclass(frozen=True, slots=True)
class Bucketize(ir.Operation):
    """x f32, ascending boundaries f32 [n] -> how many boundaries x is not below, i32: all, of what is not a number."""

    name: ClassVar[str] = "bucketize"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "boundaries")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The input's shape."""
        operand, boundaries = two(inputs)
        require_dtype(operand, (ir.DType.F32,), "the input")
        require_dtype(boundaries, (ir.DType.F32,), "the boundaries")
        require(len(boundaries.shape) == 1, "the boundaries are not a list")
        return (ir.TensorType(operand.shape, ir.DType.I32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, boundaries = inputs
        return shaped_like(x, np.searchsorted(boundaries, x, side="right").astype(np.int32))


@dataclass(frozen=True, slots=True)
class TflIntegerPower(OfTwo):
    """x to the power of y, i32; what leaves 32 bits saturates. A y below zero is taken for zero."""

    name: ClassVar[str] = "tfl_integer_power"
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.I32,)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        bases, exponents = np.broadcast_arrays(*inputs)
        low, high = ir.DType.I32.bounds
        # Beyond 32 the power of what is not -1, 0 or 1 leaves 32 bits.
        powers = [
            int(base) ** (min(exponent, 32 + exponent % 2) if exponent > 0 else 0)
            for base, exponent in zip(bases.ravel().tolist(), exponents.ravel().tolist(), strict=True)
        ]
        limited = [min(max(power, low), high) for power in powers]
        return (np.array(limited, np.int32).reshape(bases.shape),)


class _Quotient(OfTwo):
    """Abstract: of integers raw values, where a divisor of zero is taken for one, or floats.

    The quotient of the least number and -1, which its type does not hold, is the greatest.
    """

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.I8, ir.DType.I16, *WIDE, ir.DType.F32)

    def divided(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ir.Array, ir.Array]:
        """Dividend and divisor of integers as they are divided, and the quotient rounded down."""
        first, second = inputs
        least = ir.DType(f"i{8 * first.itemsize}").bounds[0]
        divisor = np.where(np.equal(second, 0), 1, second)
        dividend = np.where(np.equal(divisor, -1), np.maximum(first, least + 1), first)
        return dividend, divisor, np.floor_divide(dividend, divisor)


@dataclass(frozen=True, slots=True)
class BitwiseAnd(OfTwo):
    """The bits that both of two integers have."""

    name: ClassVar[str] = "bitwise_and"
    function: ClassVar[np.ufunc] = np.bitwise_and
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*QUANTISED, *WIDE)


@dataclass(frozen=True, slots=True)
class BitwiseXor(OfTwo):
    """The bits that one of two integers has."""

    name: ClassVar[str] = "bitwise_xor"
    function: ClassVar[np.ufunc] = np.bitwise_xor
    dtypes: ClassVar[tuple[ir.DType, ...]] = _WITH_BITS


@dataclass(frozen=True, slots=True)
class LeftShift(OfTwo):
    """x * 2^y in the lower bits of 32, as many as x has; a y that is none of 0 to 31 means the nearest."""

    name: ClassVar[str] = "left_shift"
    dtypes: ClassVar[tuple[ir.DType, ...]] = _WITH_BITS

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, y = inputs
        shifted = np.left_shift(x.astype(np.int64), np.clip(y, 0, _MOST_SHIFTED).astype(np.int64))
        return (np.asarray(shifted.astype(np.uint64).astype(x.dtype)),)


@dataclass(frozen=True, slots=True)
class RightShift(OfTwo):
    """x / 2^y rounded down; a y that is no number of a bit of x means the nearest."""

    name: ClassVar[str] = "right_shift"
    dtypes: ClassVar[tuple[ir.DType, ...]] = _WITH_BITS

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        x, y = inputs
        return (np.asarray(np.right_shift(x, np.clip(y, 0, 8 * x.itemsize - 1)), x.dtype),)


@dataclass(frozen=True, slots=True)
class IntDiv(_Quotient):
    """TOSA `intdiv`: x / y of i32 or i64 without what is behind the point."""

    name: ClassVar[str] = "intdiv"
    dtypes: ClassVar[tuple[ir.DType, ...]] = WIDE

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        dividend, divisor, floor = self.divided(inputs)
        is_raised = np.not_equal(np.multiply(floor, divisor), dividend) & np.less(floor, 0)
        truncated = np.where(is_raised, np.add(floor, 1), floor)
        return (np.asarray(truncated, inputs[0].dtype),)


@dataclass(frozen=True, slots=True)
class TflFloorDiv(_Quotient):
    """The greatest integer not above x / y; of f32 the quotient is one of double precision."""

    name: ClassVar[str] = "tfl_floor_div"
    has_poles: ClassVar[bool] = True

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; of a quotient in double precision for f32."""
        if inputs[0].dtype == np.float32:
            first, second = (operand.astype(np.float64) for operand in inputs)
            return (np.asarray(np.floor(np.divide(first, second)), np.float32),)
        return (np.asarray(self.divided(inputs)[2], inputs[0].dtype),)


@dataclass(frozen=True, slots=True)
class TflFloorMod(_Quotient):
    """x less a multiple of y, with the sign of y."""

    name: ClassVar[str] = "tfl_floor_mod"

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        first, second = inputs
        if first.dtype == np.float32:
            rest = np.fmod(first, second)
            is_turned = np.not_equal(rest, 0) & (np.less(rest, 0) != np.less(second, 0))
            return (np.asarray(np.where(is_turned, rest + second, rest), np.float32),)
        dividend, divisor, _ = self.divided(inputs)
        return (np.asarray(np.mod(dividend, divisor), first.dtype),)


@dataclass(frozen=True, slots=True)
class Select(ir.Operation):
    """condition bool, x, y of one type -> x where the condition is true, else y, with numpy's broadcasting."""

    name: ClassVar[str] = "select"
    operand_names: ClassVar[tuple[str, ...]] = ("condition", "if_true", "if_false")

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The broadcast shape."""
        require_count(inputs, 3)
        condition, first, second = inputs
        require_dtype(condition, (ir.DType.BOOL,), "the condition")
        require_dtype(second, (first.dtype,), "the second choice")
        shape = broadcast(condition.shape, broadcast(first.shape, second.shape))
        return (ir.TensorType(shape, first.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return (np.asarray(np.where(*inputs), inputs[1].dtype),)


@dataclass(frozen=True, slots=True)
class TflPrelu(ir.Operation):
    """x, slope of one type -> x where it is not below zero, else x * slope, with numpy's broadcasting.

    Integers: saturate(double_round(x - input_zero_point, above) + output_zero_point), or where the difference is below
    zero saturate(double_round((x - input_zero_point) * (slope - slope_zero_point), below) + output_zero_point).

    Attributes:
        input_zero_point, slope_zero_point, output_zero_point: Of integers only.
        above, below: Multiplier and exponent; of integers only.
    """

    name: ClassVar[str] = "tfl_prelu"
    operand_names: ClassVar[tuple[str, ...]] = ("input", "slope")
    input_zero_point: int = 0
    slope_zero_point: int = 0
    output_zero_point: int = 0
    above: tuple[int, int] = (0, 0)
    below: tuple[int, int] = (0, 0)

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The input's shape."""
        operand, slope = two(inputs)
        require_dtype(operand, ARITHMETIC, "the input")
        require_dtype(slope, (operand.dtype,), "the slope")
        fits = broadcast(operand.shape, slope.shape) == operand.shape
        require(fits, f"the slope [{ir.format_shape(slope.shape)}] leaves [{ir.format_shape(operand.shape)}]")
        return (ir.TensorType(operand.shape, operand.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for integers; one float32 product."""
        x, slope = inputs
        if x.dtype == np.float32:
            return shaped_like(x, np.where(np.greater_equal(x, 0), x, np.multiply(x, slope)))
        centred = x.astype(np.int64) - self.input_zero_point
        product = np.minimum(centred, 0) * (slope.astype(np.int64) - self.slope_zero_point)
        above, below = Multiplier(*self.above), Multiplier(*self.below)
        scaled = np.where(
            centred >= 0,
            double_round_by(np.maximum(centred, 0), above),
            double_round_by(product, below),
        )
        return shaped_like(x, saturate(scaled + self.output_zero_point, ir.DType.of(x.dtype)))


OPERATIONS = (
    Add,
    Atan2,
    BitwiseAnd,
    BitwiseXor,
    Bucketize,
    Clamp,
    IntDiv,
    LeftShift,
    Maximum,
    Minimum,
    Mul,
    Pow,
    RightShift,
    Select,
    Sub,
    TflDiv,
    TflFloorDiv,
    TflFloorMod,
    TflIntegerDiv,
    TflIntegerPower,
    TflPrelu,
    WrappingAdd,
    WrappingMul,
    WrappingSub,
)
