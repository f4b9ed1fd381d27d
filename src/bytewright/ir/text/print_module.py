"""Prints modules: border, constants, then graph functions, kernels and entries, in whatever mixture there is.

Equal modules print equally, names come in the module's order, and no weight appears, so that dumps of consecutive
passes differ only in what changed.
"""

from dataclasses import fields, is_dataclass, replace

from bytewright import ir
from bytewright.ir.definitions import scopes_of_constants
from bytewright.ir.text.graphs import format_typed, print_function
from bytewright.ir.text.notation import format_data, graph_name, prim_name, wrapped
from bytewright.ir.text.print_prim import (
    format_annotations,
    format_buffer_type,
    format_storage,
    print_primfunc,
)


def print_module(module: ir.Module) -> str:
    """The module's text, which `parse_text` reads back given the constants."""
    ports = (("input", module.inputs), ("output", module.outputs), ("state", module.state))
    scopes = scopes_of_constants(module)
    border = [f"{word} {format_typed(port)}" for word, group in ports for port in group]
    constants = [f"constant {graph_name(c.name)} = {format_data(c.data)}" for c in module.constants]
    buffers = [_constant_buffer(constant) for constant in module.constant_buffers]
    sections = [
        f"module {prim_name(module.name)}{format_annotations(_attributes(module))}",
        *(
            "\n".join(line for text in texts for line in wrapped(text, ""))
            for texts in (border, constants, buffers)
        ),
        *(print_function(function) for function in module.functions),
        *(print_primfunc(kernel, constants=scopes) for kernel in module.kernels),
        *(print_primfunc(entry, "entry", constants=scopes) for entry in module.entries),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def module_data(module: ir.Module) -> dict[str, ir.TensorData]:
    """The constants of a module by digest: what `parse_text` needs beside the text."""
    return {data.digest: data for data in named_constants(module).values()}


def named_constants(module: ir.Module) -> dict[str, ir.TensorData]:
    """Each of the module's constants once, by the first of its names; without one of its own, by its digest."""
    found = [(constant.name, constant.data) for constant in module.constants]
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


def _attributes(module: ir.Module) -> ir.Annotations:
    return () if module.numerics is None else (("numerics", module.numerics),)


def _constant_buffer(constant: ir.ConstantBuffer) -> str:
    name, type_ = prim_name(constant.buffer.name), format_buffer_type(constant.buffer, constant.scope)
    offset = "" if constant.storage.offset is None else f" at {constant.storage.offset}"
    annotations = format_storage(replace(constant, storage=replace(constant.storage, offset=None)))
    return f"constant {name} : {type_}{offset}{annotations} = {format_data(constant.data)}"
