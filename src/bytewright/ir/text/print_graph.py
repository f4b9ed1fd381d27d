"""Prints graph functions: one line an operator, types and attributes in full, weights by digest only."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from bytewright import ir
from bytewright.ir.text.notation import (
    INDENT,
    Notes,
    format_data,
    format_fields,
    graph_name,
    note_lines,
    prim_name,
    where_suffix,
    wrapped,
)


def format_typed(name: str, type_: ir.TensorType, quantization: ir.Quantization | None) -> str:
    """`%name : tensor<...> quant(scale, zero point)`."""
    quant = "" if quantization is None else f" quant({quantization.scale!r}, {quantization.zero_point})"
    return f"{graph_name(name)} : {type_}{quant}"


def format_operation(operation: ir.Operation) -> str:
    """The operator's attributes between braces, or nothing."""
    if not is_dataclass(operation) or not fields(operation):
        return ""
    return f" {{{format_fields(operation)}}}"


def format_node(node: ir.Node) -> str:
    """One operator on one line, before wrapping."""
    outputs = ", ".join(_value(value) for value in node.outputs) or "()"
    inputs = ", ".join(graph_name(name) for name in node.inputs)
    attributes = format_operation(node.operation)
    return f"{outputs} = {node.operation.name}({inputs}){attributes}{where_suffix(node.where)}"


def format_constant(constant: ir.Constant) -> str:
    """A constant of the graph on one line."""
    return f"constant {graph_name(constant.name)} = {format_data(constant.data)}"


def print_function(function: ir.Function, notes: Notes | None = None) -> str:
    """The function's text, with remarks under the lines that they concern."""
    remarks = notes or {}
    parameters = ", ".join(_value(value) for value in function.parameters)
    results = ", ".join(graph_name(name) for name in function.results)
    head = f"func {prim_name(function.name)}({parameters}) -> ({results}) {{"
    lines = [*wrapped(head, ""), *note_lines(function, remarks, "")]
    for node in function.nodes:
        lines.extend(wrapped(format_node(node), INDENT))
        lines.extend(note_lines(node, remarks, INDENT))
    lines.append("}")
    return "\n".join(lines)


def print_constants(constants: Sequence[ir.Constant]) -> str:
    """One line a constant."""
    return "\n".join(line for constant in constants for line in wrapped(format_constant(constant), ""))


def _value(value: ir.Value) -> str:
    return format_typed(value.name, value.type, value.quantization)
