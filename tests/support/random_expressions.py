"""Random expressions with their values: defined arithmetic only, of every operator and type, of any nesting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Var,
    binary,
    cast,
)
from bytewright.ir.scalar_functions import FLOOR, SQRT
from bytewright.ir.types import DType

BOOL, I16, I32, I64, F32, F64 = DType.BOOL, DType.I16, DType.I32, DType.I64, DType.F32, DType.F64
STORED = (BOOL, DType.I8, DType.U8, I16, I32, I64, F32, F64)
RESULTS = (I16, I32, I64, F32, F64, BOOL)
NUM_ELEMENTS = 16
_COMPARISONS = (BinaryOperator.LT, BinaryOperator.LE, BinaryOperator.GT, BinaryOperator.GE, BinaryOperator.EQ)
_INTEGER = (
    BinaryOperator.ADD,
    BinaryOperator.SUB,
    BinaryOperator.MUL,
    BinaryOperator.DIV,
    BinaryOperator.MOD,
    BinaryOperator.SHL,
    BinaryOperator.SHR,
    BinaryOperator.AND,
    BinaryOperator.MIN,
    BinaryOperator.MAX,
)
_FLOAT = (
    BinaryOperator.ADD,
    BinaryOperator.SUB,
    BinaryOperator.MUL,
    BinaryOperator.DIV,
    BinaryOperator.MIN,
    BinaryOperator.MAX,
)
Number = int | float


@dataclass(frozen=True)
class Valued:
    """An expression and what it comes to."""

    expr: Expr
    value: Number


class Expressions:
    """Draws expressions over the variables `i`, `j` and a buffer of each type.

    Args:
        seed: Decides everything.
    """

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.variables = {"i": 3, "j": -5}
        self.data = {dtype: self._numbers(dtype) for dtype in STORED}

    def buffer(self, dtype: DType) -> Buffer:
        """The buffer of a type, a matrix, so that its index is computed."""
        return Buffer(f"of_{dtype.value}", (4, NUM_ELEMENTS // 4), dtype, dtype.size_bytes)

    def draw(self, dtype: DType, depth: int) -> Valued:
        """An expression of a type, nested at most so deep."""
        if depth == 0 or self._below(6) == 0:
            return self._leaf(dtype)
        drawn = self._try(dtype, depth)
        return drawn if drawn is not None else self._leaf(dtype)

    def _below(self, count: int) -> int:
        return int(self.generator.integers(count))

    def _numbers(self, dtype: DType) -> np.ndarray:
        if dtype is BOOL:
            return self.generator.random(NUM_ELEMENTS) < 0.5
        if not dtype.is_integer:
            return (self.generator.normal(size=NUM_ELEMENTS) * 40).astype(dtype.numpy)
        low, high = dtype.bounds
        values = self.generator.integers(low, high, NUM_ELEMENTS, dtype=np.int64, endpoint=True)
        small = self.generator.integers(max(low, -9), 10, NUM_ELEMENTS)
        mixed = np.where(self.generator.random(NUM_ELEMENTS) < 0.7, small, values)
        mixed[:2] = low, high
        return mixed.astype(dtype.numpy)

    def _leaf(self, dtype: DType) -> Valued:
        kind = self._below(3)
        if dtype is BOOL and kind != 1:
            left, right = self._leaf(I32), self._leaf(I32)
            return Valued(Binary(BinaryOperator.LT, left.expr, right.expr), int(left.value < right.value))
        if kind == 0 and dtype is I32:
            name = "ij"[self._below(2)]
            return Valued(Var(name, I32), self.variables[name])
        if kind == 1:
            position = self._below(NUM_ELEMENTS)
            indices = (Const(position // 4, I32), Const(position % 4, I32))
            return Valued(Load(self.buffer(dtype), indices), self.data[dtype][position].item())
        if not dtype.is_integer:
            exact = float(np.float32(self.generator.normal() * 10.0 ** self._below(8)))
            number = [0.0, 1.0, -2.5, exact, 1e-30, 3.0e38][self._below(6)]
            return self._const(number if dtype is F64 else float(np.float32(number)), dtype)
        low, high = dtype.bounds
        return self._const([low, high, 0, 1, -1, 7, -100][self._below(7)], dtype)

    def _const(self, value: Number, dtype: DType) -> Valued:
        return Valued(Const(value, dtype), value)

    def _try(self, dtype: DType, depth: int) -> Valued | None:
        kind = self._below(8)
        if kind == 0:
            return self._select(dtype, depth)
        if kind == 1:
            return self._truth_of(depth) if dtype is BOOL else self._converted(dtype, depth)
        if kind == 2 and dtype is F32:
            return self._call(depth)
        if dtype is BOOL:
            return self._truth(depth)
        return self._binary(dtype, depth)

    def _truth_of(self, depth: int) -> Valued:
        inner = self.draw(RESULTS[self._below(len(RESULTS))], depth - 1)
        return Valued(Cast(inner.expr, BOOL), int(bool(inner.value)))

    def _select(self, dtype: DType, depth: int) -> Valued | None:
        condition, first, second = (self.draw(d, depth - 1) for d in (BOOL, dtype, dtype))
        chosen = first if condition.value else second
        return Valued(Select(condition.expr, first.expr, second.expr), chosen.value)

    def _converted(self, dtype: DType, depth: int) -> Valued | None:
        source = STORED[self._below(len(STORED))]
        if source is dtype:
            return None
        stored_only = source in (DType.I8, DType.U8)
        inner = self._leaf(source) if stored_only else self.draw(source, depth - 1)
        if dtype.is_integer and not source.is_integer and source is not BOOL:
            low, high = dtype.bounds
            if not math.isfinite(inner.value) or not low <= math.trunc(inner.value) <= high:
                return None
            return Valued(Cast(inner.expr, dtype), math.trunc(inner.value))
        if dtype.is_integer:
            width = dtype.size_bytes * 8
            wrapped = (int(inner.value) + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
            return Valued(Cast(inner.expr, dtype), wrapped)
        if dtype is F32 and source is I64 and abs(inner.value) > 2**53:
            return None
        return self._finite(Cast(inner.expr, dtype), float(inner.value), dtype)

    def _finite(self, expr: Expr, value: float, dtype: DType) -> Valued | None:
        with np.errstate(all="ignore"):
            rounded = float(np.float32(value)) if dtype is F32 else float(value)
        return Valued(expr, rounded) if math.isfinite(rounded) else None

    def _call(self, depth: int) -> Valued | None:
        inner = self.draw(F32, depth - 1)
        if self._below(2):
            return Valued(FLOOR(inner.expr), float(np.floor(np.float32(inner.value))))
        if inner.value < 0:
            return None
        return Valued(SQRT(inner.expr), float(np.sqrt(np.float32(inner.value))))

    def _truth(self, depth: int) -> Valued:
        if self._below(2):
            operator = (BinaryOperator.LOGICAL_AND, BinaryOperator.LOGICAL_OR)[self._below(2)]
            left, right = self.draw(BOOL, depth - 1), self.draw(BOOL, depth - 1)
            both = operator is BinaryOperator.LOGICAL_AND
            value = (left.value and right.value) if both else (left.value or right.value)
            return Valued(Binary(operator, left.expr, right.expr), int(bool(value)))
        operator = _COMPARISONS[self._below(len(_COMPARISONS))]
        operands = RESULTS[self._below(len(RESULTS) - 1)]
        left, right = self.draw(operands, depth - 1), self.draw(operands, depth - 1)
        value = {
            BinaryOperator.LT: left.value < right.value,
            BinaryOperator.LE: left.value <= right.value,
            BinaryOperator.GT: left.value > right.value,
            BinaryOperator.GE: left.value >= right.value,
            BinaryOperator.EQ: left.value == right.value,
        }[operator]
        return Valued(Binary(operator, left.expr, right.expr), int(value))

    def _binary(self, dtype: DType, depth: int) -> Valued | None:
        operators = _INTEGER if dtype.is_integer else _FLOAT
        operator = operators[self._below(len(operators))]
        left, right = self.draw(dtype, depth - 1), self.draw(dtype, depth - 1)
        if operator in (BinaryOperator.SHL, BinaryOperator.SHR):
            right = self._const(self._below(8 * dtype.size_bytes), dtype)
        value = self._result(operator, left.value, right.value, dtype)
        if value is None:
            return None
        # Half of them as the builder folds them, half as they are.
        build = binary if self._below(2) else Binary
        return Valued(build(operator, left.expr, right.expr), value)

    def _result(self, operator: BinaryOperator, x: Number, y: Number, dtype: DType) -> Number | None:
        """The value, or None where C does not define it."""
        if operator is BinaryOperator.MIN:
            return min(x, y)
        if operator is BinaryOperator.MAX:
            return max(x, y)
        if not dtype.is_integer:
            return self._float_result(operator, x, y, dtype)
        a, b = int(x), int(y)
        if operator in (BinaryOperator.DIV, BinaryOperator.MOD) and (a < 0 or b <= 0):
            return None
        if operator is BinaryOperator.SHL and a < 0:
            return None
        value = {
            BinaryOperator.ADD: lambda: a + b,
            BinaryOperator.SUB: lambda: a - b,
            BinaryOperator.MUL: lambda: a * b,
            BinaryOperator.DIV: lambda: a // b,
            BinaryOperator.MOD: lambda: a % b,
            BinaryOperator.SHL: lambda: a << b,
            BinaryOperator.SHR: lambda: a >> b,
            BinaryOperator.AND: lambda: a & b,
        }[operator]()
        low, high = dtype.bounds
        return value if low <= value <= high else None

    def _float_result(self, operator: BinaryOperator, x: Number, y: Number, dtype: DType) -> float | None:
        kind = dtype.numpy.type
        a, b = kind(x), kind(y)
        if operator is BinaryOperator.DIV and b == 0:
            return None
        with np.errstate(all="ignore"):
            value = {
                BinaryOperator.ADD: lambda: a + b,
                BinaryOperator.SUB: lambda: a - b,
                BinaryOperator.MUL: lambda: a * b,
                BinaryOperator.DIV: lambda: a / b,
            }[operator]()
        return float(value) if math.isfinite(value) else None


def converted(value: Valued, dtype: DType) -> Valued:
    """The value as it is; a truth value as I32."""
    return Valued(cast(value.expr, dtype), value.value)
