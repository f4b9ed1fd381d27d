"""Expressions as C text: explicit where C would convert with a loss, silent where it promotes."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from bytewright.diagnostics import InternalError
from bytewright.ir.address import flat_index
from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    MathCall,
    Select,
    Var,
)
from bytewright.ir.scope import LOCAL
from bytewright.ir.types import DType
from bytewright.ir.walk import as_any

C_TYPES = {
    DType.BOOL: "int",
    DType.I8: "int8_t",
    DType.U8: "uint8_t",
    DType.I16: "int16_t",
    DType.I32: "int32_t",
    DType.I64: "int64_t",
    DType.F32: "float",
    DType.F64: "double",
}
_LIMITS = {DType.I32: "INT32_MIN", DType.I64: "INT64_MIN"}
# Binding strength of C's operators.
_PRIMARY, _UNARY, _MULTIPLY, _ADD, _SHIFT, _RELATION, _EQUALITY, _BIT_AND, _AND, _OR, _CHOICE = range(
    11, 0, -1
)
_STRENGTH = {
    BinaryOperator.MUL: _MULTIPLY,
    BinaryOperator.DIV: _MULTIPLY,
    BinaryOperator.MOD: _MULTIPLY,
    BinaryOperator.ADD: _ADD,
    BinaryOperator.SUB: _ADD,
    BinaryOperator.SHL: _SHIFT,
    BinaryOperator.SHR: _SHIFT,
    BinaryOperator.LT: _RELATION,
    BinaryOperator.LE: _RELATION,
    BinaryOperator.GT: _RELATION,
    BinaryOperator.GE: _RELATION,
    BinaryOperator.EQ: _EQUALITY,
    BinaryOperator.AND: _BIT_AND,
    BinaryOperator.LOGICAL_AND: _AND,
    BinaryOperator.LOGICAL_OR: _OR,
}
_PROMOTED = (DType.BOOL, DType.I8, DType.U8, DType.I16)


def c_expression(expression: Expr) -> str:
    """The expression as C text."""
    return _text(expression)[0]


def c_element(buffer: Buffer, indices: tuple[Expr, ...]) -> str:
    """An element of a buffer; a scalar that is private to the kernel is a variable, and so its name."""
    if not buffer.shape and buffer.scope == LOCAL:
        return buffer.name
    return f"{buffer.name}[{c_expression(flat_index(buffer, indices))}]"


def helper_name(operator: BinaryOperator, dtype: DType) -> str:
    """The C function for min or max of a type."""
    return f"{operator.value}_{dtype.value}"


def _text(expression: Expr) -> tuple[str, int]:
    """C text and its binding strength."""
    node = as_any(expression)
    match node:
        case Const():
            return _constant(node)
        case Var():
            return node.name, _PRIMARY
        case Load():
            return c_element(node.buffer, node.indices), _PRIMARY
        case Binary():
            return _binary(node)
        case Cast():
            return _cast(node)
        case Select():
            condition, chosen, other = (
                _inside(e, _CHOICE + 1) for e in (node.condition, node.if_true, node.if_false)
            )
            return f"{condition} ? {chosen} : {other}", _CHOICE
        case MathCall():
            return f"{node.function.value}({c_expression(node.operand)})", _PRIMARY
        case _:
            assert_never(node)


def _inside(expression: Expr, strength: int) -> str:
    """The text, in parentheses unless it binds at least as strongly."""
    text, own = _text(expression)
    return text if own >= strength else f"({text})"


def _constant(node: Const) -> tuple[str, int]:
    value = node.value
    if node.dtype is DType.F32:
        text = repr(float(np.format_float_scientific(np.float32(value), unique=True, trim="-")))
        text = text if any(mark in text for mark in ".e") else f"{text}.0"
        return (f"{text}f", _PRIMARY) if value >= 0 else (f"{text}f", _UNARY)
    if node.dtype in _LIMITS and value == node.dtype.bounds[0]:
        return _LIMITS[node.dtype], _PRIMARY
    text = f"INT64_C({abs(value)})" if node.dtype is DType.I64 else str(abs(value))
    return (text, _PRIMARY) if value >= 0 else (f"-{text}", _UNARY)


def _binary(node: Binary) -> tuple[str, int]:
    if node.operator in (BinaryOperator.MIN, BinaryOperator.MAX):
        name = helper_name(node.operator, node.dtype)
        return f"{name}({c_expression(node.left)}, {c_expression(node.right)})", _PRIMARY
    strength = _STRENGTH[node.operator]
    plain = {_MULTIPLY: (_MULTIPLY, _UNARY), _ADD: (_ADD, _MULTIPLY)}
    # Outside of sums and products, parentheses spare the reader C's table of precedences.
    left_strength, right_strength = plain.get(strength, (_UNARY, _UNARY))
    if strength in (_RELATION, _EQUALITY):
        left_strength = right_strength = _ADD
    if strength == _AND:
        left_strength = right_strength = _EQUALITY
        if isinstance(node.left, Binary) and node.left.operator is node.operator:
            left_strength = _AND
    if strength == _OR:
        left_strength = right_strength = _EQUALITY
        if isinstance(node.left, Binary) and node.left.operator is node.operator:
            left_strength = _OR
    right = node.right
    if strength == _SHIFT and isinstance(right, Const):
        right = Const(right.value, DType.I32)
    left_text, right_text = _inside(node.left, left_strength), _inside(right, right_strength)
    return f"{left_text} {node.operator.value} {right_text}", strength


def _cast(node: Cast) -> tuple[str, int]:
    if node.operand.dtype in _PROMOTED and node.dtype is DType.I32:
        return _text(node.operand)
    if node.dtype is DType.BOOL:
        raise InternalError("a cast to bool has no C text")
    return f"({C_TYPES[node.dtype]}){_inside(node.operand, _UNARY)}", _UNARY
