"""Instructions in C: what a core with the feature does, and beside it, for any other machine, what that means.

A function stands for each instruction. Under `#if` of the feature it is the instruction's own text; under `#else` its
statements, by the same writer as those of kernels: so a bundle for one core runs bit for bit on every other.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from bytewright import ir
from bytewright.base.c_names import unique_c_name
from bytewright.codegen.expressions import C_TYPES, c_element_type, memory_type, register_type
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.instructions import instructions_of
from bytewright.ir.rewrite import substitute
from bytewright.ir.walk import walk_statements

Macros = Mapping[ir.Feature, str]
"""What is 1 where the compiler generates code for a feature, and else 0."""


def write_features(writer: Writer, kernels: Iterable[ir.PrimFunc], prefix: str) -> Macros:
    """Writes a macro for each feature that kernels use, and includes its header where there is the feature.

    Features whose instructions share a type of registers have one macro: the type is what all of them need.

    Args:
        writer: Writes the file.
        kernels: Those of the file.
        prefix: What the macros of the bundle begin with.
    """
    macros: dict[ir.Feature, str] = {}
    taken: set[str] = set()
    for features in _joined_features(instructions_of(kernels)):
        names = [feature.name for feature in features]
        name = unique_c_name(re.sub(r"[^A-Z0-9_]", "_", f"{prefix}_HAS_{names[0]}".upper()), taken)
        macros |= dict.fromkeys(features, name)
        writer.line()
        what = "the feature" if len(names) == 1 else "the features"
        listed = " and ".join(f"'{each}'" for each in names)
        writer.comment(
            f"Instructions of {what} {listed}, where the compiler generates code for it; else the same in plain C."
        )
        writer.directive("#if " + " \\\n    && ".join(feature.condition for feature in features))
        for header in dict.fromkeys(feature.header for feature in features if feature.header):
            writer.directive(f"#include <{header}>")
        writer.lines(f"#define {name} 1\n#else\n#define {name} 0\n#endif")
    return macros


def _joined_features(instructions: Iterable[ir.Instruction]) -> list[tuple[ir.Feature, ...]]:
    """The features of instructions, those together that share a type of registers."""
    types: dict[ir.Feature, set[str]] = {}
    for instruction in instructions:
        types.setdefault(instruction.feature, set()).update(_register_types([instruction]))
    joined: list[tuple[ir.Feature, ...]] = []
    for feature, own in types.items():
        with_own = [features for features in joined if any(types[other] & own for other in features)]
        joined = [features for features in joined if features not in with_own]
        joined.append((*(other for features in with_own for other in features), feature))
    return joined


def _register_types(instructions: Iterable[ir.Instruction]) -> dict[str, ir.Buffer]:
    """The names of types of registers, each with a register."""
    parameters = (p for i in instructions for p in i.parameters if isinstance(p, ir.BufferParameter))
    return {register_type(p.buffer): p.buffer for p in parameters if p.buffer.register}


def write_instructions(writer: Writer, kernels: Iterable[ir.PrimFunc], macros: Macros) -> None:
    """Writes the types of the registers that kernels use, and a function for each instruction."""
    instructions = instructions_of(kernels)
    for macro in dict.fromkeys(macros.values()):
        _write_types(writer, [i for i in instructions if macros[i.feature] == macro], macro)
    for instruction in instructions:
        writer.line()
        _write_function(writer, instruction, macros[instruction.feature])


def _write_types(writer: Writer, instructions: Sequence[ir.Instruction], macro: str) -> None:
    """Registers under names of their own, which are structures of as many lanes on any other machine."""
    buffers = _register_types(instructions)
    if not buffers:
        return
    writer.line()
    writer.directive(f"#if {macro}")
    for name, buffer in buffers.items():
        writer.line(f"typedef {buffer.register} {name};")
    writer.directive("#else")
    for name, buffer in buffers.items():
        writer.line("typedef struct {")
        with writer.indented():
            writer.line(f"{memory_type(buffer.dtype)} lane[{ir.num_elements(buffer)}];")
        writer.line(f"}} {name};")
    writer.directive("#endif")


def _write_function(writer: Writer, instruction: ir.Instruction, macro: str) -> None:
    results = instruction.results
    returned = results[0] if len(results) == 1 else None
    is_new = returned is not None and returned.access is ir.Access.WRITE
    given = [p for p in instruction.parameters if not (is_new and p is returned)]
    parameters = [_parameter(p, is_pointer=len(results) > 1 and p in results) for p in given]
    result = "void" if returned is None else c_element_type(returned.buffer)
    if instruction.comment:
        writer.comment(instruction.comment)
    with writer.block_of(f"static inline {result} {instruction.name}", parameters):
        writer.directive(f"#if {macro}")
        writer.lines(instruction.text)
        writer.directive("#else")
        _write_meaning(writer, instruction, returned, given)
        writer.directive("#endif")


def _write_meaning(
    writer: Writer,
    instruction: ir.Instruction,
    returned: ir.BufferParameter | None,
    given: Sequence[ir.BufferParameter | ir.ScalarParameter],
) -> None:
    if returned is not None and returned not in given:
        writer.line(f"{c_element_type(returned.buffer)} {returned.name} = {_nothing(returned.buffer)};")
    pointed = () if returned is not None else instruction.results
    for parameter in pointed:  # the body names the values
        value = _nothing(parameter.buffer) if parameter.access is ir.Access.WRITE else f"*{parameter.name}_at"
        writer.line(f"{c_element_type(parameter.buffer)} {parameter.name} = {value};")
    StatementWriter(writer).sequence(_with_names_of_c(instruction))
    for parameter in pointed:
        writer.line(f"*{parameter.name}_at = {parameter.name};")
    if returned is not None:
        writer.line(f"return {returned.name};")


def _nothing(buffer: ir.Buffer) -> str:
    """What a value begins with that is written lane by lane: compilers do not see that all of them are."""
    return "{{0}}" if buffer.register else "0"


def _with_names_of_c(instruction: ir.Instruction) -> ir.Seq:
    """The body with loop variables that are called as what follows the instruction's name: `lane`."""
    loops = [s.variable for s in walk_statements(instruction.body) if isinstance(s, ir.For)]
    stems = {variable.name: variable.name.rpartition(".")[2] for variable in loops}
    taken = {parameter.name for parameter in instruction.parameters}
    names = {name: unique_c_name(stem, taken) for name, stem in stems.items()}
    return substitute(instruction.body, {v: replace(v, name=names[v.name]) for v in loops})


def _parameter(parameter: ir.BufferParameter | ir.ScalarParameter, *, is_pointer: bool) -> str:
    if isinstance(parameter, ir.ScalarParameter):
        return f"{C_TYPES[parameter.variable.dtype]} {parameter.name}"
    buffer = parameter.buffer
    if is_pointer:
        return f"{c_element_type(buffer)} *{parameter.name}_at"
    if parameter.is_value:
        return f"{register_type(buffer) if buffer.register else C_TYPES[buffer.dtype]} {parameter.name}"
    constness = "const " if parameter.access is ir.Access.READ else ""
    return f"{constness}{memory_type(buffer.dtype)} *{parameter.name}"
