"""Element by element: arithmetic with broadcasting, clamps, tables, activations, and the border to floats.

Unary operators on i8 other than a clamp are a `Table`: 256 values computed at import.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.arithmetic.tables import dequantize, quantize_float
from bytewright.ops.checks import broadcast, only, require, require_count, require_dtype
from bytewright.ops.result import in_32_bits, shaped_like

_OF_BYTES = (ir.DType.I8, ir.DType.U8)
_SUMS = (ir.DType.I32, ir.DType.F32)


@dataclass(frozen=True, slots=True)
class Clamp(ir.Operation):
    """min(max(x, minimum), maximum), on i8, i32 or f32."""

    name: ClassVar[str] = "clamp"
    minimum: int | float
    maximum: int | float

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        operand = only(inputs, ir.DType.I8, ir.DType.I32, ir.DType.F32)
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


class _OfTwo(ir.Operation):
    """Abstract: a function of two operands on i32 or f32, with numpy's broadcasting.

    Attributes:
        result_dtype: Of the result; None for the type that both operands have.
    """

    __slots__ = ()
    function: ClassVar[np.ufunc]
    result_dtype: ClassVar[ir.DType | None] = None

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The broadcast shape."""
        require_count(inputs, 2)
        first, second = inputs
        require_dtype(first, _SUMS, "the first operand")
        require_dtype(second, (first.dtype,), "the second operand")
        return (ir.TensorType(broadcast(first.shape, second.shape), self.result_dtype or first.dtype),)


class _Arithmetic(_OfTwo):
    """Abstract: the result has the operands' type; i32 must not overflow."""

    __slots__ = ()

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact for i32; one float32 rounding."""
        first, second = inputs
        if first.dtype == np.float32:
            return (np.asarray(self.function(first, second), np.float32),)
        # In 64 bits, so that an overflow shows; numpy makes a scalar of what has no axes.
        result = np.asarray(self.function(first.astype(np.int64), second.astype(np.int64)))
        return (in_32_bits(result, "a sum or product does not fit 32 bits"),)


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


class _Comparison(_OfTwo):
    """Abstract: the result is a truth value."""

    __slots__ = ()
    result_dtype: ClassVar[ir.DType | None] = ir.DType.BOOL

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact; what is not a number is neither greater nor equal."""
        first, second = inputs
        return (np.asarray(self.function(first, second), np.bool_),)


@dataclass(frozen=True, slots=True)
class Greater(_Comparison):
    """x > y."""

    name: ClassVar[str] = "greater"
    function: ClassVar[np.ufunc] = np.greater


@dataclass(frozen=True, slots=True)
class GreaterEqual(_Comparison):
    """x >= y."""

    name: ClassVar[str] = "greater_equal"
    function: ClassVar[np.ufunc] = np.greater_equal


@dataclass(frozen=True, slots=True)
class Equal(_Comparison):
    """x == y."""

    name: ClassVar[str] = "equal"
    function: ClassVar[np.ufunc] = np.equal


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
        return shaped_like(x, table[x.astype(np.int64) + 128])


class _OfFloat(ir.Operation):
    """Abstract: a function of one operand on f32."""

    __slots__ = ()

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        return (ir.TensorType(only(inputs, ir.DType.F32).shape, ir.DType.F32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """In float64, then rounded."""
        return shaped_like(inputs[0], self.of(inputs[0].astype(np.float64)).astype(np.float32))

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """The function itself."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Sigmoid(_OfFloat):
    """1 / (1 + exp(-x))."""

    name: ClassVar[str] = "sigmoid"

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """tanh(x/2)/2 + 1/2 would lose the small values; the quotient with exp(-|x|) never overflows."""
        small = np.exp(-np.abs(x))
        return np.where(x >= 0, 1.0, small) / (1.0 + small)


@dataclass(frozen=True, slots=True)
class Tanh(_OfFloat):
    """tanh(x)."""

    name: ClassVar[str] = "tanh"

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """As numpy has it."""
        return np.tanh(x)


@dataclass(frozen=True, slots=True)
class TflHardSwish(_OfFloat):
    """x * min(max(x + 3, 0), 6) / 6."""

    name: ClassVar[str] = "tfl_hard_swish"

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Without a rounding before the last."""
        return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0


@dataclass(frozen=True, slots=True)
class TflLeakyRelu(_OfFloat):
    """x where x > 0, else alpha * x; alpha is a float32 value."""

    name: ClassVar[str] = "tfl_leaky_relu"
    alpha: float

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """A product of two float32 values is exact in float64."""
        return np.where(x > 0, x, x * np.float64(np.float32(self.alpha)))


@dataclass(frozen=True, slots=True)
class TflQuantize(ir.Operation):
    """f32 -> i8: saturate(round_half_away(x / scale) + zero_point); scale is a float32 value."""

    name: ClassVar[str] = "tfl_quantize"
    scale: float
    zero_point: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in i8."""
        require(self.scale > 0, f"scale {self.scale} is not positive")
        return (ir.TensorType(only(inputs, ir.DType.F32).shape, ir.DType.I8),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact: a float32 quotient, then one rounding."""
        (x,) = inputs
        return shaped_like(x, quantize_float(x.astype(np.float32), self.scale, self.zero_point))


@dataclass(frozen=True, slots=True)
class TflDequantize(ir.Operation):
    """i8 -> f32: scale * (x - zero_point); scale is a float32 value."""

    name: ClassVar[str] = "tfl_dequantize"
    scale: float
    zero_point: int

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in f32."""
        require(self.scale > 0, f"scale {self.scale} is not positive")
        return (ir.TensorType(only(inputs, ir.DType.I8).shape, ir.DType.F32),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """One float32 product."""
        (x,) = inputs
        return shaped_like(x, dequantize(x.astype(np.int8), self.scale, self.zero_point))


@dataclass(frozen=True, slots=True)
class Recentre(ir.Operation):
    """Between u8 and i8: 128 less or 128 more, so that zero points move along and the values mean the same."""

    name: ClassVar[str] = "recentre"
    dtype: ir.DType

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's shape in the other type."""
        require(self.dtype in _OF_BYTES, f"there is no recentre to {self.dtype.value}")
        operand = only(inputs, *(dtype for dtype in _OF_BYTES if dtype is not self.dtype))
        return (ir.TensorType(operand.shape, self.dtype),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        (x,) = inputs
        offset = -128 if self.dtype is ir.DType.I8 else 128
        return (np.asarray(x.astype(np.int16) + offset, self.dtype.numpy),)


OPERATIONS = (
    Add,
    Clamp,
    Equal,
    Greater,
    GreaterEqual,
    Mul,
    Recentre,
    Sigmoid,
    Sub,
    Table,
    Tanh,
    TflDequantize,
    TflHardSwish,
    TflLeakyRelu,
    TflQuantize,
)
