"""`<model>_kernels.h` and `<model>_kernels.c`: one C function for each kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bytewright.codegen.c_form import c_form, parameters_in_c
from bytewright.codegen.expressions import C_TYPES, helper_name
from bytewright.codegen.externals import externals, externals_header_name, own_kernels
from bytewright.codegen.includes import needs_bool_header, needs_math_header
from bytewright.codegen.prototypes import write_prototype
from bytewright.codegen.statements import StatementWriter
from bytewright.codegen.writer import Writer
from bytewright.ir.backend import backend_functions
from bytewright.ir.expr import Binary, BinaryOperator, MathFunction
from bytewright.ir.module import Module
from bytewright.ir.prim import BufferParameter, Call, PrimFunc
from bytewright.ir.types import DType, format_shape
from bytewright.ir.walk import walk_all_expressions, walk_statements

_HELPERS = {
    BinaryOperator.MIN: "return (second < first) ? second : first;",
    BinaryOperator.MAX: "return (first < second) ? second : first;",
}


def kernels_header(module: Module) -> str:
    """Prototypes; private to the bundle."""
    writer = Writer()
    guard = f"{module.name.upper()}_KERNELS_H"
    writer.comment(f"Kernels of model '{module.name}'; private, called by {module.name}.c only.")
    writer.line(f"#ifndef {guard}")
    writer.line(f"#define {guard}")
    writer.line()
    writer.line("#include <stdint.h>")
    if needs_bool_header(module):
        writer.line("#include <stdbool.h>")
    if externals(module):
        writer.line()
        writer.line(f'#include "{externals_header_name(module.name)}"')
    writer.line()
    taken = called(module)
    for kernel in own_kernels(module):
        write_prototype(writer, parameters_in_c(kernel, taken), ";")
    writer.line()
    writer.line(f"#endif /* {guard} */")
    return writer.text()


def kernels_source(module: Module) -> str:
    """Definitions."""
    writer = Writer()
    writer.comment(
        f"Kernels of model '{module.name}'. Sizes are constants; activations are NHWC. Right shifts of negative\n"
        "numbers are arithmetic, as on every compiler that this code is tested with."
    )
    writer.line(f'#include "{module.name}_kernels.h"')
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
    helpers = (helper_name(operator, dtype) for operator in _HELPERS for dtype in DType)
    functions = (function.value for function in MathFunction)
    kernels = (kernel.name for kernel in module.kernels)
    callees = (call.callee for call in calls)
    return frozenset((*kernels, *callees, *helpers, *functions, *backend_functions(module.name)))


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
    """Writes the functions for operators that C has none for, of those that kernels or the entry use."""
    for operator, dtype in _helpers(functions):
        c_type = C_TYPES[dtype]
        writer.line()
        head = f"static inline {c_type} {helper_name(operator, dtype)}({c_type} first, {c_type} second)"
        with writer.block(head):
            writer.line(_HELPERS[operator])


def _helpers(functions: Iterable[PrimFunc]) -> list[tuple[BinaryOperator, DType]]:
    """The min and max functions that are called, in a fixed order."""
    used = {
        (node.operator, node.dtype)
        for function in functions
        for node in walk_all_expressions(function.body)
        if isinstance(node, Binary) and node.operator in _HELPERS
    }
    return sorted(used, key=lambda item: (item[0].value, item[1].value))
