"""Expressions of PrimFuncs: explicit element types, no implicit conversion.

Arithmetic is defined on i16, i32, i64, f32 and f64; narrower integers are loaded, cast and stored only. Integer
arithmetic must not overflow: lowering proves it, the evaluator checks it. `>>` is arithmetic, `<<` needs a
result that fits, `//` truncates as C does and is used with operands of one sign only.

Python operators build nodes and fold constants, so that templates in `lower` read like the formulas they
implement and the generated C contains no `+ 0`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from operator import add, and_, eq, floordiv, ge, gt, le, lshift, lt, mod, mul, rshift, sub

from bytewright.diagnostics import InternalError
from bytewright.ir.types import DType, Extent


@dataclass(frozen=True, slots=True)
class RingRows:
    """Rows of a buffer kept in a ring: row `r` of the tensor lives in slot `r % num_rows`.

    Attributes:
        axis: The axis of the buffer's shape that counts rows.
        num_rows: Slots in the ring.
    """

    axis: int
    num_rows: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory that PrimFuncs read and write, as its uses name it. Where it lies is for its definition to say.

    Attributes:
        rows: None for plain row-major storage, or the ring that holds the rows.
        line_bytes: Size of the cache lines that it has to itself while it lives: it begins with one, and takes up the
            rest of its last one; 0 if it may share lines.
        register: The C type of a register that holds all of it, such as `int8x16_t`; empty if it is memory. Only
            instructions touch its elements.
    """

    name: str
    shape: tuple[Extent, ...]
    dtype: DType
    alignment: int = 1
    rows: RingRows | None = None
    line_bytes: int = 0
    register: str = ""

    # Buffers are hashed in great numbers, and few have both in common.
    def __hash__(self) -> int:
        return hash((self.name, self.shape))


class BinaryOperator(Enum):
    """Operators of two operands, by their spelling in printed IR and, but for min and max, in C.

    Attributes:
        is_comparison: True if the result is a truth value.
        is_lazy: True if the right operand is evaluated only where the left one does not decide.
    """

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"
    SHL = "<<"
    SHR = ">>"
    AND = "&"
    MIN = "min"
    MAX = "max"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    EQ = "=="
    LOGICAL_AND = "&&"
    LOGICAL_OR = "||"

    def __init__(self, spelling: str) -> None:
        self.is_lazy: bool = spelling in ("&&", "||")
        self.is_comparison: bool = self.is_lazy or spelling in ("<", "<=", ">", ">=", "==")

    __hash__ = object.__hash__  # as that of `DType`


def _infix(operator: BinaryOperator) -> Callable[[Expr, Expr | int | float], Expr]:
    return lambda left, right: binary(operator, left, right)


def _reflected(operator: BinaryOperator) -> Callable[[Expr, int | float], Expr]:
    return lambda right, left: binary(operator, left, right)


class Expr:
    """Base of all expressions; gives them Python's operators. Abstract."""

    __slots__ = ()
    dtype: DType

    __add__, __radd__ = _infix(BinaryOperator.ADD), _reflected(BinaryOperator.ADD)
    __sub__, __rsub__ = _infix(BinaryOperator.SUB), _reflected(BinaryOperator.SUB)
    __mul__, __rmul__ = _infix(BinaryOperator.MUL), _reflected(BinaryOperator.MUL)
    __truediv__ = __floordiv__ = _infix(BinaryOperator.DIV)
    __mod__ = _infix(BinaryOperator.MOD)
    __lshift__ = _infix(BinaryOperator.SHL)
    __rshift__ = _infix(BinaryOperator.SHR)
    __and__ = _infix(BinaryOperator.AND)
    __lt__ = _infix(BinaryOperator.LT)
    __le__ = _infix(BinaryOperator.LE)
    __gt__ = _infix(BinaryOperator.GT)
    __ge__ = _infix(BinaryOperator.GE)


@dataclass(frozen=True, slots=True, order=False)
class Const(Expr):
    """A number of a stated type; for BOOL, 0 or 1."""

    value: int | float
    dtype: DType


@dataclass(frozen=True, slots=True, order=False)
class Var(Expr):
    """A loop variable, a `Let`, or a scalar parameter."""

    name: str
    dtype: DType


@dataclass(frozen=True, slots=True, order=False)
class Load(Expr):
    """One element of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """The buffer's element type."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True, order=False)
class Binary(Expr):
    """An operator applied to two operands of one type."""

    operator: BinaryOperator
    left: Expr
    right: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """The operands' type, or BOOL for comparisons."""
        return DType.BOOL if self.operator.is_comparison else self.left.dtype


@dataclass(frozen=True, slots=True, order=False)
class Cast(Expr):
    """The value converted to another type; integer values that do not fit wrap modulo the width."""

    operand: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, order=False)
class Select(Expr):
    """`condition ? if_true : if_false`; only the chosen side is evaluated."""

    condition: Expr
    if_true: Expr
    if_false: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """The type of both sides."""
        return self.if_true.dtype


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A function of scalars that expressions call by its name: what it computes is written once, for all that read it.

    Attributes:
        result: What it computes, from the parameters and the steps; None for a function of C's <math.h>.
        steps: What is computed on the way, each under a name.
        comment: What it is for, and whose arithmetic it is.
    """

    name: str
    parameters: tuple[Var, ...] = field(compare=False)
    result_type: DType = field(compare=False)
    result: Expr | None = field(default=None, compare=False)
    steps: tuple[tuple[Var, Expr], ...] = field(default=(), compare=False)
    comment: str = field(default="", compare=False)

    def __call__(self, *operands: Expr | int) -> ScalarCall:
        """A call; plain numbers take the types of the parameters."""
        given = tuple(
            operand if isinstance(operand, Expr) else const(operand, parameter.dtype)
            for operand, parameter in zip(operands, self.parameters, strict=True)
        )
        return ScalarCall(self, given)


@dataclass(frozen=True, slots=True, order=False)
class ScalarCall(Expr):
    """The value of a function of scalars."""

    function: ScalarFunction
    operands: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        """What the function gives."""
        return self.function.result_type


AnyExpr = Const | Var | Load | Binary | Cast | Select | ScalarCall


def const(value: int | float, dtype: DType = DType.I32) -> Const:
    """A constant, checked to fit its type."""
    if dtype.is_integer:
        return _whole(int(value), dtype)
    return Const(int(bool(value)) if dtype is DType.BOOL else float(value), dtype)


@lru_cache(maxsize=1 << 14)
def _whole(value: int, dtype: DType) -> Const:
    """A whole number, which is the same node again where that is known: most are small and stand everywhere."""
    low, high = dtype.bounds
    if not low <= value <= high:
        raise InternalError(f"constant {value} does not fit {dtype.value}")
    return Const(value, dtype)


TRUE = Const(1, DType.BOOL)
FALSE = Const(0, DType.BOOL)


def cast(operand: Expr, dtype: DType) -> Expr:
    """The operand converted; nothing where it has the type already, folded for constants that fit."""
    if operand.dtype is dtype:
        return operand
    if isinstance(operand, Const) and operand.dtype is not DType.BOOL:
        if not dtype.is_integer:
            return const(operand.value, dtype)
        low, high = dtype.bounds
        if operand.dtype.is_integer and low <= operand.value <= high:
            return const(operand.value, dtype)
    return Cast(operand, dtype)


def select(condition: Expr, if_true: Expr, if_false: Expr) -> Expr:
    """A choice; folded where the condition is constant."""
    if isinstance(condition, Const):
        return if_true if condition.value else if_false
    if if_true.dtype is not if_false.dtype:
        raise InternalError(f"sides of a select differ: {if_true.dtype.value}, {if_false.dtype.value}")
    return Select(condition, if_true, if_false)


def minimum(left: Expr | int | float, right: Expr | int | float) -> Expr:
    """The lesser operand; the left one where neither is, as with what is not a number."""
    return binary(BinaryOperator.MIN, left, right)


def maximum(left: Expr | int | float, right: Expr | int | float) -> Expr:
    """The greater operand; the left one where neither is, as with what is not a number."""
    return binary(BinaryOperator.MAX, left, right)


def both(left: Expr, right: Expr) -> Expr:
    """Logical and."""
    return binary(BinaryOperator.LOGICAL_AND, left, right)


def either(left: Expr, right: Expr) -> Expr:
    """Logical or."""
    return binary(BinaryOperator.LOGICAL_OR, left, right)


def equal(left: Expr, right: Expr | int) -> Expr:
    """Equality, as a node (`==` compares nodes)."""
    return binary(BinaryOperator.EQ, left, right)


def clamp(value: Expr, low: int | float, high: int | float) -> Expr:
    """The value limited to `[low, high]`."""
    return minimum(maximum(value, low), high)


def binary(operator: BinaryOperator, left: Expr | int | float, right: Expr | int | float) -> Expr:
    """Applies an operator; plain numbers take the other operand's type; constants and neutral elements fold."""
    if isinstance(left, Expr):
        right_expr = right if isinstance(right, Expr) else const(right, left.dtype)
        left_expr = left
    elif isinstance(right, Expr):
        left_expr, right_expr = const(left, right.dtype), right
    else:
        raise InternalError("an expression needs an operand that is one")
    if left_expr.dtype is not right_expr.dtype:
        raise InternalError(
            f"operands of '{operator.value}' differ: {left_expr.dtype.value} and {right_expr.dtype.value}"
        )
    if left_expr.dtype.is_integer or left_expr.dtype is DType.BOOL:
        folded = _fold(operator, left_expr, right_expr)
        if folded is not None:
            return folded
    return Binary(operator, left_expr, right_expr)


def _fold(operator: BinaryOperator, left: Expr, right: Expr) -> Expr | None:
    """The simpler form of an integer operation, or None."""
    if isinstance(left, Const) and isinstance(right, Const):
        return _fold_constants(operator, int(left.value), int(right.value), left.dtype)
    if operator.is_lazy:
        for known, other in ((left, right), (right, left)):
            if isinstance(known, Const):
                decides = bool(known.value) is (operator is BinaryOperator.LOGICAL_OR)
                return known if decides else other
    if isinstance(right, Const) and left.dtype is not DType.BOOL:
        return _fold_right(operator, left, right)
    if isinstance(left, Const) and operator in (BinaryOperator.ADD, BinaryOperator.MUL):
        return binary(operator, right, left)
    return None


_NEUTRAL_RIGHT = {
    (BinaryOperator.ADD, 0),
    (BinaryOperator.SUB, 0),
    (BinaryOperator.MUL, 1),
    (BinaryOperator.DIV, 1),
    (BinaryOperator.SHL, 0),
    (BinaryOperator.SHR, 0),
}


_SIGNS = {BinaryOperator.ADD: 1, BinaryOperator.SUB: -1}


def _fold_right(operator: BinaryOperator, left: Expr, right: Const) -> Expr | None:
    value = int(right.value)
    if (operator, value) in _NEUTRAL_RIGHT:
        return left
    if (operator, value) in ((BinaryOperator.MUL, 0), (BinaryOperator.MOD, 1)):
        return const(0, left.dtype)
    if operator in _SIGNS:
        inner, total = left, _SIGNS[operator] * value
        if isinstance(left, Binary) and isinstance(left.right, Const) and left.operator in _SIGNS:
            inner, total = left.left, total + _SIGNS[left.operator] * int(left.right.value)
        low, high = left.dtype.bounds
        if not low < total <= high:
            return None
        if total == 0:
            return inner
        chosen = BinaryOperator.ADD if total > 0 else BinaryOperator.SUB
        if inner is left and chosen is operator:
            return None
        return Binary(chosen, inner, const(abs(total), left.dtype))
    if (
        operator is BinaryOperator.MUL
        and isinstance(left, Binary)
        and left.operator is BinaryOperator.MUL
        and isinstance(left.right, Const)
    ):
        product, (low, high) = int(left.right.value) * value, left.dtype.bounds
        return binary(operator, left.left, product) if low <= product <= high else None
    return None


_COMPUTED: dict[BinaryOperator, Callable[[int, int], int]] = {
    BinaryOperator.ADD: add,
    BinaryOperator.SUB: sub,
    BinaryOperator.MUL: mul,
    BinaryOperator.DIV: floordiv,
    BinaryOperator.MOD: mod,
    BinaryOperator.SHL: lshift,
    BinaryOperator.SHR: rshift,
    BinaryOperator.AND: and_,
    BinaryOperator.MIN: min,
    BinaryOperator.MAX: max,
    BinaryOperator.LT: lt,
    BinaryOperator.LE: le,
    BinaryOperator.GT: gt,
    BinaryOperator.GE: ge,
    BinaryOperator.EQ: eq,
    BinaryOperator.LOGICAL_AND: lambda left, right: bool(left and right),
    BinaryOperator.LOGICAL_OR: lambda left, right: bool(left or right),
}


def _fold_constants(operator: BinaryOperator, left: int, right: int, dtype: DType) -> Const | None:
    """The result, or None where it has none: an overflow is an error only where it is evaluated."""
    if operator in (BinaryOperator.DIV, BinaryOperator.MOD) and (right <= 0 or left < 0):
        return None
    if operator in (BinaryOperator.SHL, BinaryOperator.SHR) and not 0 <= right < 8 * dtype.size_bytes:
        return None
    if operator is BinaryOperator.SHL and left < 0:
        return None
    value = _COMPUTED[operator](left, right)
    if operator.is_comparison:
        return Const(int(value), DType.BOOL)
    low, high = dtype.bounds
    return Const(value, dtype) if low <= value <= high else None
