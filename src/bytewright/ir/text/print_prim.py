"""Prints PrimFuncs. Expressions carry the fewest parentheses that keep their tree."""

from typing import assert_never

from bytewright import ir
from bytewright.ir.definitions import Scopes, define_scope, given_scopes
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
from bytewright.ir.walk import as_any

# Operators written between their operands, from the loosest binding to the tightest; all group to the left.
PRECEDENCE: dict[ir.BinaryOperator, int] = {
    ir.BinaryOperator.LOGICAL_OR: 1,
    ir.BinaryOperator.LOGICAL_AND: 2,
    ir.BinaryOperator.EQ: 3,
    ir.BinaryOperator.LT: 4,
    ir.BinaryOperator.LE: 4,
    ir.BinaryOperator.GT: 4,
    ir.BinaryOperator.GE: 4,
    ir.BinaryOperator.AND: 5,
    ir.BinaryOperator.SHL: 6,
    ir.BinaryOperator.SHR: 6,
    ir.BinaryOperator.ADD: 7,
    ir.BinaryOperator.SUB: 7,
    ir.BinaryOperator.MUL: 8,
    ir.BinaryOperator.DIV: 8,
    ir.BinaryOperator.MOD: 8,
}
_TIGHTEST = max(PRECEDENCE.values()) + 1
# Nobody remembers how these bind, so their operands stand in parentheses.
_PARENTHESISED = frozenset({ir.BinaryOperator.SHL, ir.BinaryOperator.SHR, ir.BinaryOperator.AND})


def format_buffer_type(buffer: ir.Buffer, scope: ir.Scope | None) -> str:
    """`buffer<1x64xi8, "global.sram", align=16, ring=1:3>`: everything but the name."""
    shape = ir.format_shape(buffer.shape) + "x" if buffer.shape else ""
    parts = [f"{shape}{buffer.dtype.value}"]
    if scope is not None:
        parts.append(f'"{scope}"')
    parts.append(f"align={buffer.alignment}")
    if buffer.rows is not None:
        parts.append(f"ring={buffer.rows.axis}:{buffer.rows.num_rows}")
    return f"buffer<{', '.join(parts)}>"


def format_expression(expression: ir.Expr, binding: int = 0) -> str:
    """The expression's text, in parentheses if it binds less tightly than its surroundings ask."""
    node = as_any(expression)
    match node:
        case ir.Const():
            return _format_constant(node)
        case ir.Var():
            return prim_name(node.name)
        case ir.Load():
            return _element(node.buffer, node.indices)
        case ir.Cast():
            return f"{node.dtype.value}({format_expression(node.operand)})"
        case ir.ScalarCall():
            return f"{node.function.name}({', '.join(map(format_expression, node.operands))})"
        case ir.Select():
            sides = (node.condition, node.if_true, node.if_false)
            return f"select({', '.join(format_expression(side) for side in sides)})"
        case ir.Binary():
            return _format_binary(node, binding)
        case _:
            assert_never(node)


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
        return "true" if node.value else "false"
    suffix = "" if node.dtype is ir.DType.I32 else f":{node.dtype.value}"
    return f"{node.value!r}{suffix}"


def _element(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
    return f"{prim_name(buffer.name)}[{', '.join(format_expression(index) for index in indices)}]"


def format_region(region: ir.Region) -> str:
    """`&input[y, 0]`, or `&input` for the whole."""
    element = _element(region.buffer, region.indices)
    return f"&{element if region.indices else prim_name(region.buffer.name)}"


def format_statement(statement: ir.Statement, scopes: Scopes) -> str:
    """The statement's own line, before wrapping; blocks end with their opening brace.

    Args:
        statement: The statement.
        scopes: Those of the buffers that are defined there, by name: a view has its source's.
    """
    match statement:
        case ir.Seq():
            return "{"
        case ir.For():
            begin, end = format_expression(statement.begin), format_expression(statement.end)
            kind = "" if statement.kind is ir.LoopKind.SERIAL else f" {statement.kind.value}"
            names = ", ".join(prim_name(buffer.name) for buffer in statement.private)
            private = f" private({names})" if names else ""
            note = f" note({quoted(statement.note)})" if statement.note else ""
            return f"for {_variable(statement.variable)} in {begin} .. {end}{kind}{private}{note} {{"
        case ir.If():
            return f"if {format_expression(statement.condition)} {{"
        case ir.Let():
            return f"let {_variable(statement.variable)} = {format_expression(statement.value)}"
        case ir.Allocate():
            return f"allocate {_buffer(statement.buffer, statement.scope)}{format_storage(statement)}"
        case ir.View():
            return _format_view(statement, scopes)
        case ir.Store():
            value = format_expression(statement.value)
            return f"{_element(statement.buffer, statement.indices)} = {value}"
        case ir.Call():
            return _format_call(statement)
        case _:
            assert_never(statement)


def format_storage(definition: ir.Allocate | ir.ConstantBuffer) -> str:
    """What is said of a definition, first what no pass owns."""
    return format_annotations((*definition.annotations, *ir.to_annotations(definition.storage)))


def format_annotations(annotations: ir.Annotations) -> str:
    """` {key=value, ...}`, or nothing."""
    pairs = ", ".join(f"{attribute_name(key)}={format_value(value)}" for key, value in annotations)
    return f" {{{pairs}}}" if pairs else ""


def _format_view(view: ir.View, scopes: Scopes) -> str:
    scope = scopes.get(view.source.buffer.name)
    text = f"view {_buffer(view.buffer, scope)} = {format_region(view.source)}"
    if view.condition is not None:
        text += f" if {format_expression(view.condition)}"
    if view.otherwise is not None:
        text += f" else {format_region(view.otherwise)}"
    return text


def _format_call(call: ir.Call) -> str:
    arguments = ", ".join(
        format_region(argument) if isinstance(argument, ir.Region) else format_expression(argument)
        for argument in call.arguments
    )
    attributes: list[str] = []
    if call.operators:
        attributes.append(f"operators={format_value(call.operators)}")
    if call.touched_by is not None:
        attributes.append(f"touched_by={format_value(call.touched_by)}")
    braces = f" {{{', '.join(attributes)}}}" if attributes else ""
    return f"{call.kind.value} {prim_name(call.callee)}({arguments}){braces}{where_suffix(call.where)}"


def _variable(variable: ir.Var) -> str:
    return f"{prim_name(variable.name)} : {variable.dtype.value}"


def _buffer(buffer: ir.Buffer, scope: ir.Scope | None) -> str:
    return f"{prim_name(buffer.name)} : {format_buffer_type(buffer, scope)}"


def format_parameter(parameter: ir.Parameter) -> str:
    """`input : buffer<...> r activation`, or `rows : i32`."""
    match parameter:
        case ir.BufferParameter():
            buffer = _buffer(parameter.buffer, parameter.scope)
            return f"{buffer} {parameter.access.value} {parameter.role.value}"
        case ir.ScalarParameter():
            return _variable(parameter.variable)
        case _:
            assert_never(parameter)


def _print_sequence(sequence: ir.Seq, indent: str, remarks: Notes, outside: Scopes) -> list[str]:
    """The lines of the statements of a sequence, with the scopes of what is defined outside of it."""
    lines: list[str] = []
    scopes = outside.new_child()
    for statement in sequence.statements:
        lines.extend(wrapped(format_statement(statement, scopes), indent))
        lines.extend(note_lines(statement, remarks, indent))
        define_scope(scopes, statement)
        match statement:
            case ir.Seq():
                lines.extend(_print_sequence(statement, indent + INDENT, remarks, scopes))
            case ir.For():
                lines.extend(_print_sequence(statement.body, indent + INDENT, remarks, scopes))
            case ir.If():
                lines.extend(_print_sequence(statement.then, indent + INDENT, remarks, scopes))
                if statement.otherwise is not None:
                    lines.append(f"{indent}}} else {{")
                    lines.extend(_print_sequence(statement.otherwise, indent + INDENT, remarks, scopes))
            case _:
                continue
        lines.append(f"{indent}}}")
    return lines


def _format_external(external: ir.External | None) -> str:
    if external is None:
        return ""
    stack = "" if external.stack_bytes is None else f" stack={external.stack_bytes}"
    return f"{stack}{' status' if external.returns_status else ''}"


def print_primfunc(
    function: ir.PrimFunc,
    word: str = "kernel",
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
    if function.external is not None:
        word = "extern"
    pairs = "".join(f" noalias({prim_name(a)}, {prim_name(b)})" for a, b in function.noalias)
    external = _format_external(function.external)
    tail = f") on {prim_name(function.device)}{external}{pairs}{where_suffix(function.where)} {{"
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
    lines.extend(_print_sequence(function.body, INDENT, remarks, given_scopes(function, constants or {})))
    lines.append("}")
    return "\n".join(lines)
