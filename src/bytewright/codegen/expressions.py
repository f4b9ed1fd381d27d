"""Expressions as C text: explicit where C would convert with a loss, silent where it promotes."""

import re
from collections.abc import Iterable, Iterator
from math import prod
from typing import assert_never

import numpy as np

from bytewright import ir
from bytewright.ir.text.expressions import PRECEDENCE
from bytewright.ir.walk import as_any, operands
from bytewright.naming.operator_functions import CLAMPS, EXTREMES

# Of a value. In memory a truth value is a byte of its own type, see `c_element_type`.
C_TYPES = {
    ir.DType.BOOL: "bool",
    ir.DType.I8: "int8_t",
    ir.DType.U8: "uint8_t",
    ir.DType.I16: "int16_t",
    ir.DType.I32: "int32_t",
    ir.DType.U32: "uint32_t",
    ir.DType.I64: "int64_t",
    ir.DType.U64: "uint64_t",
    ir.DType.F32: "float",
    ir.DType.F64: "double",
}
_LIMITS = {ir.DType.I32: "INT32_MIN", ir.DType.I64: "INT64_MIN"}
# Binding strength: of operators between their operands as in the text of the IR. C differs in `&`, which binds looser
# than comparisons there; but operands of neither stand without parentheses.
_SUM, _PRODUCT = PRECEDENCE[ir.BinaryOperator.ADD], PRECEDENCE[ir.BinaryOperator.MUL]
_EQUALITY = PRECEDENCE[ir.BinaryOperator.EQ]
_CHOICE, _UNARY, _PRIMARY = 0, _PRODUCT + 1, _PRODUCT + 2
_ENCLOSED = re.compile(r"\([^()]*\)")
_NARROW = (ir.DType.I8, ir.DType.U8, ir.DType.I16)
_PROMOTED = (ir.DType.BOOL, *_NARROW)


def c_expression(expression: ir.Expr) -> str:
    """The expression as C text."""
    return _text(expression)[0]


def c_value(expression: ir.Expr) -> str:
    """The text of what a variable or a parameter of the expression's type becomes.

    C computes narrow integers as `int`, and the IR says that the result fits: a cast says so to the compiler.
    """
    if expression.dtype in _NARROW and _is_promoted(expression):
        return f"({C_TYPES[expression.dtype]}){_inside(expression, _UNARY)}"
    return c_expression(expression)


def c_stored(buffer: ir.Buffer, expression: ir.Expr) -> str:
    """The text of what an element becomes."""
    if expression.dtype is ir.DType.BOOL and is_in_memory(buffer):
        return _truth_as_number(expression)
    return c_value(expression)


def _is_promoted(expression: ir.Expr) -> bool:
    """Whether C gives an `int` where the IR has a narrower type."""
    match expression:
        case ir.Binary():
            return expression.operator not in (ir.BinaryOperator.MIN, ir.BinaryOperator.MAX)
        case ir.Select():
            return _is_promoted(expression.if_true) or _is_promoted(expression.if_false)
        case _:
            return False


def is_in_memory(buffer: ir.Buffer) -> bool:
    """Whether a buffer is an array or a pointer; a kernel's variables are the buffers without axes (`c_form`)."""
    return bool(buffer.shape) and not buffer.register


def register_type(buffer: ir.Buffer) -> str:
    """The name of the type of a register: `i8x16`."""
    return f"{buffer.dtype.value}x{ir.num_elements(buffer)}"


def c_element_type(buffer: ir.Buffer) -> str:
    """The C type of a buffer's elements: `memory_type`, but `bool` for a variable; that of a register as a whole."""
    if buffer.register:
        return register_type(buffer)
    return memory_type(buffer.dtype) if is_in_memory(buffer) else C_TYPES[buffer.dtype]


def memory_type(dtype: ir.DType) -> str:
    """The C type of an element in memory. A truth value is a byte, 0 or 1: what C makes of `bool` is its own affair."""
    return "uint8_t" if dtype is ir.DType.BOOL else C_TYPES[dtype]


def c_num_bytes(extents: Iterable[int | str], dtype: ir.DType, c_type: str, line_bytes: int = 0) -> str:
    """The bytes of an array: a number, times each extent that the run is given, in the arithmetic of a C type.

    With `line_bytes` also what is left of its last cache line.
    """
    shape, line = tuple(extents), max(line_bytes, 1)
    num_bytes = prod(extent for extent in shape if isinstance(extent, int)) * dtype.size_bytes
    texts = [extent for extent in shape if isinstance(extent, str)]
    given = [
        f"({c_type})({text})" if "(" in text and not _ENCLOSED.fullmatch(text) else f"({c_type}){text}"
        for text in texts
    ]
    if not given:
        return str(-(-num_bytes // line) * line)
    product = " * ".join([*given, str(num_bytes)])
    return product if line == 1 else f"({product} + {line - 1}u) / {line}u * {line}u"


def c_element(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
    """An element of a buffer, or the variable that it is."""
    if buffer.register:
        return f"{buffer.name}.lane[{c_expression(ir.flat_index(buffer, indices))}]"
    if not is_in_memory(buffer):
        return buffer.name
    return f"{buffer.name}[{c_expression(ir.flat_index(buffer, indices))}]"


def _as_call(expression: ir.Expr) -> ir.Expr:
    """The expression, or the call that its operation is where C has no operator for it."""
    match expression:
        case ir.Binary(
            ir.BinaryOperator.MIN,
            ir.Binary(ir.BinaryOperator.MAX, value, ir.Const() as low),
            ir.Const() as high,
        ):
            return CLAMPS[expression.dtype](value, low, high)
        case ir.Binary(ir.BinaryOperator.MIN | ir.BinaryOperator.MAX as operator, left, right):
            return EXTREMES[operator, expression.dtype](left, right)
        case _:
            return expression


def called_in(expression: ir.Expr) -> Iterator[ir.ScalarFunction]:
    """The functions that the text of an expression calls."""
    node = _as_call(expression)
    if isinstance(node, ir.ScalarCall):
        yield node.function
    for operand in operands(node):
        yield from called_in(operand)


def _text(expression: ir.Expr) -> tuple[str, int]:
    """C text and its binding strength."""
    node = as_any(_as_call(expression))
    match node:
        case ir.Const():
            return _constant(node)
        case ir.Var():
            return node.name, _PRIMARY
        case ir.Load():
            element = c_element(node.buffer, node.indices)
            if node.dtype is ir.DType.BOOL and is_in_memory(node.buffer):
                return f"{element} != 0", _EQUALITY
            return element, _PRIMARY
        case ir.Binary():
            return _binary(node)
        case ir.Cast():
            return _cast(node)
        case ir.Select():
            chosen, other = (_inside(side, _CHOICE + 1) for side in (node.if_true, node.if_false))
            return f"{_inside(node.condition, _UNARY)} ? {chosen} : {other}", _CHOICE
        case ir.ScalarCall():
            return f"{node.function.name}({', '.join(map(c_value, node.operands))})", _PRIMARY
        case _:
            assert_never(node)


def _inside(expression: ir.Expr, strength: int) -> str:
    """The text, in parentheses unless it binds at least as strongly."""
    text, own = _text(expression)
    return text if own >= strength else f"({text})"


def _constant(node: ir.Const) -> tuple[str, int]:
    value = node.value
    if node.dtype in (ir.DType.F32, ir.DType.F64):
        return _float_constant(value, node.dtype)
    if node.dtype in _LIMITS and value == node.dtype.bounds[0]:
        return _LIMITS[node.dtype], _PRIMARY
    text = f"INT64_C({abs(value)})" if node.dtype is ir.DType.I64 else str(abs(value))
    return (text, _PRIMARY) if value >= 0 else (f"-{text}", _UNARY)


def _float_constant(value: float, dtype: ir.DType) -> tuple[str, int]:
    """The shortest digits that read back as the value, with its sign; macros of <math.h> for what has no digits."""
    with np.errstate(over="ignore"):
        rounded = np.float32(value) if dtype is ir.DType.F32 else np.float64(value)
    magnitude = np.abs(rounded)
    if np.isnan(magnitude):
        text = "NAN"
    elif np.isinf(magnitude):
        text = "INFINITY"
    else:
        text = repr(float(np.format_float_scientific(magnitude, unique=True, trim="-")))
        text = text if any(mark in text for mark in ".e") else f"{text}.0"
        text = f"{text}f" if dtype is ir.DType.F32 else text
    return (f"-{text}", _UNARY) if np.signbit(rounded) else (text, _PRIMARY)


def _truth_as_number(expression: ir.Expr) -> str:
    if isinstance(expression, ir.Const):
        return c_expression(expression)
    # Without the cast gcc warns where it makes a shift of a comparison with 0.
    return f"(uint8_t)({_inside(expression, _UNARY)} ? 1 : 0)"


def _binary(node: ir.Binary) -> tuple[str, int]:
    strength = PRECEDENCE[node.operator]
    # Parentheses spare the reader C's table of precedences, but for operands that continue a sum or a product: a
    # remainder is neither.
    operators = {node.operator, node.left.operator} if isinstance(node.left, ir.Binary) else {node.operator}
    continues = (strength in (_SUM, _PRODUCT) and ir.BinaryOperator.MOD not in operators) or (
        node.operator.is_lazy and isinstance(node.left, ir.Binary) and node.left.operator is node.operator
    )
    left_text, left_strength = _text(node.left)
    if left_strength < _UNARY and not (continues and left_strength == strength):
        left_text = f"({left_text})"
    right = node.right
    if node.operator in (ir.BinaryOperator.SHL, ir.BinaryOperator.SHR) and isinstance(right, ir.Const):
        right = ir.Const(right.value, ir.DType.I32)
    return f"{left_text} {node.operator.value} {_inside(right, _UNARY)}", strength


def _cast(node: ir.Cast) -> tuple[str, int]:
    if node.dtype is node.operand.dtype is ir.DType.BOOL:
        return _text(node.operand)
    if node.dtype is ir.DType.BOOL:
        return f"{_inside(node.operand, _SUM)} != 0", _EQUALITY
    if node.operand.dtype in _PROMOTED and node.dtype is ir.DType.I32:
        return _text(node.operand)
    return f"({C_TYPES[node.dtype]}){_inside(node.operand, _UNARY)}", _UNARY
