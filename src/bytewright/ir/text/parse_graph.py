"""Reads printed graph functions; operators and their attributes' classes come from the caller's table."""

from collections.abc import Mapping
from dataclasses import is_dataclass

from bytewright import ir
from bytewright.ir.text.attribute_types import classes_in_fields
from bytewright.ir.text.reader import Reader


def read_typed(reader: Reader) -> ir.Value:
    """`%name : tensor<...> quant(scale, zero point)`."""
    name = reader.graph_name()
    reader.expect(":")
    type_ = reader.tensor_type()
    quantization = None
    if reader.accept("quant("):
        scale = float(reader.number())
        reader.expect(",")
        quantization = ir.Quantization(scale, reader.integer())
        reader.expect(")")
    return ir.Value(name, type_, quantization)


def _read_node(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Node:
    start = reader.position
    outputs: list[ir.Value] = []
    if not reader.accept("()"):
        outputs.append(read_typed(reader))
        while reader.accept(","):
            outputs.append(read_typed(reader))
    reader.expect("=")
    place = reader.position
    name = reader.word()
    if name not in operations:
        reader.refuse(f"'{name}' is no operator", place)
    cls = operations[name]
    reader.expect("(")
    inputs = reader.items(")", reader.graph_name)
    classes = classes_in_fields(cls) if is_dataclass(cls) else {}
    attributes = reader.keywords("}", classes) if reader.accept("{") else {}
    operation = reader.build(cls, attributes, place)
    return reader.mark(start, ir.Node(operation, inputs, tuple(outputs), reader.where()))


def read_function(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Function:
    """A function, after the word `func`."""
    start = reader.position
    name = reader.prim_name()
    reader.expect("(")
    parameters = reader.items(")", lambda: read_typed(reader))
    reader.expect("->")
    reader.expect("(")
    results = reader.items(")", reader.graph_name)
    reader.expect("{")
    nodes: list[ir.Node] = []
    while not reader.accept("}"):
        nodes.append(_read_node(reader, operations))
    return reader.mark(start, ir.Function(name, parameters, tuple(nodes), results))
