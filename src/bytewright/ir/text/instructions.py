"""The text of instructions, printed and read: what each does, what it is in C, and what a core needs for it."""

from collections.abc import Iterable

from bytewright import ir
from bytewright.ir.definitions import Scopes
from bytewright.ir.instructions import instructions_of
from bytewright.ir.text.expressions import Defined
from bytewright.ir.text.notation import INDENT, prim_name, quoted, wrapped
from bytewright.ir.text.primfuncs import (
    format_parameter,
    print_sequence,
    read_block,
    read_parameter,
    read_quoted,
)
from bytewright.ir.text.reader import Reader
from bytewright.ir.text.words import Word


def print_instructions(functions: Iterable[ir.PrimFunc]) -> list[str]:
    """The text of each instruction that functions use, in the order of their first use."""
    return [_print_instruction(instruction) for instruction in instructions_of(functions)]


def _print_instruction(instruction: ir.Instruction) -> str:
    feature = instruction.feature
    told = ", ".join([prim_name(feature.name), quoted(feature.condition), quoted(feature.header)])
    comment = f" {Word.COMMENT}({quoted(instruction.comment)})" if instruction.comment else ""
    lines = [f"{Word.INSTRUCTION} {prim_name(instruction.name)}("]
    for position, parameter in enumerate(instruction.parameters, 1):
        comma = "," if position < len(instruction.parameters) else ""
        lines.extend(wrapped(format_parameter(parameter) + comma, 2 * INDENT))
    lines.extend(wrapped(f") {Word.FEATURE}({told}) {Word.TEXT}({quoted(instruction.text)}){comment} {{", ""))
    scopes = {p.name: p.scope for p in instruction.parameters if isinstance(p, ir.BufferParameter)}
    lines.extend(print_sequence(instruction.body, INDENT, {}, Scopes(scopes)))
    return "\n".join([*lines, "}"])


def read_instruction(reader: Reader) -> ir.Instruction:
    """An instruction, after that word."""
    start = reader.position
    name, names = reader.prim_name(), Defined()
    parameters: list[ir.BufferParameter | ir.ScalarParameter] = []
    for parameter in reader.parenthesised(lambda: read_parameter(reader, names)):
        if isinstance(parameter, ir.ContextParameter):
            reader.refuse(f"instruction '{name}' cannot take a context", start)
        parameters.append(parameter)
    reader.expect(Word.FEATURE)
    reader.expect("(")
    feature_name = reader.prim_name()
    reader.expect(",")
    condition = reader.string()
    reader.expect(",")
    feature = ir.Feature(feature_name, condition, reader.string())
    reader.expect(")")
    text = read_quoted(reader, Word.TEXT)
    comment = read_quoted(reader, Word.COMMENT) if reader.sees(Word.COMMENT) else ""
    body = read_block(reader, names)
    return ir.Instruction(name, tuple(parameters), body, text, feature, comment)
