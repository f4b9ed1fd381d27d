"""`<model>_externals.h`: prototypes of the functions that the application brings, with what each may rely on."""

from dataclasses import replace

from bytewright import ir
from bytewright.codegen.c_form import parameters_in_c
from bytewright.codegen.includes import needed_by_prototypes
from bytewright.codegen.prototypes import write_prototype
from bytewright.codegen.writer import Writer
from bytewright.record.names import Names

_WHAT_IT_IS = {
    ir.ParameterRole.ACTIVATION: "tensor",
    ir.ParameterRole.PARAMETER: "parameters",
    ir.ParameterRole.SCRATCH: "scratch",
}
_ACCESS = {"r": "read", "w": "written", "rw": "read and written"}


def externals(module: ir.Module) -> tuple[ir.PrimFunc, ...]:
    """The functions of the application that the module calls."""
    return tuple(kernel for kernel in module.kernels if kernel.external is not None)


def own_kernels(module: ir.Module) -> tuple[ir.PrimFunc, ...]:
    """The kernels that the bundle has the C of."""
    return tuple(kernel for kernel in module.kernels if kernel.external is None)


def externals_header(module: ir.Module, names: Names) -> str:
    """The header: the application includes it where it defines the functions, so that the compiler compares."""
    writer = Writer()
    writer.title(
        f"Functions that model '{module.name}' calls and the application defines. Each touches what it is given and "
        "nothing else of the model, keeps no pointer, and is called by the thread that runs the model."
    )
    headers = needed_by_prototypes(module)
    with writer.guarded(names.guard(names.externals_header), headers, is_for_cpp=True):
        for function in externals(module):
            writer.comment("\n".join(_contract(function, names)))
            write_prototype(writer, replace(parameters_in_c(function), noalias=()), ";")
            writer.line()
    return writer.text()


def _contract(function: ir.PrimFunc, names: Names) -> list[str]:
    lines = [function.where.model]
    for parameter in function.buffer_parameters:
        buffer = parameter.buffer
        kind = f"{buffer.dtype.value}[{ir.format_shape(buffer.shape).replace('x', ',')}]"
        what = f"{_WHAT_IT_IS[parameter.role]}, {_ACCESS[parameter.access.value]}"
        lines.append(f"  {buffer.name}: {kind}, {what}, aligned to {buffer.alignment}")
    external = function.external
    if external is not None and external.stack_bytes is not None:
        lines.append(f"It may use {external.stack_bytes} bytes of stack, which {names.stack_size} counts.")
    if external is not None and external.returns_status:
        lines.append(f"Returns 0, or anything else to end the run with {names.error('EXTERNAL')}.")
    return lines
