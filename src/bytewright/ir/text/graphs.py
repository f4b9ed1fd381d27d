"""The text of graph functions, printed and read: one line an operator, types and attributes in full.

Of weights only digests are printed. Operators and their attributes' classes come from the reader's caller.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace

from bytewright import ir
from bytewright.ir.text.attribute_types import classes_in_fields
from bytewright.ir.text.notation import (
    INDENT,
    Notes,
    format_fields,
    graph_name,
    note_lines,
    prim_name,
    quoted,
    where_suffix,
    wrapped,
)
from bytewright.ir.text.reader import Reader
from bytewright.ir.text.words import Word


def format_typed(value: ir.Value | ir.Port) -> str:
    """`%name : tensor<...> quant(scale, zero point)`."""
    known = value.quantization
    quantization = "" if known is None else f" {Word.QUANT}({known.scale!r}, {known.zero_point})"
    return f"{graph_name(value.name)} : {value.type}{quantization}"


def read_typed(reader: Reader) -> ir.Value:
    """The same."""
    name = reader.graph_name()
    reader.expect(":")
    type_ = reader.tensor_type()
    quantization = None
    if reader.accept(f"{Word.QUANT}("):
        scale = float(reader.number())
        reader.expect(",")
        quantization = ir.Quantization(scale, reader.integer())
        reader.expect(")")
    return ir.Value(name, type_, quantization)


def _format_value(value: ir.Value) -> str:
    """The same, and why it is at its place: `because("...")`."""
    because = "" if value.reason is None else f" {Word.BECAUSE}({quoted(value.reason)})"
    return f"{format_typed(value)}{because}"


def _read_value(reader: Reader) -> ir.Value:
    value = read_typed(reader)
    if not reader.accept(f"{Word.BECAUSE}("):
        return value
    reason = reader.string()
    reader.expect(")")
    return replace(value, reason=reason)


def _format_node(node: ir.Node) -> str:
    """`%results = operator(%operands) {attributes} @ "place"`."""
    outputs = ", ".join(map(_format_value, node.outputs)) or "()"
    inputs = ", ".join(map(graph_name, node.inputs))
    operation = node.operation
    attributes = format_fields(operation) if is_dataclass(operation) and fields(operation) else ""
    braces = f" {{{attributes}}}" if attributes else ""
    return f"{outputs} = {operation.name}({inputs}){braces}{where_suffix(node.where)}"


def _read_node(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Node:
    start = reader.position
    outputs: list[ir.Value] = []
    if not reader.accept("()"):
        outputs.append(_read_value(reader))
        while reader.accept(","):
            outputs.append(_read_value(reader))
    reader.expect("=")
    place = reader.position
    name = reader.word()
    if name not in operations:
        reader.refuse(f"'{name}' is no operator", place)
    cls = operations[name]
    inputs = reader.parenthesised(reader.graph_name)
    classes = classes_in_fields(cls) if is_dataclass(cls) else {}
    attributes = reader.keywords("}", classes) if reader.accept("{") else {}
    operation = reader.build(cls, attributes, place)
    return reader.mark(start, ir.Node(operation, inputs, tuple(outputs), reader.where()))


def print_function(function: ir.Function, notes: Notes | None = None) -> str:
    """The function's text, with remarks under the lines that they concern."""
    remarks = notes or {}
    parameters = ", ".join(map(_format_value, function.parameters))
    results = ", ".join(map(graph_name, function.results))
    head = f"{Word.FUNC} {prim_name(function.name)}({parameters}) -> ({results}) {{"
    lines = [*wrapped(head, ""), *note_lines(function, remarks, "")]
    for node in function.nodes:
        lines.extend(wrapped(_format_node(node), INDENT))
        lines.extend(note_lines(node, remarks, INDENT))
    lines.append("}")
    return "\n".join(lines)


def read_function(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Function:
    """A function, after the word `func`."""
    start = reader.position
    name = reader.prim_name()
    parameters = reader.parenthesised(lambda: _read_value(reader))
    reader.expect("->")
    results = reader.parenthesised(reader.graph_name)
    reader.expect("{")
    nodes: list[ir.Node] = []
    while not reader.accept("}"):
        nodes.append(_read_node(reader, operations))
    return reader.mark(start, ir.Function(name, parameters, tuple(nodes), results))
