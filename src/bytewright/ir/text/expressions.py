"""The text of expressions, printed and read: the fewest parentheses that keep their tree, names that are defined."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import assert_never

from bytewright import ir
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.ir.text.notation import prim_name
from bytewright.ir.text.reader import NUMBER, Reader
from bytewright.ir.text.words import Word
from bytewright.ir.walk import as_any
from bytewright.target.mistake import did_you_mean

# Operators written between their operands, from the loosest binding to the tightest; all group to the left.
_LEVELS = (
    (ir.BinaryOperator.LOGICAL_OR,),
    (ir.BinaryOperator.LOGICAL_AND,),
    (ir.BinaryOperator.EQ,),
    (ir.BinaryOperator.LT, ir.BinaryOperator.LE, ir.BinaryOperator.GT, ir.BinaryOperator.GE),
    (ir.BinaryOperator.AND,),
    (ir.BinaryOperator.SHL, ir.BinaryOperator.SHR),
    (ir.BinaryOperator.ADD, ir.BinaryOperator.SUB),
    (ir.BinaryOperator.MUL, ir.BinaryOperator.DIV, ir.BinaryOperator.MOD),
)
PRECEDENCE = {operator: level for level, operators in enumerate(_LEVELS, 1) for operator in operators}
_TIGHTEST = len(_LEVELS) + 1
# Nobody remembers how these bind, so their operands stand in parentheses.
_PARENTHESISED = frozenset({ir.BinaryOperator.SHL, ir.BinaryOperator.SHR, ir.BinaryOperator.AND})
_LONGEST_FIRST = sorted(PRECEDENCE, key=lambda operator: (-len(operator.value), operator.value))
_DTYPES = {dtype.value: dtype for dtype in ir.DType}
_CONSTANT = re.compile(rf"({NUMBER.pattern})(?::({'|'.join(_DTYPES)})\b)?")
_CALL_WORD = re.compile(r"([a-z][a-z0-9_]*)\(")


@dataclass(slots=True)
class Defined:
    """What is defined at a point of a function; buffers with their scopes, by the same names; and all instructions."""

    variables: dict[str, ir.Var] = field(default_factory=dict[str, ir.Var])
    buffers: dict[str, ir.Buffer] = field(default_factory=dict[str, ir.Buffer])
    scopes: dict[str, ir.Scope | None] = field(default_factory=dict[str, ir.Scope | None])
    instructions: dict[str, ir.Instruction] = field(default_factory=dict[str, ir.Instruction])

    def inner(self) -> Defined:
        """The same, for a block: what it defines stays in it."""
        return Defined(dict(self.variables), dict(self.buffers), dict(self.scopes), self.instructions)

    def define(self, buffer: ir.Buffer, scope: ir.Scope | None) -> None:
        """Adds a buffer."""
        self.buffers[buffer.name], self.scopes[buffer.name] = buffer, scope


def format_expression(expression: ir.Expr, binding: int = 0) -> str:
    """The expression's text, in parentheses if it binds less tightly than its surroundings ask."""
    node = as_any(expression)
    match node:
        case ir.Const():
            return _format_constant(node)
        case ir.Var():
            return prim_name(node.name)
        case ir.Load():
            return format_element(node.buffer, node.indices)
        case ir.Cast():
            return f"{node.dtype.value}({format_expression(node.operand)})"
        case ir.ScalarCall():
            return f"{node.function.name}({', '.join(map(format_expression, node.operands))})"
        case ir.Select():
            sides = (node.condition, node.if_true, node.if_false)
            return f"{Word.SELECT}({', '.join(format_expression(side) for side in sides)})"
        case ir.Binary():
            return _format_binary(node, binding)
        case _:
            assert_never(node)


def read_expression(reader: Reader, names: Defined, binding: int = 0) -> ir.Expr:
    """An expression whose operators bind at least as tightly as `binding`."""
    with ExitStack() as depth:
        left = _read_operand(reader, names)
        while True:
            operator = _peek_operator(reader)
            if operator is None or PRECEDENCE[operator] < max(binding, 1):
                return left
            reader.expect(operator.value)
            depth.enter_context(reader.nested())  # what was read before is one level deeper now
            left = ir.Binary(operator, left, read_expression(reader, names, PRECEDENCE[operator] + 1))


def _peek_operator(reader: Reader) -> ir.BinaryOperator | None:
    return next((operator for operator in _LONGEST_FIRST if reader.sees(operator.value)), None)


def _read_operand(reader: Reader, names: Defined) -> ir.Expr:
    start = reader.position
    if reader.accept("("):
        with reader.nested():
            inner = read_expression(reader, names)
        reader.expect(")")
        return inner
    for text, value in ((Word.TRUE, 1), (Word.FALSE, 0)):
        if reader.accept(text):
            return ir.Const(value, ir.DType.BOOL)
    if (found := reader.match(_CONSTANT)) is not None:
        return _read_constant(reader, reader.value_of(found[1], start), found[2], start)
    if (found := reader.match(_CALL_WORD)) is not None:
        return _read_application(reader, names, found[1], start)
    name = reader.prim_name()
    if reader.accept("["):
        buffer = known_buffer(reader, names, name, start)
        return ir.Load(buffer, read_indices(reader, names))
    if name in names.variables:
        return names.variables[name]
    if name in names.buffers:
        reader.refuse(f"'{name}' is a buffer", start, f"an element of it is {name}[...], its address &{name}")
    apart = name.replace("/", " / ")
    help_text = f"a division has spaces: {apart}" if "/" in name else None
    return reader.refuse(
        f"no variable '{name}' is defined here", start, help_text or _meant(name, names.variables)
    )


def _format_binary(node: ir.Binary, binding: int) -> str:
    if node.operator not in PRECEDENCE:
        return f"{node.operator.value}({format_expression(node.left)}, {format_expression(node.right)})"
    own = PRECEDENCE[node.operator]
    grouped = node.operator in _PARENTHESISED
    left = format_expression(node.left, _TIGHTEST if grouped else own)
    right = format_expression(node.right, _TIGHTEST if grouped else own + 1)
    text = f"{left} {node.operator.value} {right}"
    return f"({text})" if own < binding else text


def _format_constant(node: ir.Const) -> str:
    if node.dtype is ir.DType.BOOL and node.value in (0, 1):
        return Word.TRUE if node.value else Word.FALSE
    suffix = "" if node.dtype is ir.DType.I32 else f":{node.dtype.value}"
    return f"{node.value!r}{suffix}"


def _read_constant(reader: Reader, number: int | float, suffix: str | None, start: int) -> ir.Const:
    """A number of its type; without one it is an `i32`."""
    dtype = ir.DType.I32 if suffix is None else ir.DType(suffix)
    if dtype.is_integer and not isinstance(number, int):
        help_text = f"{number}:f32" if suffix is None else None
        reader.refuse(f"{number} is no {dtype.value}", start, help_text)
    if dtype.is_integer and not dtype.bounds[0] <= number <= dtype.bounds[1]:
        low, high = dtype.bounds
        reader.refuse(f"{number} is no {dtype.value}, which is {low} to {high}", start)
    return ir.Const(number, dtype)


def _read_application(reader: Reader, names: Defined, word: str, start: int) -> ir.Expr:
    with reader.nested():
        operands = reader.items(")", lambda: read_expression(reader, names))
    match operands:
        case _ if (function := SCALAR_FUNCTIONS.get(word)) and len(operands) == len(function.parameters):
            return ir.ScalarCall(function, operands)
        case (operand,) if word in _DTYPES:
            return ir.Cast(operand, _DTYPES[word])
        case (left, right) if word in (Word.MIN, Word.MAX):
            return ir.Binary(ir.BinaryOperator(word), left, right)
        case (condition, if_true, if_false) if word == Word.SELECT:
            return ir.Select(condition, if_true, if_false)
        case _:
            what = f"'{word}' of {len(operands)} operands does not exist"
            known = ", ".join([*SCALAR_FUNCTIONS, *_DTYPES, Word.MIN, Word.MAX, Word.SELECT])
            return reader.refuse(what, start, f"there are {known}")


def format_element(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
    """`input[y, 0]`."""
    return f"{prim_name(buffer.name)}[{', '.join(format_expression(index) for index in indices)}]"


def read_indices(reader: Reader, names: Defined) -> tuple[ir.Expr, ...]:
    """Indices, after the opening bracket."""
    with reader.nested():
        return reader.items("]", lambda: read_expression(reader, names))


def known_buffer(reader: Reader, names: Defined, name: str, start: int) -> ir.Buffer:
    """The buffer of a name that stands in the text from an offset on."""
    if name in names.buffers:
        return names.buffers[name]
    if name in names.variables:
        reader.refuse(f"'{name}' is a variable, not a buffer", start)
    return reader.refuse(f"no buffer '{name}' is defined here", start, _meant(name, names.buffers))


def _meant(name: str, known: Iterable[str]) -> str | None:
    return did_you_mean(get_close_matches(name, known, 1))


def read_buffer_name(reader: Reader, names: Defined) -> ir.Buffer:
    """The name of a buffer that is defined."""
    start = reader.position
    return known_buffer(reader, names, reader.prim_name(), start)


def format_region(region: ir.Region) -> str:
    """`&input[y, 0]`, or `&input` for the whole."""
    element = format_element(region.buffer, region.indices)
    return f"&{element if region.indices else prim_name(region.buffer.name)}"


def read_region(reader: Reader, names: Defined) -> ir.Region:
    """The same."""
    reader.expect("&")
    buffer = read_buffer_name(reader, names)
    if not reader.accept("["):
        return ir.Region(buffer)
    return ir.Region(buffer, read_indices(reader, names))
