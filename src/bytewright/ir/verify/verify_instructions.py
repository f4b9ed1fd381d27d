"""Checks the instructions that a module uses: each is a function of C, and what it means can stand in any kernel."""

import re
from collections.abc import Iterator
from functools import lru_cache

from bytewright import ir
from bytewright.base.c_names import is_reserved
from bytewright.ir.instructions import instructions_of
from bytewright.ir.verify.violation import Context
from bytewright.ir.walk import defined_names, free_buffers, free_variables, walk_statements

_C_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_instructions(context: Context) -> None:
    """Reports what is wrong with them."""
    module = context.module
    first: dict[str, ir.Instruction] = {}
    kernels = {name for kernel in module.kernels for name in (kernel.name, kernel.symbol)}
    for instruction in instructions_of((*module.kernels, *module.entries)):
        name = instruction.name
        if first.setdefault(name, instruction) != instruction:
            context.report(None, module, f"there are two instructions '{name}'")
        if name in kernels:
            context.report(None, module, f"'{name}' is a kernel and an instruction")
        for fault in _faults_of(instruction):
            context.report(None, module, f"instruction '{name}': {fault}")


@lru_cache(maxsize=1 << 12)
def _faults_of(instruction: ir.Instruction) -> tuple[str, ...]:
    return tuple(_faults(instruction))


def _faults(instruction: ir.Instruction) -> Iterator[str]:
    name, parameters = instruction.name, instruction.parameters
    if _C_NAME.fullmatch(name) is None or is_reserved(name):
        yield "its name is no name of a C function"
    if all(p.access is ir.Access.READ for p in parameters if isinstance(p, ir.BufferParameter)):
        yield "it writes nothing"
    for parameter in parameters:
        if not isinstance(parameter, ir.BufferParameter):
            continue
        if len(parameter.buffer.shape) > 1 or not ir.has_constant_size(parameter.buffer):
            yield f"'{parameter.name}' has more than one axis, or an open extent"
        if parameter.is_value is not ir.is_local(parameter.scope):
            yield f"'{parameter.name}' has scope '{parameter.scope}': registers and variables are local, memory is not"
    given = {parameter.name for parameter in parameters}
    outside = (*free_buffers(instruction.body), *free_variables(instruction.body))
    yield from (f"'{node.name}' is no parameter" for node in outside if node.name not in given)
    for statement in walk_statements(instruction.body):
        match statement:
            case ir.For(begin=ir.Const(), end=ir.Const()):
                pass
            case ir.For():
                yield "a loop has bounds that are not constant"
            case ir.Call() | ir.View() | ir.InstructionCall():
                yield f"a body has no calls and no views, {', '.join(defined_names(statement)) or 'such as one here'}"
            case _:
                pass
