"""Reads modules back from their text: printing what was read gives the text again.

Weights are not in the text, so the constants come beside it, by digest (`print_module.module_data`); operators come
from a table, because the graph knows them by contract only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bytewright import ir
from bytewright.ir.text.graphs import read_function, read_typed
from bytewright.ir.text.parse_prim import read_buffer, read_primfunc, read_storage
from bytewright.ir.text.reader import Constants, Position, Reader


@dataclass(frozen=True, slots=True)
class ParsedModule:
    """A module, and where its nodes stand in the text that it was read from."""

    module: ir.Module
    reader: Reader

    def place_of(self, node: object) -> Position | None:
        """Line and column of a function, a parameter, a statement, a constant or the module; None for another node."""
        return self.reader.place_of(node)


def parse_text(text: str, constants: Constants, operations: Mapping[str, type[ir.Operation]]) -> ParsedModule:
    """The module that a text describes, printed or written.

    Args:
        text: IR.
        constants: What the text refers to.
        operations: Operators of the graph by name.

    Raises:
        ParseError: The text is not IR, or names a constant or an operator that is not given; with line and column.
    """
    reader = Reader(text, constants)
    module = _read_module(reader, operations)
    return ParsedModule(reader.mark(0, module), reader)


def _read_module(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Module:
    reader.expect("module")
    name = reader.prim_name()
    numerics = _read_numerics(reader)
    inputs, outputs, state = (_read_ports(reader, word) for word in ("input", "output", "state"))
    constants: list[ir.Constant] = []
    buffers: list[ir.ConstantBuffer] = []
    while (start := reader.start_of("constant")) is not None:
        if reader.sees("%"):
            constant_name = reader.graph_name()
            reader.expect("=")
            constants.append(ir.Constant(constant_name, reader.tensor_data()))
        else:
            buffer, scope = read_buffer(reader)
            offset = reader.integer() if reader.accept("at") else None
            storage, annotations = read_storage(reader, scope)
            if offset is not None:
                storage = replace(storage, offset=offset)
            reader.expect("=")
            constant = ir.ConstantBuffer(buffer, reader.tensor_data(), storage, annotations)
            buffers.append(reader.mark(start, constant))
    functions: list[ir.Function] = []
    while reader.accept("func"):
        functions.append(read_function(reader, operations))
    kernels, entries = (_read_primfuncs(reader, word, buffers) for word in ("kernel", "entry"))
    if not reader.at_end:
        reader.fail("ports, constants, functions, kernels and entries, in this order, or the end")
    return ir.Module(
        name,
        tuple(functions),
        tuple(constants),
        kernels,
        entries,
        tuple(buffers),
        inputs,
        outputs,
        state,
        numerics,
    )


def _read_numerics(reader: Reader) -> str | None:
    start = reader.position
    attributes = reader.keywords("}", {}) if reader.accept("{") else {}
    numerics = attributes.pop("numerics", None)
    if attributes or not (numerics is None or isinstance(numerics, str)):
        reader.refuse("the only attribute of a module is numerics, a text", start)
    return numerics


def _read_ports(reader: Reader, word: str) -> tuple[ir.Port, ...]:
    ports: list[ir.Port] = []
    while (start := reader.start_of(word)) is not None:
        value = read_typed(reader)
        ports.append(reader.mark(start, ir.Port(value.name, value.type, value.quantization)))
    return tuple(ports)


def _read_primfuncs(
    reader: Reader, word: str, constants: Sequence[ir.ConstantBuffer]
) -> tuple[ir.PrimFunc, ...]:
    found: list[ir.PrimFunc] = []
    while (is_external := word == "kernel" and reader.accept("extern")) or reader.accept(word):
        found.append(read_primfunc(reader, constants, is_external))
    return tuple(found)
