"""Comparisons, truth values, and choices by them."""

from dataclasses import dataclass

from bytewright import ir
from bytewright.frontends.tflite.accumulator import rescale
from bytewright.frontends.tflite.conversion import Conversion
from bytewright.frontends.tflite.graph_builder import Operand
from bytewright.ops.arithmetic.factors import COMPARISON_LEFT_SHIFT, prepare_comparison
from bytewright.ops.comparisons import Equal, Greater, GreaterEqual, LogicalAnd, LogicalNot, LogicalOr
from bytewright.ops.elementwise import Select

_COMPARED = (ir.DType.I8, ir.DType.I16, ir.DType.F32, ir.DType.I32, ir.DType.I64)


IS_EQUAL = Equal()
"""Whether two values are alike."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison as one of the graph's.

    Attributes:
        is_turned: True if the operands change places.
        is_negated: True if the result is not what the operation gives.
    """

    operation: Greater | GreaterEqual | Equal
    is_turned: bool = False
    is_negated: bool = False


COMPARISONS = {
    "EQUAL": Comparison(IS_EQUAL),
    "GREATER": Comparison(Greater()),
    "GREATER_EQUAL": Comparison(GreaterEqual()),
    "LESS": Comparison(Greater(), is_turned=True),
    "LESS_EQUAL": Comparison(GreaterEqual(), is_turned=True),
    "NOT_EQUAL": Comparison(IS_EQUAL, is_negated=True),
}


def convert_comparison(at: Conversion) -> None:
    """The six comparisons: of int8, each operand at its own scale with 8 more bits; equality of truth values too.

    Of int16 equality is one of scaled values, and order one of raw values, as LiteRT has it.
    """
    at.require_counts((2,))
    form = COMPARISONS[at.operator.kind]
    allowed = (*_COMPARED, ir.DType.BOOL) if isinstance(form.operation, Equal) else _COMPARED
    operands = [at.typed_operand(i, f"{role} operand", allowed) for i, role in enumerate(("first", "second"))]
    same = operands[0].dtype is operands[1].dtype
    at.require(same, f"operands have different types: {', '.join(o.tensor.element_type for o in operands)}")
    is_scaled = operands[0].dtype is ir.DType.I8 or (
        operands[0].dtype is ir.DType.I16 and isinstance(form.operation, Equal)
    )
    values = [
        _scaled(at, operand, role) if is_scaled else at.value_of(operand, role)
        for operand, role in zip(operands, ("first", "second"), strict=True)
    ]
    if form.is_turned:
        values.reverse()
    result = at.emit(form.operation, values, "compared")
    at.define(at.emit(LogicalNot(), (result,), "negated") if form.is_negated else result)


def _scaled(at: Conversion, operand: Operand, role: str) -> str:
    """The operand at its own scale."""
    value = at.value_of(operand, role)
    scale, zero_point, _ = at.affine(operand.tensor)
    factor = prepare_comparison(scale, at.operator.kind)
    return rescale(at, value, [factor], zero_point, 0, ir.DType.I32, f"{role}_widened", COMPARISON_LEFT_SHIFT)


def convert_logical(at: Conversion, operation: LogicalAnd | LogicalNot | LogicalOr, count: int = 2) -> None:
    """An operator on truth values."""
    at.require_counts((count,))
    roles = ("first", "second")[:count]
    operands = [
        at.value_of(at.typed_operand(i, f"{role} operand", (ir.DType.BOOL,)), role)
        for i, role in enumerate(roles)
    ]
    at.define(at.emit(operation, operands, "result"))


def convert_select(at: Conversion) -> None:
    """SELECT and SELECT_V2: raw values, whatever the quantisations.

    In SELECT a condition with one axis chooses whole elements of the first axis, and the choices have one shape.
    """
    at.require_counts((3,))
    condition = at.typed_operand(0, "condition", (ir.DType.BOOL,))
    first, second = at.operand(1, "first choice"), at.operand(2, "second choice")
    at.require_same_dtype(first, second)
    value = at.value_of(condition, "condition")
    if at.operator.kind == "SELECT":
        at.require(
            first.shape == second.shape,
            f"the choices have shapes {list(first.shape)} and {list(second.shape)}, which must be equal",
        )
        if condition.shape != first.shape and len(condition.shape) == 1 and first.shape:
            value = at.reshape(value, (*condition.shape, *(1,) * (len(first.shape) - 1)), "condition")
    choices = (at.value_of(first, "first"), at.value_of(second, "second"))
    at.define(emit_choice(at, value, *choices))


def emit_choice(at: Conversion, condition: str, if_true: str, if_false: str) -> str:
    """One of two values, element by element."""
    return at.emit(Select(), (condition, if_true, if_false), "chosen")


def emit_equal(at: Conversion, first: str, second: str, role: str) -> str:
    """Whether two values are alike, element by element."""
    return at.emit(IS_EQUAL, (first, second), role)


def emit_both(at: Conversion, first: str, second: str, role: str) -> str:
    """Whether two truth values hold, element by element."""
    return at.emit(LogicalAnd(), (first, second), role)


def emit_either(at: Conversion, first: str, second: str, role: str) -> str:
    """Whether one of two truth values holds, element by element."""
    return at.emit(LogicalOr(), (first, second), role)


def emit_greater(at: Conversion, first: str, second: str, role: str) -> str:
    """Whether a value is greater than another, element by element."""
    return at.emit(Greater(), (first, second), role)
