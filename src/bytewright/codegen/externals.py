"""`<model>_externals.h`: prototypes of the functions that the application brings, with what each may rely on."""

from dataclasses import replace

from bytewright import ir
from bytewright.codegen.c_form import parameters_in_c
from bytewright.codegen.includes import needed_by_prototypes, needs_contexts
from bytewright.codegen.prototypes import write_prototype
from bytewright.codegen.writer import Writer
from bytewright.ir.externals import externals
from bytewright.record.names import Names

_WHAT_IT_IS = {
    ir.ParameterRole.ACTIVATION: "tensor",
    ir.ParameterRole.PARAMETER: "parameters",
    ir.ParameterRole.SCRATCH: "scratch",
}
_ACCESS = {"r": "read", "w": "written", "rw": "read and written"}


def externals_header(module: ir.Module, names: Names) -> str:
    """The header: the application includes it where it defines the functions, so that the compiler compares."""
    writer = Writer()
    writer.title(
        f"Functions that model '{module.name}' calls and the application defines. Each touches what it is given and "
        "nothing else of the model, keeps no pointer, and is called by the thread that runs the model."
    )
    headers = needed_by_prototypes(module)
    own = [names.included(names.header)] if needs_contexts(module) else []
    with writer.guarded(names.guard(names.externals_header), headers, own, is_for_cpp=True):
        for symbol in dict.fromkeys(function.symbol for function in externals(module)):
            prototypes = [function for function in externals(module) if function.symbol == symbol]
            writer.comment("\n".join(_contract(prototypes, names)))
            write_prototype(writer, replace(parameters_in_c(prototypes[0]), noalias=()), ";", names)
            writer.line()
    return writer.text()


def _contract(prototypes: list[ir.PrimFunc], names: Names) -> list[str]:
    """What is given to a function: for each of its prototypes, whose buffers are of different shapes."""
    lines: list[str] = []
    for function in prototypes:
        where = function.where
        lines.append(f"{where.model}, operator {where.operator}" if where.operator else where.model)
        for parameter in function.buffer_parameters:
            buffer = parameter.buffer
            kind = f"{buffer.dtype.value}[{ir.format_shape(buffer.shape).replace('x', ',')}]"
            what = f"{_WHAT_IT_IS[parameter.role]}, {_ACCESS[parameter.access.value]}"
            lines.append(f"  {buffer.name}: {kind}, {what}, aligned to {buffer.alignment}")
    stacks = [f.external.stack_bytes for f in prototypes if f.external and f.external.stack_bytes is not None]
    if stacks:
        lines.append(f"It may use {max(stacks)} bytes of stack, which {names.stack_size} counts.")
    external = prototypes[0].external
    if external is not None and external.returns_status:
        lines.append(f"Returns 0, or anything else to end the run with {names.error('EXTERNAL')}.")
    return lines
