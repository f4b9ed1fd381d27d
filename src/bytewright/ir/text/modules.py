"""The text of modules, printed and read: border, constants, then graph functions, kernels and entries.

Equal modules print equally, names come in the module's order, and no weight appears, so that dumps of consecutive
passes differ only in what changed; printing what was read gives the text again. Constants come beside the text, by
digest (`module_data`); operators come from a table, because the graph knows them by contract only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace

from bytewright import ir
from bytewright.ir.definitions import scopes_of_constants
from bytewright.ir.text.buffers import format_buffer, read_buffer
from bytewright.ir.text.expressions import Defined
from bytewright.ir.text.graphs import format_typed, print_function, read_function, read_typed
from bytewright.ir.text.instructions import print_instructions, read_instruction
from bytewright.ir.text.notation import format_data, graph_name, prim_name, wrapped
from bytewright.ir.text.primfuncs import (
    format_annotations,
    format_storage,
    print_primfunc,
    read_primfunc,
    read_storage,
)
from bytewright.ir.text.reader import Constants, Position, Reader
from bytewright.ir.text.words import Word


def print_module(module: ir.Module) -> str:
    """The module's text, which `parse_text` reads back given the constants."""
    scopes = scopes_of_constants(module)
    border = [f"{side.value} {_format_port(port)}" for side in ir.Border for port in module.ports(side)]
    constants = [f"{Word.CONSTANT} {graph_name(c.name)} = {format_data(c.data)}" for c in module.constants]
    buffers = [_constant_buffer(constant) for constant in module.constant_buffers]
    numerics = () if module.numerics is None else (("numerics", module.numerics),)
    sections = [
        f"{Word.MODULE} {prim_name(module.name)}{format_annotations(numerics)}",
        *(
            "\n".join(line for text in texts for line in wrapped(text, ""))
            for texts in (border, constants, buffers)
        ),
        *(print_function(function) for function in module.functions),
        *print_instructions((*module.kernels, *module.entries)),
        *(print_primfunc(kernel, constants=scopes) for kernel in module.kernels),
        *(print_primfunc(entry, Word.ENTRY, constants=scopes) for entry in module.entries),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


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


def _read_constants(reader: Reader, defined: Defined) -> tuple[list[ir.Constant], list[ir.ConstantBuffer]]:
    """Those of the graph, and those of PrimFuncs, which are defined from then on."""
    constants: list[ir.Constant] = []
    buffers: list[ir.ConstantBuffer] = []
    while (start := reader.start_of(Word.CONSTANT)) is not None:
        if reader.sees("%"):
            constant_name = reader.graph_name()
            reader.expect("=")
            constants.append(ir.Constant(constant_name, reader.tensor_data()))
        else:
            buffer, scope = read_buffer(reader)
            offset = reader.integer() if reader.accept(Word.AT) else None
            storage, annotations = read_storage(reader, scope)
            if offset is not None:
                storage = replace(storage, offset=offset)
            reader.expect("=")
            constant = ir.ConstantBuffer(buffer, reader.tensor_data(), storage, annotations)
            buffers.append(reader.mark(start, constant))
            defined.define(buffer, scope)
    return constants, buffers


def _read_module(reader: Reader, operations: Mapping[str, type[ir.Operation]]) -> ir.Module:
    reader.expect(Word.MODULE)
    name = reader.prim_name()
    numerics = _read_numerics(reader)
    inputs, outputs, state = (_read_ports(reader, side) for side in ir.Border)
    defined = Defined()  # the constants
    constants, buffers = _read_constants(reader, defined)
    functions: list[ir.Function] = []
    while reader.accept(Word.FUNC):
        functions.append(read_function(reader, operations))
    while reader.accept(Word.INSTRUCTION):
        instruction = read_instruction(reader)
        defined.instructions[instruction.name] = instruction
    kernels, entries = (_read_primfuncs(reader, word, defined) for word in (Word.KERNEL, Word.ENTRY))
    if not reader.at_end:
        reader.fail(
            "ports, constants, functions, instructions, kernels and entries, in this order, or the end"
        )
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


def _format_port(port: ir.Port) -> str:
    """`%name : tensor<...> quant(scale, zero point)`, and ` = data<...>` of a state that does not begin as zeros."""
    initial = "" if port.initial is None else f" = {format_data(port.initial)}"
    return f"{format_typed(port)}{initial}"


def _read_ports(reader: Reader, side: ir.Border) -> tuple[ir.Port, ...]:
    ports: list[ir.Port] = []
    while (start := reader.start_of(side.value)) is not None:
        value = read_typed(reader)
        has_initial = side is ir.Border.STATE and reader.accept("=")
        initial = reader.tensor_data() if has_initial else None
        port = ir.Port(value.name, value.type, value.quantization, initial=initial)
        ports.append(reader.mark(start, port))
    return tuple(ports)


def _read_primfuncs(reader: Reader, word: Word, constants: Defined) -> tuple[ir.PrimFunc, ...]:
    found: list[ir.PrimFunc] = []
    while (is_external := word is Word.KERNEL and reader.accept(Word.EXTERN)) or reader.accept(word):
        found.append(read_primfunc(reader, constants, is_external))
    return tuple(found)


def _constant_buffer(constant: ir.ConstantBuffer) -> str:
    buffer = format_buffer(constant.buffer, constant.scope)
    offset = "" if constant.storage.offset is None else f" {Word.AT} {constant.storage.offset}"
    annotations = format_storage(replace(constant, storage=replace(constant.storage, offset=None)))
    return f"{Word.CONSTANT} {buffer}{offset}{annotations} = {format_data(constant.data)}"


def module_data(module: ir.Module) -> dict[str, ir.TensorData]:
    """The constants of a module by digest: what `parse_text` needs beside the text."""
    return {data.digest: data for data in named_constants(module).values()}


def named_constants(module: ir.Module) -> dict[str, ir.TensorData]:
    """Each of the module's constants once, by the first of its names; without one of its own, by its digest."""
    found = [(constant.name, constant.data) for constant in module.constants]
    found.extend((f"{port.name}/initial", port.initial) for port in module.state if port.initial is not None)
    found.extend((constant.buffer.name, constant.data) for constant in module.constant_buffers)
    for function in module.functions:
        for node in function.nodes:
            if is_dataclass(node.operation):
                attributes = (getattr(node.operation, field.name) for field in fields(node.operation))
                found.extend(
                    (value.digest, value) for value in attributes if isinstance(value, ir.TensorData)
                )
    named: dict[str, ir.TensorData] = {}
    digests: set[str] = set()
    for name, data in found:
        digest = data.digest
        if digest not in digests:
            digests.add(digest)
            named[digest if name in named else name] = data
    return named
