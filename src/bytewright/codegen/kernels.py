"""`<model>_kernels.h` and `<model>_kernels.c`: one C function for each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bytewright.codegen.c_form import c_form, parameters_in_c
from bytewright.codegen.expressions import C_TYPES, c_value, function_names, helper_name
from bytewright.codegen.externals import externals, own_kernels
from bytewright.codegen.includes import needs_bool_header, needs_math_header
from bytewright.codegen.prototypes import write_prototype
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.backend import backend_functions
from bytewright.ir.expr import Binary, BinaryOperator, Expr, ScalarCall, ScalarFunction
from bytewright.ir.module import Module
from bytewright.ir.prim import BufferParameter, Call, Let, PrimFunc, Seq
from bytewright.ir.scalar_functions import SCALAR_FUNCTIONS
from bytewright.ir.types import DType, format_shape
from bytewright.ir.walk import walk_all_expressions, walk_statements
from bytewright.record.names import Names

_HELPERS = {
    BinaryOperator.MIN: "return (second < first) ? second : first;",
    BinaryOperator.MAX: "return (first < second) ? second : first;",
}


def kernels_header(module: Module, names: Names) -> str:
    """Prototypes; private to the bundle."""
    writer = Writer()
    guard = names.guard(names.kernels_header)
    writer.title(
        f"Kernels of model '{module.name}'; private, called by {names.included(names.entry_source)} only."
    )
    writer.line(f"#ifndef {guard}")
    writer.line(f"#define {guard}")
    writer.line()
    writer.line("#include <stdint.h>")
    if needs_bool_header(module):
        writer.line("#include <stdbool.h>")
    if externals(module):
        writer.line()
        writer.line(f'#include "{names.included(names.externals_header)}"')
    writer.line()
    taken = called(module)
    for kernel in own_kernels(module):
        write_prototype(writer, parameters_in_c(kernel, taken), ";")
    writer.line()
    writer.line(f"#endif /* {guard} */")
    return writer.text()


def kernels_source(module: Module, names: Names) -> str:
    """Definitions."""
    writer = Writer()
    writer.title(
        f"Kernels of model '{module.name}'. Sizes are constants; activations are NHWC. Right shifts of negative\n"
        "numbers are arithmetic, as on every compiler that this code is tested with."
    )
    writer.line(f'#include "{names.included(names.kernels_header)}"')
    if needs_math_header(module.kernels):
        writer.line()
        writer.line("#include <math.h>")
    write_operator_functions(writer, module.kernels)
    taken = called(module)
    for kernel in own_kernels(module):
        writer.line()
        _write_kernel(writer, c_form(kernel, taken))
    return writer.text()


def called(module: Module) -> frozenset[str]:
    """The functions that kernels and the entry may call: no variable of theirs is called so."""
    calls = (s for kernel in module.kernels for s in walk_statements(kernel.body) if isinstance(s, Call))
    kernels = (kernel.name for kernel in module.kernels)
    callees = (call.callee for call in calls)
    return frozenset((*kernels, *callees, *backend_functions(module.name))) | function_names()


def _write_kernel(writer: Writer, kernel: PrimFunc) -> None:
    """Writes a kernel in its C form."""
    where = kernel.where
    lines = [f"{where.model}, operator {where.operator}" if where.operator else where.model]
    for parameter in kernel.buffer_parameters:
        buffer = parameter.buffer
        lines.append(f"  {buffer.name}: {buffer.dtype.value}[{format_shape(buffer.shape)}]")
    writer.comment("\n".join(lines))
    write_prototype(writer, kernel, "")
    with writer.block(""):
        for name in _unused_parameters(kernel):
            writer.line(f"(void){name};")
        StatementWriter(writer).sequence(kernel.body)


def _unused_parameters(kernel: PrimFunc) -> list[str]:
    """Names of parameters that the text of the body does not mention; compilers warn of them otherwise."""
    body = Writer()
    StatementWriter(body).sequence(kernel.body)
    used = set(re.findall(r"\w+", body.text()))
    names = [p.buffer.name if isinstance(p, BufferParameter) else p.variable.name for p in kernel.parameters]
    return [name for name in names if name not in used]


def write_operator_functions(writer: Writer, functions: Iterable[PrimFunc]) -> None:
    """Writes the functions for operators that C has none for, and those of scalars that are called by name."""
    nodes = [node for function in functions for node in walk_all_expressions(function.body)]
    for operator, dtype in _helpers(nodes):
        c_type = C_TYPES[dtype]
        writer.line()
        head = f"static inline {c_type} {helper_name(operator, dtype)}({c_type} first, {c_type} second)"
        with writer.block(head):
            writer.line(_HELPERS[operator])
    used = {node.function for node in nodes if isinstance(node, ScalarCall)}
    for function in SCALAR_FUNCTIONS.values():
        if function in used and function.result is not None:
            _write_scalar_function(writer, function, function.result)


def _write_scalar_function(writer: Writer, function: ScalarFunction, result: Expr) -> None:
    writer.line()
    writer.comment(function.comment)
    parameters = [f"{C_TYPES[parameter.dtype]} {parameter.name}" for parameter in function.parameters]
    writer.listed(f"static inline {C_TYPES[result.dtype]} {function.name}", parameters, "")
    with writer.block(""):
        StatementWriter(writer).sequence(Seq(tuple(Let(*step) for step in function.steps)))
        writer.wrapped(f"return {c_value(result)};")


def _helpers(nodes: Iterable[Expr]) -> list[tuple[BinaryOperator, DType]]:
    """The min and max functions that are called, in a fixed order."""
    used = {
        (node.operator, node.dtype)
        for node in nodes
        if isinstance(node, Binary) and node.operator in _HELPERS
    }
    return sorted(used, key=lambda item: (item[0].value, item[1].value))
