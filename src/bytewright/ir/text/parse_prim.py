"""Reads printed PrimFuncs: names resolve to the variables and buffers that were defined before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import cast

from bytewright import ir
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.ir.text.print_prim import PRECEDENCE
from bytewright.ir.text.reader import Reader

_CONSTANT = re.compile(
    r"(-?(?:(?:inf|nan)(?![\w/])|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?))(?::("
    + "|".join(dtype.value for dtype in ir.DType)
    + r")\b)?"
)
_MOST_STACK_BYTES = 1 << 31
_CALL_WORD = re.compile(r"([a-z][a-z0-9_]*)\(")


@dataclass(slots=True)
class Defined:
    """What is defined at a point of a function; buffers with their scopes, by the same names."""

    variables: dict[str, ir.Var] = field(default_factory=dict[str, ir.Var])
    buffers: dict[str, ir.Buffer] = field(default_factory=dict[str, ir.Buffer])
    scopes: dict[str, ir.Scope | None] = field(default_factory=dict[str, ir.Scope | None])

    def inner(self) -> Defined:
        """The same, for a block: what it defines stays in it."""
        return Defined(dict(self.variables), dict(self.buffers), dict(self.scopes))

    def define(self, buffer: ir.Buffer, scope: ir.Scope | None) -> None:
        """Adds a buffer."""
        self.buffers[buffer.name], self.scopes[buffer.name] = buffer, scope


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


_LONGEST_FIRST = sorted(PRECEDENCE, key=lambda operator: (-len(operator.value), operator.value))


def _read_operand(reader: Reader, names: Defined) -> ir.Expr:
    start = reader.position
    if reader.accept("("):
        with reader.nested():
            inner = read_expression(reader, names)
        reader.expect(")")
        return inner
    for text, value in (("true", 1), ("false", 0)):
        if reader.accept(text):
            return ir.Const(value, ir.DType.BOOL)
    if (found := reader.match(_CONSTANT)) is not None:
        return _constant(reader, reader.value_of(found[1], start), found[2], start)
    if (found := reader.match(_CALL_WORD)) is not None:
        return _read_application(reader, names, found[1], start)
    name = reader.prim_name()
    if reader.accept("["):
        buffer = _buffer(reader, names, name, start)
        return ir.Load(buffer, _read_indices(reader, names))
    if name in names.variables:
        return names.variables[name]
    if name in names.buffers:
        reader.refuse(f"'{name}' is a buffer", start, f"an element of it is {name}[...], its address &{name}")
    apart = name.replace("/", " / ")
    help_text = f"a division has spaces: {apart}" if "/" in name else None
    return reader.refuse(
        f"no variable '{name}' is defined here", start, help_text or _meant(name, names.variables)
    )


def _constant(reader: Reader, number: int | float, suffix: str | None, start: int) -> ir.Const:
    """A number of its type; without one it is an `i32`."""
    dtype = ir.DType.I32 if suffix is None else ir.DType(suffix)
    if dtype.is_integer and not isinstance(number, int):
        help_text = f"{number}:f32" if suffix is None else None
        reader.refuse(f"{number} is no {dtype.value}", start, help_text)
    if dtype.is_integer and not dtype.bounds[0] <= number <= dtype.bounds[1]:
        low, high = dtype.bounds
        reader.refuse(f"{number} is no {dtype.value}, which is {low} to {high}", start)
    return ir.Const(number, dtype)


def _read_indices(reader: Reader, names: Defined) -> tuple[ir.Expr, ...]:
    with reader.nested():
        return reader.items("]", lambda: read_expression(reader, names))


def _read_application(reader: Reader, names: Defined, word: str, start: int) -> ir.Expr:
    with reader.nested():
        operands = reader.items(")", lambda: read_expression(reader, names))
    match operands:
        case _ if (function := SCALAR_FUNCTIONS.get(word)) and len(operands) == len(function.parameters):
            return ir.ScalarCall(function, operands)
        case (operand,) if word in _DTYPES:
            return ir.Cast(operand, _DTYPES[word])
        case (left, right) if word in ("min", "max"):
            return ir.Binary(ir.BinaryOperator(word), left, right)
        case (condition, if_true, if_false) if word == "select":
            return ir.Select(condition, if_true, if_false)
        case _:
            what = f"'{word}' of {len(operands)} operands does not exist"
            known = ", ".join([*SCALAR_FUNCTIONS, *_DTYPES, "min", "max", "select"])
            return reader.refuse(what, start, f"there are {known}")


_DTYPES = {dtype.value: dtype for dtype in ir.DType}


def _buffer(reader: Reader, names: Defined, name: str, start: int) -> ir.Buffer:
    if name in names.buffers:
        return names.buffers[name]
    if name in names.variables:
        reader.refuse(f"'{name}' is a variable, not a buffer", start)
    return reader.refuse(f"no buffer '{name}' is defined here", start, _meant(name, names.buffers))


def _meant(name: str, known: Mapping[str, object]) -> str | None:
    close = get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'?" if close else None


def _read_buffer_name(reader: Reader, names: Defined) -> ir.Buffer:
    start = reader.position
    return _buffer(reader, names, reader.prim_name(), start)


def _read_region(reader: Reader, names: Defined) -> ir.Region:
    reader.expect("&")
    buffer = _read_buffer_name(reader, names)
    if not reader.accept("["):
        return ir.Region(buffer)
    return ir.Region(buffer, _read_indices(reader, names))


def _read_variable(reader: Reader) -> ir.Var:
    name = reader.prim_name()
    reader.expect(":")
    return ir.Var(name, reader.dtype())


def read_buffer(reader: Reader) -> tuple[ir.Buffer, ir.Scope | None]:
    """`name : buffer<...>`, with the scope that stands in it; without `align=` it is aligned to its elements."""
    name = reader.prim_name()
    reader.expect(":")
    reader.expect("buffer<")
    shape, dtype = reader.shape_and_dtype()
    scope, alignment, rows = None, dtype.size_bytes, None
    while reader.accept(","):
        if reader.sees('"') and scope is None:
            scope = reader.scope()
        elif reader.accept("align="):
            alignment = reader.integer()
        elif reader.accept("ring=") and rows is None:
            axis = reader.integer()
            reader.expect(":")
            rows = ir.RingRows(axis, reader.integer())
        else:
            reader.fail("a scope in quotes, 'align=' or 'ring='")
    reader.expect(">")
    return ir.Buffer(name, shape, dtype, alignment, rows), scope


def read_block(reader: Reader, names: Defined) -> ir.Seq:
    """Statements between braces."""
    start = reader.position
    reader.expect("{")
    inner = names.inner()
    statements: list[ir.Statement] = []
    with reader.nested():
        while not reader.accept("}"):
            if reader.at_end:
                reader.refuse("this block does not end", start, "close it with '}'")
            begin = reader.position
            statements.append(reader.mark(begin, _read_statement(reader, inner)))
    return reader.mark(start, ir.Seq(tuple(statements)))


def _read_statement(reader: Reader, names: Defined) -> ir.Statement:
    if reader.sees("{"):
        return read_block(reader, names)
    start = reader.position
    for word, read in _STATEMENTS:
        if reader.accept(word):
            return read(reader, names)
    for kind in ir.CallKind:
        if reader.accept(kind.value):
            return _read_call(reader, names, kind)
    name = reader.prim_name()
    if reader.sees("("):
        reader.refuse(f"'{name}' is no statement", start, f"a call is written call_extern {name}(...)")
    if not reader.sees("["):
        known = ", ".join([*(word for word, _ in _STATEMENTS), *(kind.value for kind in ir.CallKind)])
        scalar = f"; an element is {name}[...], of a buffer without axes {name}[]"
        reader.refuse(f"no statement begins with '{name}'", start, f"there are {known}{scalar}")
    buffer = _buffer(reader, names, name, start)
    reader.expect("[")
    indices = _read_indices(reader, names)
    reader.expect("=")
    return ir.Store(buffer, indices, read_expression(reader, names))


def _read_for(reader: Reader, names: Defined) -> ir.For:
    variable = _read_variable(reader)
    reader.expect("in")
    begin = read_expression(reader, names)
    reader.expect("..")
    end = read_expression(reader, names)
    kind = next((kind for kind in ir.LoopKind if reader.accept(kind.value)), ir.LoopKind.SERIAL)
    private: tuple[ir.Buffer, ...] = ()
    if reader.accept("private"):
        reader.expect("(")
        private = reader.items(")", lambda: _read_buffer_name(reader, names))
    note = ""
    if reader.accept("note"):
        reader.expect("(")
        note = reader.string()
        reader.expect(")")
    inner = names.inner()
    inner.variables[variable.name] = variable
    return ir.For(variable, begin, end, read_block(reader, inner), kind, private, note)


def _read_if(reader: Reader, names: Defined) -> ir.If:
    condition = read_expression(reader, names)
    then = read_block(reader, names)
    if not reader.accept("else"):
        return ir.If(condition, then)
    start = reader.position
    if reader.accept("if"):
        with reader.nested():
            inner = reader.mark(start, _read_if(reader, names))
        return ir.If(condition, then, reader.mark(start, ir.Seq((inner,))))
    return ir.If(condition, then, read_block(reader, names))


def _read_let(reader: Reader, names: Defined) -> ir.Let:
    variable = _read_variable(reader)
    reader.expect("=")
    value = read_expression(reader, names)
    names.variables[variable.name] = variable
    return ir.Let(variable, value)


def _read_allocate(reader: Reader, names: Defined) -> ir.Allocate:
    buffer, scope = read_buffer(reader)
    names.define(buffer, scope)
    return ir.Allocate(buffer, *read_storage(reader, scope))


def _accepts_attributes(reader: Reader) -> bool:
    """Reads the brace before attributes, and not one that opens the next statement, a block."""
    return not reader.sees_match(_BLOCK) and reader.accept("{")


def read_storage(reader: Reader, scope: ir.Scope | None) -> tuple[ir.Storage, ir.Annotations]:
    """`{key=value, ...}`, or nothing, of a buffer with a scope."""
    if not _accepts_attributes(reader):
        return ir.Storage(scope), ()
    start = reader.position
    found = reader.keywords("}", {})
    for name, value in found.items():
        if not (type(value) in (int, str) or _is_texts(value)):
            reader.refuse(f"annotation '{name}' is a whole number, a text, or a tuple of texts", start)
    storage, others = ir.from_annotations(tuple(found.items()))
    return replace(storage, scope=scope), others


def _is_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, str) for item in cast("tuple[object, ...]", value)
    )


def _read_view(reader: Reader, names: Defined) -> ir.View:
    start = reader.position
    buffer, scope = read_buffer(reader)
    reader.expect("=")
    source = _read_region(reader, names)
    of_source = names.scopes[source.buffer.name]
    if scope != of_source:
        what = f"scope of view '{buffer.name}' '{scope}' is not '{of_source}' of '{source.buffer.name}'"
        reader.refuse(what, start)
    condition = read_expression(reader, names) if reader.accept("if") else None
    otherwise = _read_region(reader, names) if reader.accept("else") else None
    names.define(buffer, scope)
    return ir.View(buffer, source, condition, otherwise)


_STATEMENTS: tuple[tuple[str, Callable[[Reader, Defined], ir.Statement]], ...] = (
    ("for", _read_for),
    ("if", _read_if),
    ("let", _read_let),
    ("allocate", _read_allocate),
    ("view", _read_view),
)


# What a block begins with, which attributes do not: another brace, a statement's word, or an element that is stored to.
_BLOCK = re.compile(
    r"\{(?:\s+|#[^\n]*)*(?:[{}]|(?:for|if|let|allocate|view|call_extern|call_cpacked|call_packed)\b(?!\s*=)"
    r'|(?:"(?:\\.|[^"\\])*"|[\w/]+)\s*\[)'
)


def _read_call(reader: Reader, names: Defined, kind: ir.CallKind) -> ir.Call:
    callee = reader.prim_name()
    reader.expect("(")
    arguments = reader.items(
        ")", lambda: _read_region(reader, names) if reader.sees("&") else read_expression(reader, names)
    )
    start = reader.position
    attributes = reader.keywords("}", {}) if _accepts_attributes(reader) else {}
    operators, touched_by = attributes.pop("operators", ()), attributes.pop("touched_by", None)
    for name in attributes:
        reader.refuse(f"a call has no attribute '{name}', only operators and touched_by", start)
    if not _is_texts(operators):
        reader.refuse('operators is a tuple of texts, such as ("0 (CONV_2D)",)', start)
    if touched_by is not None and not (isinstance(touched_by, tuple) and all(map(_is_texts, touched_by))):
        reader.refuse(
            'touched_by is a tuple of devices for each argument, such as (("cpu",), ("npu",))', start
        )
    return ir.Call(callee, arguments, kind, operators, touched_by, reader.where())


def _read_parameter(reader: Reader, names: Defined) -> ir.Parameter:
    start = reader.position
    name = reader.prim_name()
    reader.expect(":")
    if not reader.sees("buffer<"):
        variable = ir.Var(name, reader.dtype())
        names.variables[name] = variable
        return reader.mark(start, ir.ScalarParameter(variable))
    reader.position = start
    buffer, scope = read_buffer(reader)
    names.define(buffer, scope)
    access = next((access for access in ir.Access if reader.accept(access.value)), None)
    if access is None:
        reader.fail(f"an access ({', '.join(access.value for access in ir.Access)})")
    role = next((role for role in ir.ParameterRole if reader.accept(role.value)), ir.ParameterRole.ACTIVATION)
    return reader.mark(start, ir.BufferParameter(buffer, access, role, scope))


def read_primfunc(
    reader: Reader, constants: Sequence[ir.ConstantBuffer], is_external: bool = False
) -> ir.PrimFunc:
    """A function, after the word `kernel`, `extern` or `entry`."""
    start = reader.position
    name = reader.prim_name()
    names = Defined()
    for constant in constants:
        names.define(constant.buffer, constant.scope)
    reader.expect("(")
    parameters = reader.items(")", lambda: _read_parameter(reader, names))
    reader.expect("on")
    device = reader.prim_name()
    external = _read_external(reader) if is_external else None
    noalias: list[tuple[str, str]] = []
    while reader.accept("noalias"):
        place = reader.position
        reader.expect("(")
        pair = reader.items(")", reader.prim_name)
        if len(pair) != 2:
            reader.refuse(f"noalias is for a pair of parameters, not {len(pair)}", place)
        noalias.append((pair[0], pair[1]))
    where = reader.where()
    has_body = external is None or reader.sees("{")
    body = read_block(reader, names) if has_body else ir.Seq(())
    function = ir.PrimFunc(name, parameters, body, tuple(noalias), device, where, external)
    return reader.mark(start, function)


def _read_external(reader: Reader) -> ir.External:
    start = reader.position
    stack_bytes = reader.integer() if reader.accept("stack=") else None
    if stack_bytes is not None and not 0 <= stack_bytes <= _MOST_STACK_BYTES:
        reader.refuse(f"a stack of {stack_bytes} B makes no sense", start)
    return ir.External(stack_bytes, reader.accept("status"))
