"""`<model>_kernels.h` and `<model>_kernels.c`: one C function for each kernel."""

import re
from collections.abc import Iterable
from itertools import pairwise

from bytewright import ir
from bytewright.codegen.c_form import c_form, parameters_in_c
from bytewright.codegen.expressions import C_TYPES, c_value, called_in
from bytewright.codegen.includes import (
    needed,
    needed_by_prototypes,
    needs_bool_header,
    needs_contexts,
    needs_math_header,
)
from bytewright.codegen.instructions import Macros, write_features, write_instructions
from bytewright.codegen.prototypes import write_prototype
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.backend import backend_functions
from bytewright.ir.externals import entry_device, externals, own_kernels
from bytewright.ir.instructions import instructions_of
from bytewright.ir.packed import packed_calls
from bytewright.ir.rewrite import rename_callees
from bytewright.ir.walk import calls, expressions, statements_of, walk_statements
from bytewright.naming.operator_functions import FUNCTIONS
from bytewright.record.names import Names

ABOUT_KERNELS = (
    "Sizes are constants; activations are NHWC. Right shifts of negative numbers are arithmetic, as on every compiler "
    "that this code is tested with."
)


def kernels_header(module: ir.Module, names: Names) -> str:
    """Prototypes; private to the bundle."""
    writer = Writer()
    sources = [names.entry_source, *([names.packed_source] if any(map(packed_calls, module.entries)) else [])]
    callers = " and ".join(map(names.included, sources))
    writer.title(f"Kernels of model '{module.name}'; private, called by {callers} only.")
    included = [names.header] if needs_contexts(module) else []
    included += [names.externals_header] if externals(module) else []
    own = [names.included(header) for header in included]
    with writer.guarded(names.guard(names.kernels_header), needed_by_prototypes(module), own):
        taken = called(module)
        for kernel in own_kernels(module, entry_device(module)):
            write_prototype(writer, parameters_in_c(kernel, taken), ";", names)
        writer.line()
    return writer.text()


def kernels_source(module: ir.Module, names: Names) -> str:
    """Definitions of those of the entry's device."""
    writer = Writer()
    writer.title(f"Kernels of model '{module.name}'. {ABOUT_KERNELS}")
    writer.line(f'#include "{names.included(names.kernels_header)}"')
    write_kernels(writer, module, names, entry_device(module))
    return writer.text()


def write_kernels(
    writer: Writer,
    module: ir.Module,
    names: Names,
    device: str | None,
    headers: tuple[str, ...] = (),
    linkage: str = "",
) -> None:
    """Writes the kernels of a device, with what they need of the file.

    Args:
        writer: Writes the file, up to the headers of the bundle.
        module: All kernels.
        names: Of the bundle.
        device: The device; of all if None.
        headers: What else the file needs of the C library.
        linkage: `static ` for kernels that no other file calls.
    """
    taken = called(module)
    symbols = {function.name: function.symbol for function in externals(module)}
    kernels = [c_form(rename_callees(kernel, symbols), taken) for kernel in own_kernels(module, device)]
    found = needed({"math.h": needs_math_header(kernels), "stdbool.h": needs_bool_header(kernels)})
    includes = sorted({*found, *headers})
    if includes:
        writer.line()
    for header in includes:
        writer.line(f"#include <{header}>")
    macros = write_features(writer, kernels, names.prefix)
    write_operator_functions(writer, kernels, macros)
    write_instructions(writer, kernels, macros)
    for kernel in kernels:
        writer.line()
        _write_kernel(writer, kernel, _served(module, kernel), names, linkage)


def called(module: ir.Module) -> frozenset[str]:
    """The functions that kernels and the entry may call: no variable of theirs is called so."""
    kernels = (name for kernel in module.kernels for name in (kernel.name, kernel.symbol))
    callees = (call.callee for kernel in module.kernels for call in calls(kernel))
    instructions = (instruction.name for instruction in instructions_of(module.kernels))
    return frozenset((*kernels, *callees, *backend_functions(module.name), *FUNCTIONS, *instructions))


def _served(module: ir.Module, kernel: ir.PrimFunc) -> str:
    """The operators that the entries call a kernel for: `operators 2, 4 (CONV_2D), 5 (ADD)`."""
    places = [call.where for entry in module.entries for call in calls(entry) if call.callee == kernel.name]
    operators = tuple(dict.fromkeys(where.operator or kernel.where.operator or "" for where in places))
    shown = list(operators)
    for index, (operator, following) in enumerate(pairwise(operators)):
        number, _, kind = operator.partition(" ")
        if kind == following.partition(" ")[2]:
            shown[index] = number
    return f"operators {', '.join(shown)}" if len(shown) > 1 else f"operator {kernel.where.operator}"


def _write_kernel(writer: Writer, kernel: ir.PrimFunc, operators: str, names: Names, linkage: str) -> None:
    """Writes a kernel in its C form, under the operators that it serves."""
    where = kernel.where
    lines = [f"{where.model}, {operators}" if where.operator else where.model]
    for parameter in kernel.buffer_parameters:
        buffer = parameter.buffer
        lines.append(f"  {buffer.name}: {buffer.dtype.value}[{ir.format_shape(buffer.shape)}]")
    writer.comment("\n".join(lines))
    write_prototype(writer, kernel, "", names, linkage)
    with writer.block(""):
        for name in _unused_parameters(kernel):
            writer.line(f"(void){name};")
        StatementWriter(writer, kernel).sequence(kernel.body)


def _unused_parameters(kernel: ir.PrimFunc) -> list[str]:
    """Names of parameters that the text of the body does not mention; compilers warn of them otherwise."""
    body = Writer()
    StatementWriter(body, kernel).sequence(kernel.body)
    used = set(re.findall(r"\w+", body.text()))
    return [parameter.name for parameter in kernel.parameters if parameter.name not in used]


def write_operator_functions(
    writer: Writer, functions: Iterable[ir.PrimFunc], macros: Macros | None = None
) -> None:
    """Writes the functions that the expressions of kernels or of the entry call, in a fixed order.

    What only the plain C of instructions calls is there only where that is.
    """
    functions = tuple(functions)
    used = _called_in(s for function in functions for s in statements_of(function))
    conditions: dict[ir.ScalarFunction, list[str]] = {}
    for instruction in instructions_of(functions):
        for called in sorted(_called_in(walk_statements(instruction.body)), key=lambda f: f.name):
            conditions.setdefault(called, []).append(f"!{(macros or {})[instruction.feature]}")
    for function in FUNCTIONS.values():
        if function.result is None or not (function in used or function in conditions):
            continue
        writer.line()
        if function in used:
            write_scalar_function(writer, function, function.result)
        else:
            writer.directive(f"#if {' || '.join(dict.fromkeys(conditions[function]))}")
            write_scalar_function(writer, function, function.result)
            writer.directive("#endif")


def _called_in(statements: Iterable[ir.Statement]) -> set[ir.ScalarFunction]:
    return {call for s in statements for expression in expressions(s) for call in called_in(expression)}


def write_scalar_function(writer: Writer, function: ir.ScalarFunction, result: ir.Expr) -> None:
    """Writes a function that expressions call, which gives a result."""
    c_type = C_TYPES[result.dtype]
    if function.comment:
        writer.comment(function.comment)
    given = ", ".join(f"{C_TYPES[parameter.dtype]} {parameter.name}" for parameter in function.parameters)
    with writer.block(f"static inline {c_type} {function.name}({given})"):
        StatementWriter(writer).sequence(ir.Seq(tuple(ir.Let(*step) for step in function.steps)))
        writer.wrapped(f"return {c_value(result)};")
