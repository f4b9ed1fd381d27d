"""Checks calls: arguments against the callee's parameters, so that a kernel may rely on what it states.

The scope of an argument must lie within the parameter's, because a kernel is compiled once for the places that its
parameters name. Private memory is never passed at all.
"""

from __future__ import annotations

from collections.abc import Collection

from bytewright.ir.address import num_elements, region_index
from bytewright.ir.expr import Const
from bytewright.ir.prim import Access, BufferParameter, Call, PrimFunc, Region, ScalarParameter
from bytewright.ir.scope import Rank, is_within
from bytewright.ir.violation import Context


def check_call(context: Context, caller: PrimFunc, call: Call, read_only: Collection[str]) -> None:
    """Reports what is wrong with a call.

    Args:
        context: The module.
        caller: The function that the call stands in.
        call: The call.
        read_only: Names of buffers that the caller may not have written.
    """
    for argument in call.arguments:
        buffer = argument.buffer if isinstance(argument, Region) else None
        if buffer is not None and buffer.scope is not None and buffer.scope.rank is Rank.LOCAL:
            context.report(caller, call, f"'{buffer.name}' is local and cannot be passed to '{call.callee}'")
    if call.touched_by is not None and len(call.touched_by) != len(call.arguments):
        found, expected = len(call.touched_by), len(call.arguments)
        context.report(caller, call, f"touched_by names {found} arguments of {expected}")
    callee = _callee(context, caller, call)
    if callee is None:
        return
    if len(callee.parameters) != len(call.arguments):
        expected, found = len(callee.parameters), len(call.arguments)
        context.report(caller, call, f"'{callee.name}' takes {expected} arguments, {found} are given")
        return
    for parameter, argument in zip(callee.parameters, call.arguments, strict=True):
        if isinstance(parameter, BufferParameter) and isinstance(argument, Region):
            for fault in _buffer_faults(callee, parameter, argument, read_only):
                context.report(caller, call, fault)
        elif isinstance(parameter, ScalarParameter) and not isinstance(argument, Region):
            expected, found = parameter.variable.dtype, argument.dtype
            if found is not expected:
                what = f"'{parameter.variable.name}' of '{callee.name}'"
                context.report(caller, call, f"{what} is {expected.value}, the argument is {found.value}")
        else:
            kinds = "a buffer" if isinstance(parameter, BufferParameter) else "a scalar"
            context.report(caller, call, f"an argument of '{callee.name}' is not {kinds}")


def _callee(context: Context, caller: PrimFunc, call: Call) -> PrimFunc | None:
    """The function called, or None for an external one. Callees stand before callers, so nothing recurs."""
    module = context.module
    if any(entry.name == call.callee for entry in module.entries):
        context.report(caller, call, f"entry '{call.callee}' is called")
        return None
    position = next((i for i, kernel in enumerate(module.kernels) if kernel is caller), len(module.kernels))
    if any(kernel.name == call.callee for kernel in module.kernels[position:]):
        context.report(caller, call, f"'{call.callee}' does not stand before its caller '{caller.name}'")
        return None
    return module.kernel(call.callee)


def _buffer_faults(
    callee: PrimFunc, parameter: BufferParameter, argument: Region, read_only: Collection[str]
) -> list[str]:
    given, wanted = argument.buffer, parameter.buffer
    names = f"'{given.name}' is passed to '{wanted.name}' of '{callee.name}'"
    faults: list[str] = []
    if given.dtype is not wanted.dtype:
        faults.append(f"{names}: {given.dtype.value} is not {wanted.dtype.value}")
    if not is_within(given.scope, wanted.scope):
        faults.append(f"{names}: scope '{given.scope}' does not satisfy scope '{wanted.scope}'")
    if parameter.access is not Access.READ and given.name in read_only:
        faults.append(f"{names}, which writes it, but it is only to be read")
    available = num_elements(given)
    if len(argument.indices) == len(given.shape):
        first = region_index(argument)
        available -= int(first.value) if isinstance(first, Const) else 0
    if available < num_elements(wanted):
        faults.append(f"{names}: {available} elements, {num_elements(wanted)} expected")
    return faults
