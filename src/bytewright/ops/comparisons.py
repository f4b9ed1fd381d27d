"""Comparisons, and connectives of truth values, with numpy broadcasting."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bytewright import ir
from bytewright.ops.checks import WIDE, only
from bytewright.ops.elementwise import OfTwo
from bytewright.ops.result import shaped_like


class _Comparison(OfTwo):
    """Abstract: the result is a truth value; what is not a number is neither greater nor equal."""

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.I16, *WIDE, ir.DType.F32)
    result_dtype: ClassVar[ir.DType | None] = ir.DType.BOOL


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
    """x == y, of truth values too."""

    name: ClassVar[str] = "equal"
    function: ClassVar[np.ufunc] = np.equal
    dtypes: ClassVar[tuple[ir.DType, ...]] = (*WIDE, ir.DType.F32, ir.DType.BOOL)


class _Connective(_Comparison):
    """Abstract: the operands are truth values."""

    __slots__ = ()
    dtypes: ClassVar[tuple[ir.DType, ...]] = (ir.DType.BOOL,)


@dataclass(frozen=True, slots=True)
class LogicalAnd(_Connective):
    """Whether both are true."""

    name: ClassVar[str] = "logical_and"
    function: ClassVar[np.ufunc] = np.logical_and


@dataclass(frozen=True, slots=True)
class LogicalOr(_Connective):
    """Whether one is true."""

    name: ClassVar[str] = "logical_or"
    function: ClassVar[np.ufunc] = np.logical_or


@dataclass(frozen=True, slots=True)
class LogicalNot(ir.Operation):
    """Whether it is not true."""

    name: ClassVar[str] = "logical_not"

    def infer(self, inputs: tuple[ir.TensorType, ...]) -> tuple[ir.TensorType, ...]:
        """The operand's type."""
        return (ir.TensorType(only(inputs, ir.DType.BOOL).shape, ir.DType.BOOL),)

    def evaluate(self, inputs: tuple[ir.Array, ...]) -> tuple[ir.Array, ...]:
        """Exact."""
        return shaped_like(inputs[0], np.logical_not(inputs[0]))


OPERATIONS = (Equal, Greater, GreaterEqual, LogicalAnd, LogicalNot, LogicalOr)
