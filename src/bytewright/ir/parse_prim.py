"""Reads printed PrimFuncs: names resolve to the variables and buffers that were defined before."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from bytewright.ir.expr import (
    Binary,
    BinaryOperator,
    Buffer,
    Cast,
    Const,
    Expr,
    Load,
    MathCall,
    MathFunction,
    RingRows,
    Select,
    Var,
)
from bytewright.ir.parse_reader import Reader
from bytewright.ir.prim import (
    Access,
    Allocate,
    Annotations,
    BufferParameter,
    Call,
    CallKind,
    For,
    If,
    Let,
    LoopKind,
    Parameter,
    PrimFunc,
    Region,
    Role,
    ScalarParameter,
    Seq,
    Statement,
    Store,
    View,
)
from bytewright.ir.print_prim import PRECEDENCE
from bytewright.ir.types import DType

_CONSTANT = re.compile(
    r"(-?(?:(?:inf|nan)(?![\w/])|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))(?::("
    + "|".join(dtype.value for dtype in DType)
    + r")\b)?"
)
_CALL_WORD = re.compile(r"([a-z]+[a-z0-9]*)\(")


@dataclass(slots=True)
class Names:
    """What is defined at a point of a function."""

    variables: dict[str, Var] = field(default_factory=dict[str, Var])
    buffers: dict[str, Buffer] = field(default_factory=dict[str, Buffer])

    def inner(self) -> Names:
        """The same, for a block: what it defines stays in it."""
        return Names(dict(self.variables), dict(self.buffers))


def read_expression(reader: Reader, names: Names, binding: int = 0) -> Expr:
    """An expression whose operators bind at least as tightly as `binding`."""
    left = _read_operand(reader, names)
    while True:
        operator = _peek_operator(reader)
        if operator is None or PRECEDENCE[operator] < max(binding, 1):
            return left
        reader.expect(operator.value)
        left = Binary(operator, left, read_expression(reader, names, PRECEDENCE[operator] + 1))


def _peek_operator(reader: Reader) -> BinaryOperator | None:
    return next((operator for operator in _LONGEST_FIRST if reader.sees(operator.value)), None)


_LONGEST_FIRST = sorted(PRECEDENCE, key=lambda operator: (-len(operator.value), operator.value))


def _read_operand(reader: Reader, names: Names) -> Expr:
    if reader.accept("("):
        inner = read_expression(reader, names)
        reader.expect(")")
        return inner
    for text, value in (("true", 1), ("false", 0)):
        if reader.accept(text):
            return Const(value, DType.BOOL)
    if (found := reader.match(_CONSTANT)) is not None:
        number = int(found[1]) if re.fullmatch(r"-?\d+", found[1]) else float(found[1])
        return Const(number, DType(found[2]) if found[2] else DType.I32)
    if (found := reader.match(_CALL_WORD)) is not None:
        return _read_application(reader, names, found[1])
    name = reader.prim_name()
    if reader.accept("["):
        return Load(_buffer(reader, names, name), reader.items("]", lambda: read_expression(reader, names)))
    if name not in names.variables:
        reader.fail(f"something after '{name}', which is no variable here")
    return names.variables[name]


def _read_application(reader: Reader, names: Names, word: str) -> Expr:
    operands = reader.items(")", lambda: read_expression(reader, names))
    match operands:
        case (operand,) if word in _MATH:
            return MathCall(_MATH[word], operand)
        case (operand,) if word in _DTYPES:
            return Cast(operand, _DTYPES[word])
        case (left, right) if word in ("min", "max"):
            return Binary(BinaryOperator(word), left, right)
        case (condition, if_true, if_false) if word == "select":
            return Select(condition, if_true, if_false)
        case _:
            return reader.fail(f"something after '{word}' of {len(operands)} operands, which does not exist")


_MATH = {function.value: function for function in MathFunction}
_DTYPES = {dtype.value: dtype for dtype in DType}


def _buffer(reader: Reader, names: Names, name: str) -> Buffer:
    return (
        names.buffers[name]
        if name in names.buffers
        else reader.fail(f"something after '{name}', no buffer here")
    )


def _read_region(reader: Reader, names: Names) -> Region:
    reader.expect("&")
    buffer = _buffer(reader, names, reader.prim_name())
    if not reader.accept("["):
        return Region(buffer)
    return Region(buffer, reader.items("]", lambda: read_expression(reader, names)))


def _read_variable(reader: Reader) -> Var:
    name = reader.prim_name()
    reader.expect(":")
    return Var(name, reader.dtype())


def read_buffer(reader: Reader) -> Buffer:
    """`name : buffer<...>`."""
    name = reader.prim_name()
    reader.expect(":")
    reader.expect("buffer<")
    shape, dtype = reader.shape_and_dtype()
    reader.expect(",")
    scope = None
    if reader.sees('"'):
        scope = reader.scope()
        reader.expect(",")
    reader.expect("align=")
    alignment = reader.integer()
    rows = None
    if reader.accept(","):
        reader.expect("ring=")
        axis = reader.integer()
        reader.expect(":")
        rows = RingRows(axis, reader.integer())
    reader.expect(">")
    return Buffer(name, shape, dtype, scope, alignment, rows)


def read_block(reader: Reader, names: Names) -> Seq:
    """Statements between braces."""
    reader.expect("{")
    inner = names.inner()
    statements: list[Statement] = []
    while not reader.accept("}"):
        statements.append(_read_statement(reader, inner))
    return Seq(tuple(statements))


def _read_statement(reader: Reader, names: Names) -> Statement:
    if reader.sees("{"):
        return read_block(reader, names)
    for word, read in _STATEMENTS:
        if reader.accept(word):
            return read(reader, names)
    for kind in CallKind:
        if reader.accept(kind.value):
            return _read_call(reader, names, kind)
    buffer = _buffer(reader, names, reader.prim_name())
    reader.expect("[")
    indices = reader.items("]", lambda: read_expression(reader, names))
    reader.expect("=")
    return Store(buffer, indices, read_expression(reader, names))


def _read_for(reader: Reader, names: Names) -> For:
    variable = _read_variable(reader)
    reader.expect("in")
    begin = read_expression(reader, names)
    reader.expect("..")
    end = read_expression(reader, names)
    kind = next((kind for kind in LoopKind if reader.accept(kind.value)), LoopKind.SERIAL)
    inner = names.inner()
    inner.variables[variable.name] = variable
    return For(variable, begin, end, read_block(reader, inner), kind)


def _read_if(reader: Reader, names: Names) -> If:
    condition = read_expression(reader, names)
    then = read_block(reader, names)
    return If(condition, then, read_block(reader, names) if reader.accept("else") else None)


def _read_let(reader: Reader, names: Names) -> Let:
    variable = _read_variable(reader)
    reader.expect("=")
    value = read_expression(reader, names)
    names.variables[variable.name] = variable
    return Let(variable, value)


def _read_allocate(reader: Reader, names: Names) -> Allocate:
    buffer = read_buffer(reader)
    names.buffers[buffer.name] = buffer
    return Allocate(buffer, read_annotations(reader))


def read_annotations(reader: Reader) -> Annotations:
    """`{key=value, ...}`, or nothing."""
    found = reader.keywords("}", {}) if reader.accept("{") else {}
    return tuple(found.items())


def _read_view(reader: Reader, names: Names) -> View:
    buffer = read_buffer(reader)
    reader.expect("=")
    source = _read_region(reader, names)
    condition = read_expression(reader, names) if reader.accept("if") else None
    otherwise = _read_region(reader, names) if reader.accept("else") else None
    names.buffers[buffer.name] = buffer
    return View(buffer, source, condition, otherwise)


_STATEMENTS: tuple[tuple[str, Callable[[Reader, Names], Statement]], ...] = (
    ("for", _read_for),
    ("if", _read_if),
    ("let", _read_let),
    ("allocate", _read_allocate),
    ("view", _read_view),
)


def _read_call(reader: Reader, names: Names, kind: CallKind) -> Call:
    callee = reader.prim_name()
    reader.expect("(")
    arguments = reader.items(
        ")", lambda: _read_region(reader, names) if reader.sees("&") else read_expression(reader, names)
    )
    attributes = reader.keywords("}", {}) if reader.accept("{") else {}
    touched_by = attributes.get("touched_by")
    return Call(callee, arguments, kind, attributes.get("operators", ()), touched_by, reader.where())


def _read_parameter(reader: Reader, names: Names) -> Parameter:
    start = reader.position
    name = reader.prim_name()
    reader.expect(":")
    if not reader.sees("buffer<"):
        variable = Var(name, reader.dtype())
        names.variables[name] = variable
        return ScalarParameter(variable)
    reader.position = start
    buffer = read_buffer(reader)
    names.buffers[buffer.name] = buffer
    access = next((access for access in Access if reader.accept(access.value)), None)
    role = next((role for role in Role if reader.accept(role.value)), None)
    if access is None or role is None:
        reader.fail("an access and a role before this")
    return BufferParameter(buffer, access, role)


def read_primfunc(reader: Reader, constants: dict[str, Buffer]) -> PrimFunc:
    """A function, after the word `kernel` or `entry`."""
    name = reader.prim_name()
    names = Names(buffers=dict(constants))
    reader.expect("(")
    parameters = reader.items(")", lambda: _read_parameter(reader, names))
    reader.expect("on")
    device = reader.prim_name()
    noalias: list[tuple[str, str]] = []
    while reader.accept("noalias"):
        reader.expect("(")
        first, second = reader.items(")", reader.prim_name)
        noalias.append((first, second))
    where = reader.where()
    return PrimFunc(name, parameters, read_block(reader, names), tuple(noalias), device, where)
