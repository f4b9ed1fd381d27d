"""Functions of one float, element by element. On i8 each of them is a `Table`."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bytewright import ir
from bytewright.ops.checks import only
from bytewright.ops.result import shaped_like


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


class _OfNumpy(_OfFloat):
    """Abstract: a function that numpy has."""

    __slots__ = ()
    function: ClassVar[np.ufunc]

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """As numpy has it; out of its domain it is not a number."""
        with np.errstate(all="ignore"):
            return self.function(x)


@dataclass(frozen=True, slots=True)
class Abs(_OfNumpy):
    """The magnitude."""

    name: ClassVar[str] = "abs"
    function: ClassVar[np.ufunc] = np.abs


@dataclass(frozen=True, slots=True)
class Ceil(_OfNumpy):
    """The least integer that is not less."""

    name: ClassVar[str] = "ceil"
    function: ClassVar[np.ufunc] = np.ceil


@dataclass(frozen=True, slots=True)
class Cos(_OfNumpy):
    """The cosine."""

    name: ClassVar[str] = "cos"
    function: ClassVar[np.ufunc] = np.cos


@dataclass(frozen=True, slots=True)
class Exp(_OfNumpy):
    """The exponential."""

    name: ClassVar[str] = "exp"
    has_poles: ClassVar[bool] = True
    function: ClassVar[np.ufunc] = np.exp


@dataclass(frozen=True, slots=True)
class Floor(_OfNumpy):
    """The greatest integer that is not greater."""

    name: ClassVar[str] = "floor"
    function: ClassVar[np.ufunc] = np.floor


@dataclass(frozen=True, slots=True)
class Log(_OfNumpy):
    """The natural logarithm."""

    name: ClassVar[str] = "log"
    has_poles: ClassVar[bool] = True
    function: ClassVar[np.ufunc] = np.log


@dataclass(frozen=True, slots=True)
class Negate(_OfNumpy):
    """-x."""

    name: ClassVar[str] = "negate"
    function: ClassVar[np.ufunc] = np.negative


@dataclass(frozen=True, slots=True)
class Sin(_OfNumpy):
    """The sine."""

    name: ClassVar[str] = "sin"
    function: ClassVar[np.ufunc] = np.sin


@dataclass(frozen=True, slots=True)
class TflRound(_OfNumpy):
    """The nearest integer, ties to even."""

    name: ClassVar[str] = "tfl_round"
    function: ClassVar[np.ufunc] = np.rint


@dataclass(frozen=True, slots=True)
class TflSign(_OfNumpy):
    """-1, 0 or 1."""

    name: ClassVar[str] = "tfl_sign"
    function: ClassVar[np.ufunc] = np.sign


@dataclass(frozen=True, slots=True)
class TflSqrt(_OfNumpy):
    """The square root."""

    name: ClassVar[str] = "tfl_sqrt"
    function: ClassVar[np.ufunc] = np.sqrt


@dataclass(frozen=True, slots=True)
class Rsqrt(_OfFloat):
    """1 / sqrt(x)."""

    name: ClassVar[str] = "rsqrt"
    has_poles: ClassVar[bool] = True

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Without a rounding before the last."""
        with np.errstate(all="ignore"):
            return 1.0 / np.sqrt(x)


@dataclass(frozen=True, slots=True)
class TflElu(_OfFloat):
    """x, but exp(x) - 1 below zero."""

    name: ClassVar[str] = "tfl_elu"

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """As numpy has it."""
        return np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x)


@dataclass(frozen=True, slots=True)
class TflGelu(_OfFloat):
    """x times the probability that a normal variable is less: x/2 * erfc(-x/sqrt(2)).

    Attributes:
        is_approximate: Whether that is approximated: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))).
    """

    name: ClassVar[str] = "tfl_gelu"
    is_approximate: bool

    def of(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Without a rounding before the last."""
        with np.errstate(all="ignore"):
            if self.is_approximate:
                return 0.5 * x * (1.0 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
            return 0.5 * x * _erfc(-math.sqrt(0.5) * x)


def _erfc(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numpy has no such function."""
    return np.array([math.erfc(value) for value in x.flat], np.float64).reshape(x.shape)


OPERATIONS = (
    Abs,
    Ceil,
    Cos,
    Exp,
    Floor,
    Log,
    Negate,
    Rsqrt,
    Sigmoid,
    Sin,
    Tanh,
    TflElu,
    TflGelu,
    TflHardSwish,
    TflLeakyRelu,
    TflRound,
    TflSign,
    TflSqrt,
)


def may_be_infinite(operation: ir.Operation, is_infinite: bool) -> bool:
    """Whether a float that an operation makes may be infinite: where an operand may (`is_infinite`), or of numbers.

    What comes of sums and products that overflow is not meant; a quotient of DIV is limited where it is made.
    """
    return getattr(operation, "has_poles", False) or (
        is_infinite and not isinstance(operation, Cos | Sigmoid | Sin | Tanh | TflSign)
    )
