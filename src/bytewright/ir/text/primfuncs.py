"""The text of PrimFuncs, printed and read: statements, where what they define may lie, and functions."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never, cast

from bytewright import ir
from bytewright.diagnostics import InternalError
from bytewright.ir.definitions import Scopes, define_scope, given_scopes
from bytewright.ir.rewrite import instruction_call
from bytewright.ir.text.buffers import format_buffer, format_variable, read_buffer, read_variable
from bytewright.ir.text.expressions import (
    Defined,
    format_element,
    format_expression,
    format_region,
    known_buffer,
    read_buffer_name,
    read_expression,
    read_indices,
    read_region,
)
from bytewright.ir.text.notation import (
    INDENT,
    Notes,
    attribute_name,
    format_value,
    note_lines,
    prim_name,
    quoted,
    where_suffix,
    wrapped,
)
from bytewright.ir.text.reader import SPACE, STRING, Reader
from bytewright.ir.text.words import Word
from bytewright.ir.walk import blocks

_MOST_STACK_BYTES = 1 << 31


def format_storage(definition: ir.Allocate | ir.ConstantBuffer) -> str:
    """What is said of a definition, first what no pass owns."""
    return format_annotations((*definition.annotations, *ir.to_annotations(definition.storage)))


def format_annotations(annotations: Iterable[tuple[str, object]]) -> str:
    """` {key=value, ...}`, or nothing."""
    pairs = ", ".join(f"{attribute_name(key)}={format_value(value)}" for key, value in annotations)
    return f" {{{pairs}}}" if pairs else ""


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


def _accepts_attributes(reader: Reader) -> bool:
    """Reads the brace before attributes, and not one that opens the next statement, a block."""
    return not reader.sees_match(_BLOCK) and reader.accept("{")


def _is_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, str) for item in cast("tuple[object, ...]", value)
    )


def format_statement(statement: ir.Statement, scopes: Scopes) -> str:
    """The statement's own line, before wrapping; blocks end with their opening brace.

    Args:
        statement: The statement.
        scopes: Those of the buffers that are defined there, by name: a view has its source's.
    """
    match statement:
        case ir.InstructionCall():
            arguments = ", ".join(map(_format_argument, statement.arguments))
            return f"{Word.EXECUTE} {prim_name(statement.instruction.name)}({arguments})"
        case ir.Seq():
            return "{"
        case ir.For():
            begin, end = format_expression(statement.begin), format_expression(statement.end)
            kind = "" if statement.kind is ir.LoopKind.SERIAL else f" {statement.kind.value}"
            names = ", ".join(prim_name(buffer.name) for buffer in statement.private)
            private = f" {Word.PRIVATE}({names})" if names else ""
            note = f" {Word.NOTE}({quoted(statement.note)})" if statement.note else ""
            head = f"{Word.FOR} {format_variable(statement.variable)} {Word.IN} {begin} .. {end}"
            return f"{head}{kind}{private}{note} {{"
        case ir.If():
            return f"{Word.IF} {format_expression(statement.condition)} {{"
        case ir.Let():
            return f"{Word.LET} {format_variable(statement.variable)} = {format_expression(statement.value)}"
        case ir.Allocate():
            buffer = format_buffer(statement.buffer, statement.scope)
            return f"{Word.ALLOCATE} {buffer}{format_storage(statement)}"
        case ir.View():
            return _format_view(statement, scopes)
        case ir.Store():
            value = format_expression(statement.value)
            return f"{format_element(statement.buffer, statement.indices)} = {value}"
        case ir.Call():
            return _format_call(statement)
        case _:
            assert_never(statement)


def _read_statement(reader: Reader, names: Defined) -> ir.Statement:
    if reader.sees("{"):
        return read_block(reader, names)
    start = reader.position
    for word, read in _STATEMENTS.items():
        if reader.accept(word):
            return read(reader, names)
    for kind in ir.CallKind:
        if reader.accept(kind.value):
            return _read_call(reader, names, kind)
    name = reader.prim_name()
    if reader.sees("("):
        reader.refuse(f"'{name}' is no statement", start, f"a call is written call_extern {name}(...)")
    if not reader.sees("["):
        scalar = f"; an element is {name}[...], of a buffer without axes {name}[]"
        reader.refuse(f"no statement begins with '{name}'", start, f"there are {', '.join(_WORDS)}{scalar}")
    buffer = known_buffer(reader, names, name, start)
    reader.expect("[")
    indices = read_indices(reader, names)
    reader.expect("=")
    return ir.Store(buffer, indices, read_expression(reader, names))


def _read_for(reader: Reader, names: Defined) -> ir.For:
    variable = read_variable(reader)
    reader.expect(Word.IN)
    begin = read_expression(reader, names)
    reader.expect("..")
    end = read_expression(reader, names)
    kind = next((kind for kind in ir.LoopKind if reader.accept(kind.value)), ir.LoopKind.SERIAL)
    private: tuple[ir.Buffer, ...] = ()
    if reader.accept(Word.PRIVATE):
        private = reader.parenthesised(lambda: read_buffer_name(reader, names))
    note = ""
    if reader.accept(Word.NOTE):
        reader.expect("(")
        note = reader.string()
        reader.expect(")")
    inner = names.inner()
    inner.variables[variable.name] = variable
    return ir.For(variable, begin, end, read_block(reader, inner), kind, private, note)


def _read_if(reader: Reader, names: Defined) -> ir.If:
    condition = read_expression(reader, names)
    then = read_block(reader, names)
    if not reader.accept(Word.ELSE):
        return ir.If(condition, then)
    start = reader.position
    if reader.accept(Word.IF):
        with reader.nested():
            inner = reader.mark(start, _read_if(reader, names))
        return ir.If(condition, then, reader.mark(start, ir.Seq((inner,))))
    return ir.If(condition, then, read_block(reader, names))


def _read_let(reader: Reader, names: Defined) -> ir.Let:
    variable = read_variable(reader)
    reader.expect("=")
    value = read_expression(reader, names)
    names.variables[variable.name] = variable
    return ir.Let(variable, value)


def _read_allocate(reader: Reader, names: Defined) -> ir.Allocate:
    buffer, scope = read_buffer(reader)
    names.define(buffer, scope)
    return ir.Allocate(buffer, *read_storage(reader, scope))


def _format_view(view: ir.View, scopes: Scopes) -> str:
    scope = scopes.get(view.source.buffer.name)
    text = f"{Word.VIEW} {format_buffer(view.buffer, scope)} = {format_region(view.source)}"
    if view.condition is not None:
        text += f" {Word.IF} {format_expression(view.condition)}"
    if view.otherwise is not None:
        text += f" {Word.ELSE} {format_region(view.otherwise)}"
    return text


# What an `if` behind a view begins with if it is the view's: there is no block before its `else`.
_CONDITION_OF_VIEW = re.compile(
    r'if(?![\w/])(?:"(?:[^"\\]|\\.)*"|\#[^\n]*|(?!(?<![\w/])else(?![\w/]))[^{"#])*else(?![\w/])'
)


def _read_view(reader: Reader, names: Defined) -> ir.View:
    start = reader.position
    buffer, scope = read_buffer(reader)
    reader.expect("=")
    source = read_region(reader, names)
    of_source = names.scopes[source.buffer.name]
    if scope != of_source:
        what = f"scope of view '{buffer.name}' '{scope}' is not '{of_source}' of '{source.buffer.name}'"
        reader.refuse(what, start)
    condition = otherwise = None
    if reader.sees_match(_CONDITION_OF_VIEW):
        reader.expect(Word.IF)
        condition = read_expression(reader, names)
        reader.expect(Word.ELSE)
        otherwise = read_region(reader, names)
    names.define(buffer, scope)
    return ir.View(buffer, source, condition, otherwise)


def _format_call(call: ir.Call) -> str:
    arguments = ", ".join(map(_format_argument, call.arguments))
    attributes = (("operators", call.operators or None), ("touched_by", call.touched_by))
    stated = format_annotations(pair for pair in attributes if pair[1] is not None)
    return f"{call.kind.value} {prim_name(call.callee)}({arguments}){stated}{where_suffix(call.where)}"


def _format_argument(argument: ir.Argument) -> str:
    match argument:
        case ir.Region():
            return format_region(argument)
        case ir.ContextArgument():
            return f"{Word.CONTEXT_OF}({prim_name(argument.device)})"
        case _:
            return format_expression(argument)


def _read_argument(reader: Reader, names: Defined) -> ir.Argument:
    if reader.sees("&"):
        return read_region(reader, names)
    if reader.accept(Word.CONTEXT_OF):
        reader.expect("(")
        device = reader.prim_name()
        reader.expect(")")
        return ir.ContextArgument(device)
    return read_expression(reader, names)


def _read_call(reader: Reader, names: Defined, kind: ir.CallKind) -> ir.Call:
    callee = reader.prim_name()
    arguments = reader.parenthesised(lambda: _read_argument(reader, names))
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


def _read_execute(reader: Reader, names: Defined) -> ir.InstructionCall:
    start = reader.position
    name = reader.prim_name()
    instruction = names.instructions.get(name)
    if instruction is None:
        reader.refuse(f"there is no instruction '{name}'", start, "instructions stand before kernels")
    arguments = reader.parenthesised(
        lambda: read_region(reader, names) if reader.sees("&") else read_expression(reader, names)
    )
    try:
        return instruction_call(instruction, arguments)
    except InternalError as error:
        reader.refuse(str(error), start)


_STATEMENTS: dict[str, Callable[[Reader, Defined], ir.Statement]] = {
    Word.FOR: _read_for,
    Word.IF: _read_if,
    Word.LET: _read_let,
    Word.ALLOCATE: _read_allocate,
    Word.VIEW: _read_view,
    Word.EXECUTE: _read_execute,
}
_WORDS = (*_STATEMENTS, *(kind.value for kind in ir.CallKind))
# What a block begins with, which attributes do not: another brace, a statement's word, or an element that is stored to.
_BLOCK = re.compile(
    rf"\{{{SPACE.pattern}(?:[{{}}]|(?:{'|'.join(_WORDS)})\b(?!\s*=)|(?:{STRING.pattern}|[\w/]+)\s*\[)"
)


def print_sequence(sequence: ir.Seq, indent: str, remarks: Notes, outside: Scopes) -> list[str]:
    """The lines of the statements of a sequence, with the scopes of what is defined outside of it."""
    lines: list[str] = []
    scopes = outside.new_child()
    for statement in sequence.statements:
        lines.extend(wrapped(format_statement(statement, scopes), indent))
        lines.extend(note_lines(statement, remarks, indent))
        define_scope(scopes, statement)
        for position, block in enumerate(blocks(statement)):
            if position > 0:
                lines.append(f"{indent}}} {Word.ELSE} {{")
            lines.extend(print_sequence(block, indent + INDENT, remarks, scopes))
        if blocks(statement):
            lines.append(f"{indent}}}")
    return lines


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


def format_parameter(parameter: ir.Parameter) -> str:
    """`input : buffer<...> r activation`, `rows : i32`, or `npu : context<npu>`."""
    match parameter:
        case ir.BufferParameter():
            buffer = format_buffer(parameter.buffer, parameter.scope)
            return f"{buffer} {parameter.access.value} {parameter.role.value}"
        case ir.ScalarParameter():
            return format_variable(parameter.variable)
        case ir.ContextParameter():
            return f"{prim_name(parameter.name)} : {Word.CONTEXT}<{prim_name(parameter.device)}>"
        case _:
            assert_never(parameter)


def read_parameter(reader: Reader, names: Defined) -> ir.Parameter:
    """The same; what it names is defined from then on."""
    start = reader.position
    name = reader.prim_name()
    reader.expect(":")
    if reader.accept(f"{Word.CONTEXT}<"):
        device = reader.prim_name()
        reader.expect(">")
        return reader.mark(start, ir.ContextParameter(name, device))
    if not reader.sees(f"{Word.BUFFER}<"):
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


def _format_external(external: ir.External) -> str:
    stack = "" if external.stack_bytes is None else f" {Word.STACK}={external.stack_bytes}"
    symbol = "" if external.symbol is None else f" {Word.SYMBOL}={prim_name(external.symbol)}"
    status = f" {Word.STATUS}" if external.returns_status else ""
    return f"{stack}{status}{symbol}"


def _read_external(reader: Reader) -> ir.External:
    start = reader.position
    stack_bytes = reader.integer() if reader.accept(f"{Word.STACK}=") else None
    if stack_bytes is not None and not 0 <= stack_bytes <= _MOST_STACK_BYTES:
        reader.refuse(f"a stack of {stack_bytes} B makes no sense", start)
    returns_status = reader.accept(Word.STATUS)
    return ir.External(
        stack_bytes, returns_status, reader.prim_name() if reader.accept(f"{Word.SYMBOL}=") else None
    )


def _read_job(reader: Reader) -> ir.Job | None:
    if not reader.accept(Word.JOB):
        return None
    reader.expect("(")
    job = next((job for job in ir.Job if reader.accept(job.value)), None)
    if job is None:
        reader.fail(f"a job ({', '.join(job.value for job in ir.Job)})")
    reader.expect(")")
    return job


def read_quoted(reader: Reader, word: str) -> str:
    """`word("text")`."""
    reader.expect(word)
    reader.expect("(")
    text = reader.string()
    reader.expect(")")
    return text


def print_primfunc(
    function: ir.PrimFunc,
    word: str = Word.KERNEL,
    notes: Notes | None = None,
    constants: dict[str, ir.Scope | None] | None = None,
) -> str:
    """The function's text, with remarks under the lines that they concern.

    Args:
        function: The function.
        word: `kernel` or `entry`.
        notes: The remarks.
        constants: The scopes of those that it may name.
    """
    remarks = notes or {}
    external = ""
    if function.external is not None:
        word, external = Word.EXTERN, _format_external(function.external)
    pairs = "".join(f" {Word.NOALIAS}({prim_name(a)}, {prim_name(b)})" for a, b in function.noalias)
    job = "" if function.job is None else f" {Word.JOB}({function.job.value})"
    template = f" {Word.TEMPLATE}({quoted(function.template)})" if function.template else ""
    remarks_of = "".join(f" {Word.REMARK}({quoted(remark)})" for remark in function.remarks)
    told = f"{external}{job}{template}{remarks_of}{pairs}"
    tail = f") {Word.ON} {prim_name(function.device)}{told}{where_suffix(function.where)} {{"
    head = f"{word} {prim_name(function.name)}("
    if not function.parameters:
        lines = wrapped(head + tail, "")
    else:
        lines = [head]
        for position, parameter in enumerate(function.parameters, 1):
            comma = "," if position < len(function.parameters) else ""
            lines.extend(wrapped(format_parameter(parameter) + comma, 2 * INDENT))
            lines.extend(note_lines(parameter, remarks, 2 * INDENT))
        lines.extend(wrapped(tail, ""))
    lines.extend(note_lines(function, remarks, ""))
    lines.extend(print_sequence(function.body, INDENT, remarks, given_scopes(function, constants or {})))
    lines.append("}")
    return "\n".join(lines)


def read_primfunc(reader: Reader, outside: Defined, is_external: bool = False) -> ir.PrimFunc:
    """A function, after the word `kernel`, `extern` or `entry`; outside of it, the module's constants are defined."""
    start = reader.position
    name = reader.prim_name()
    names = outside.inner()
    parameters = reader.parenthesised(lambda: read_parameter(reader, names))
    reader.expect(Word.ON)
    device = reader.prim_name()
    external = _read_external(reader) if is_external else None
    job = _read_job(reader)
    template = read_quoted(reader, Word.TEMPLATE) if reader.sees(Word.TEMPLATE) else ""
    remarks: list[str] = []
    while reader.sees(Word.REMARK):
        remarks.append(read_quoted(reader, Word.REMARK))
    noalias: list[tuple[str, str]] = []
    while reader.accept(Word.NOALIAS):
        place = reader.position
        pair = reader.parenthesised(reader.prim_name)
        if len(pair) != 2:
            reader.refuse(f"noalias is for a pair of parameters, not {len(pair)}", place)
        noalias.append((pair[0], pair[1]))
    where = reader.where()
    has_body = external is None or reader.sees("{")
    body = read_block(reader, names) if has_body else ir.Seq(())
    told = template, tuple(remarks)
    function = ir.PrimFunc(name, parameters, body, tuple(noalias), device, where, external, job, *told)
    return reader.mark(start, function)
