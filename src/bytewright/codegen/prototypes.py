"""The heads of C functions: types that say what is read, and `restrict` where the plan proves memory disjoint."""

from typing import assert_never

from bytewright import ir
from bytewright.codegen.expressions import C_TYPES, memory_type
from bytewright.codegen.writer import Writer
from bytewright.record.names import Names


def write_prototype(writer: Writer, kernel: ir.PrimFunc, tail: str, names: Names, linkage: str = "") -> None:
    """The head of a kernel's C function, with `;` or nothing behind it, and `static ` or nothing before it."""
    parameters = [_parameter(kernel, parameter, names) for parameter in kernel.parameters]
    returns_status = kernel.external is not None and kernel.external.returns_status
    result = "int32_t" if returns_status else "void"
    writer.listed(f"{linkage}{result} {kernel.symbol}", parameters or ["void"], tail)


def _parameter(kernel: ir.PrimFunc, parameter: ir.Parameter, names: Names) -> str:
    match parameter:
        case ir.ScalarParameter():
            return f"{C_TYPES[parameter.variable.dtype]} {parameter.name}"
        case ir.ContextParameter():
            return f"{names.device_context_type(parameter.device)} {parameter.name}"
        case ir.BufferParameter():
            return _pointer(kernel, parameter)
        case _:
            assert_never(parameter)


def _pointer(kernel: ir.PrimFunc, parameter: ir.BufferParameter) -> str:
    constness = "const " if parameter.access is ir.Access.READ else ""
    restrict = "restrict " if _is_restrict(kernel, parameter) else ""
    return f"{constness}{memory_type(parameter.buffer.dtype)} *{restrict}{parameter.name}"


def _is_restrict(kernel: ir.PrimFunc, parameter: ir.BufferParameter) -> bool:
    """Disjoint from every other parameter; two that are only read may share bytes."""
    apart = set(map(frozenset, kernel.noalias))
    return all(
        {parameter.access, other.access} == {ir.Access.READ}
        or frozenset((parameter.name, other.name)) in apart
        for other in kernel.buffer_parameters
        if other.name != parameter.name
    )
