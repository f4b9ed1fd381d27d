"""Which headers of the C library the statements of functions need, beyond <stdint.h>."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np

from bytewright import ir
from bytewright.ir.instructions import instructions_of
from bytewright.ir.walk import statements_of, walk_all_expressions, walk_expression

_MAX_F32 = float(np.finfo(np.float32).max)


def uses_math(module: ir.Module) -> bool:
    """True if a kernel or an entry calls a function of <math.h>, so that a program links the library."""
    return any(_is_of_math(node) for node in _expressions((*module.kernels, *module.entries)))


def needs_math_header(functions: Iterable[ir.PrimFunc]) -> bool:
    """True if they call functions of <math.h>, or name its infinity or what is not a number."""
    return any(_is_of_math(node) or _is_not_finite(node) for node in _expressions(functions))


def needs_bool_header(functions: Collection[ir.PrimFunc]) -> bool:
    """True if a parameter or a variable of theirs is a truth value."""
    parameters = (p for f in functions for p in f.parameters if isinstance(p, ir.ScalarParameter))
    if any(parameter.variable.dtype is ir.DType.BOOL for parameter in parameters):
        return True
    for statement in (s for function in functions for s in statements_of(function)):
        match statement:
            case ir.Let() if statement.variable.dtype is ir.DType.BOOL:
                return True
            case ir.Allocate() if statement.buffer.dtype is ir.DType.BOOL and not statement.buffer.shape:
                return True
            case _:
                pass
    return False


def needs_contexts(module: ir.Module) -> bool:
    """True if a kernel is given the context of a device, whose type is in the header of the model."""
    return any(kernel.context_parameters for kernel in module.kernels)


def needed_by_prototypes(module: ir.Module) -> list[str]:
    """The headers that declarations of a module's functions need."""
    return ["stdint.h", *needed({"stdbool.h": needs_bool_header((*module.kernels, *module.entries))})]


def needed(headers: Mapping[str, bool]) -> list[str]:
    """Those of some headers that are needed."""
    return [header for header, is_needed in headers.items() if is_needed]


def _expressions(functions: Iterable[ir.PrimFunc]) -> Iterator[ir.Expr]:
    """Those that functions evaluate, and those of the plain C of their instructions."""
    functions = tuple(functions)
    bodies = (item.body for item in (*functions, *instructions_of(functions)))
    return (node for body in bodies for node in walk_all_expressions(body))


def _is_of_math(node: ir.Expr) -> bool:
    """Whether it calls a function of <math.h>, itself or in what it calls."""
    if not isinstance(node, ir.ScalarCall):
        return False
    function = node.function
    if function.result is None:
        return True
    values = (*(value for _, value in function.steps), function.result)
    return any(_is_of_math(inner) for value in values for inner in walk_expression(value))


def _is_not_finite(node: ir.Expr) -> bool:
    """Whether a constant may have no digits; one that is finite in 64 bits may not be so in 32."""
    return isinstance(node, ir.Const) and isinstance(node.value, float) and not abs(node.value) <= _MAX_F32
