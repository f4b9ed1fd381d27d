"""Reads printed graph functions; operators and their attributes' classes come from the caller's table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass

from bytewright.ir.graph import Function, Node, Operation, Quantization, Value
from bytewright.ir.parse_reader import Reader, classes_in_fields


def read_typed(reader: Reader) -> Value:
    """`%name : tensor<...> quant(scale, zero point)`."""
    name = reader.graph_name()
    reader.expect(":")
    type_ = reader.tensor_type()
    quantization = None
    if reader.accept("quant("):
        scale = float(reader.number())
        reader.expect(",")
        quantization = Quantization(scale, reader.integer())
        reader.expect(")")
    return Value(name, type_, quantization)


def _read_node(reader: Reader, operations: Mapping[str, type[Operation]]) -> Node:
    outputs: list[Value] = []
    if not reader.accept("()"):
        outputs.append(read_typed(reader))
        while reader.accept(","):
            outputs.append(read_typed(reader))
    reader.expect("=")
    name = reader.word()
    if name not in operations:
        reader.fail(f"something after '{name}', which is no operator")
    cls = operations[name]
    reader.expect("(")
    inputs = reader.items(")", reader.graph_name)
    classes = classes_in_fields(cls) if is_dataclass(cls) else {}
    attributes = reader.keywords("}", classes) if reader.accept("{") else {}
    return Node(cls(**attributes), inputs, tuple(outputs), reader.where())


def read_function(reader: Reader, operations: Mapping[str, type[Operation]]) -> Function:
    """A function, after the word `func`."""
    name = reader.prim_name()
    reader.expect("(")
    parameters = reader.items(")", lambda: read_typed(reader))
    reader.expect("->")
    reader.expect("(")
    results = reader.items(")", reader.graph_name)
    reader.expect("{")
    nodes: list[Node] = []
    while not reader.accept("}"):
        nodes.append(_read_node(reader, operations))
    return Function(name, parameters, tuple(nodes), results)
